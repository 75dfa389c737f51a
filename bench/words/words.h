/*
 * words.h: small text helpers of the benchmark: the nearest of some words for a mistyped one, numbers for people.
 */
#ifndef WF_BENCH_WORDS_H
#define WF_BENCH_WORDS_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* The one of `words` that `word` was meant to be (base/guess.h), or NULL. */
const char *bench_nearest(const char *word, const char *const *words, int count);

/* `bytes` as "12.3 GiB", for sentences (settings use wf_format_size(), which is exact). Returns `buffer`. */
char *bench_human_bytes(uint64_t bytes, char *buffer, size_t room);

/* The same as "12.3 GB", in powers of 1000. */
char *bench_decimal_bytes(uint64_t bytes, char *buffer, size_t room);

/* Says that `path` ("-" is standard output) cannot be written, with the limit that forbids it, if one does. `code` is a
 * negative errno, 0 where the system has not said. Returns the code. */
int bench_cannot_write(const char *path, int code, struct wf_status *status);

/* Copies with truncation; always terminated. */
void bench_copy_text(char *to, size_t room, const char *from);

/* Splits `text` at `mark` in place; returns the next word and moves `rest` on; NULL at the end. */
char *bench_next_word(char **rest, char mark);

#endif
