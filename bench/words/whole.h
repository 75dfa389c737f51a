/*
 * whole.h: files that nobody ever sees half.
 */
#ifndef WF_BENCH_WHOLE_H
#define WF_BENCH_WHOLE_H

#include <stdio.h>

#include "base/status.h"

/* Puts all of it into `file`. 0, or a negative errno; what the stream itself reports needs not be looked for. */
typedef int bench_put(const void *what, FILE *file);

/* Has `put` write `what` to the file `path`, or to standard output ("-"). A file takes the place of the one before when
 * it is whole: it is written beside its place and moved there. A device or a pipe is written to, and so is what a link
 * leads to, which may be standard output. */
int bench_write_whole(const char *path, bench_put *put, const void *what, struct wf_status *status);

#endif
