#include "words.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define WORD_MAX 63

static unsigned smallest(unsigned a, unsigned b, unsigned c)
{
    unsigned least = a < b ? a : b;
    return least < c ? least : c;
}

/* Levenshtein distance; words longer than WORD_MAX are compared by their first WORD_MAX letters. */
static unsigned edit_distance(const char *a, const char *b)
{
    unsigned row[WORD_MAX + 1];
    unsigned a_length = (unsigned)strnlen(a, WORD_MAX), b_length = (unsigned)strnlen(b, WORD_MAX);

    for (unsigned j = 0; j <= b_length; j++)
        row[j] = j;
    for (unsigned i = 1; i <= a_length; i++) {
        unsigned diagonal = row[0];
        row[0] = i;
        for (unsigned j = 1; j <= b_length; j++) {
            unsigned above = row[j];
            row[j] = smallest(above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
            diagonal = above;
        }
    }
    return row[b_length];
}

const char *bench_nearest(const char *word, const char *const *words, int count)
{
    const char *best = NULL;
    unsigned best_distance = (unsigned)strnlen(word, WORD_MAX) / 2 + 1;

    for (int i = 0; i < count; i++) {
        unsigned distance = edit_distance(word, words[i]);
        if (distance <= best_distance && (!best || distance < best_distance)) {
            best = words[i];
            best_distance = distance;
        }
    }
    return best;
}

static char *in_units(uint64_t bytes, double step, const char *const units[5], char *buffer, size_t room)
{
    double value = (double)bytes;
    int unit = 0;

    while (value >= step && unit < 4) {
        value /= step;
        unit++;
    }
    snprintf(buffer, room, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
    return buffer;
}

char *bench_human_bytes(uint64_t bytes, char *buffer, size_t room)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};

    return in_units(bytes, 1024, units, buffer, room);
}

char *bench_decimal_bytes(uint64_t bytes, char *buffer, size_t room)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};

    return in_units(bytes, 1000, units, buffer, room);
}

void bench_copy_text(char *to, size_t room, const char *from)
{
    snprintf(to, room, "%s", from);
}

char *bench_next_word(char **rest, char mark)
{
    char *word = *rest;

    if (!word)
        return NULL;
    char *end = strchr(word, mark);
    if (end)
        *end++ = '\0';
    *rest = end;
    return word;
}
