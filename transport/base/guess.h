/*
 * guess.h: which of some known words a mistyped one was meant to be.
 *
 *     edits(typed, best) <= max(1, length(typed) / 3),  and  edits < length(typed)
 *
 * An edit is a letter too many, too few, or wrong, or two neighbours that have changed places. Where no word is so
 * near, there is no guess: a wrong one misleads more than none.
 */
#ifndef WF_BASE_GUESS_H
#define WF_BASE_GUESS_H

#include <stddef.h>

#define WF_GUESS_ROOM 64 /* a longer word is never a guess, and has none */

/* Owner: one thread. */
struct wf_guess {
    const char *typed;
    const char *best; /* NULL: no word that was offered is near enough */
    size_t edits;     /* between `typed` and `best` */
};

void wf_guess_init(struct wf_guess *guess, const char *typed);

/* Makes `word` the best one if it is near enough and nearer than those before. It is kept by its address. */
void wf_guess_offer(struct wf_guess *guess, const char *word);

#endif
