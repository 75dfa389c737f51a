/*
 * whole.h: files that nobody ever sees half.
 */
#ifndef WF_BENCH_WHOLE_H
#define WF_BENCH_WHOLE_H

#include <stdio.h>

#include "base/config.h"
#include "base/status.h"

#define BENCH_WHOLE_PATH (WF_VALUE_MAX + 48)

/* Puts all of it into `file`. 0, or a negative errno; what the stream itself reports needs not be looked for. */
typedef int bench_put(const void *what, FILE *file);

/* Has `put` write `what` to the file `path`, or to standard output ("-"). A file takes the place of the one before when
 * it is whole: it is written beside its place and moved there. A device or a pipe is written to, and so is what a link
 * leads to, which may be standard output. */
int bench_write_whole(const char *path, bench_put *put, const void *what, struct wf_status *status);

/* The same of a file that is written piece by piece. Owner: its writer. */
struct bench_whole {
    FILE *file;                       /* NULL: not open */
    char path[BENCH_WHOLE_PATH];      /* its place */
    char temporary[BENCH_WHOLE_PATH]; /* where it is until it is whole; empty: it is written to its place */
};

int bench_whole_open(struct bench_whole *whole, const char *path, struct wf_status *status);

/* Puts it into its place. `result`: 0, or the negative errno for which it is no good, and then nothing of it is left.
 * What the stream has met needs not be looked for. Of one that is not open: 0. */
int bench_whole_close(struct bench_whole *whole, int result, struct wf_status *status);

#endif
