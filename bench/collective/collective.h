/*
 * collective.h: `weft collective`: collective operations over ranks, on Weft and on others.
 *
 *     for each number of processes, round, backend and way: start the ranks, read what rank 0 says, and all have ended
 *
 * A backend is a program (ranks/rank.h); Weft's is this one. What runs them knows none of their calls.
 */
#ifndef WF_BENCH_COLLECTIVE_H
#define WF_BENCH_COLLECTIVE_H

#include "bench/plan/options.h"

/* From the options to the exit status. */
int bench_collective_run(struct bench_options *options);

#endif
