#include "base/guess.h"

#include <string.h>

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The distance of Damerau and Levenshtein where no part is edited twice; both words are shorter than WF_GUESS_ROOM. */
static size_t count_edits(const char *a, const char *b)
{
    size_t rows[3][WF_GUESS_ROOM];
    size_t width = strlen(b), height = strlen(a);
    for (size_t j = 0; j <= width; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= height; i++) {
        size_t *row = rows[i % 3], *above = rows[(i - 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= width; j++) {
            row[j] = least(least(above[j], row[j - 1]) + 1, above[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least(row[j], rows[(i - 2) % 3][j - 2] + 1);
        }
    }
    return rows[height % 3][width];
}

void wf_guess_init(struct wf_guess *guess, const char *typed)
{
    *guess = (struct wf_guess){.typed = typed};
}

void wf_guess_offer(struct wf_guess *guess, const char *word)
{
    size_t length = strlen(guess->typed);
    if (length >= WF_GUESS_ROOM || strlen(word) >= WF_GUESS_ROOM)
        return;
    size_t edits = count_edits(guess->typed, word), most = length / 3 > 1 ? length / 3 : 1;
    if (edits > most || edits >= length || (guess->best && edits >= guess->edits))
        return;
    guess->best = word;
    guess->edits = edits;
}
