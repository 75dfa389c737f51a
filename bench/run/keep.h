/*
 * keep.h: --keep: a server that serves one client after the other. A client that fails costs its run alone. Its own
 * end:
 *
 *     a signal, or nobody came for idle_timeout -> 0, unless a run failed for a reason of its own: then 1
 */
#ifndef WF_BENCH_KEEP_H
#define WF_BENCH_KEEP_H

#include "bench/plan/options.h"

/* Serves until that end; returns the exit status. */
int bench_keep(struct bench_options *options);

#endif
