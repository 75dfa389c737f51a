#include "words.h"

#include <stdbool.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/guess.h"

const char *bench_nearest(const char *word, const char *const *words, int count)
{
    struct wf_guess guess;

    wf_guess_init(&guess, word);
    for (int i = 0; i < count; i++)
        wf_guess_offer(&guess, words[i]);
    return guess.best;
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

int bench_cannot_write(const char *path, int code, struct wf_status *status)
{
    const char *shown = strcmp(path, "-") == 0 ? "standard output" : path;
    struct rlimit limit;

    code = code ? code : -EIO;
    if (code == -EFBIG && getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        return wf_fail(status, code, "cannot write %.150s: a file may have %llu bytes (ulimit -f)", shown,
                       (unsigned long long)limit.rlim_cur);
    return wf_fail(status, code, "cannot write %.150s: %s", shown, wf_strerror(code));
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
