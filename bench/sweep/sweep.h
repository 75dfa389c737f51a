/*
 * sweep.h: the command `weft sweep`: one pair or mesh again and again with other settings, and which of them is best.
 */
#ifndef WF_BENCH_SWEEP_H
#define WF_BENCH_SWEEP_H

#include "bench/plan/options.h"

/* Runs what the options ask for; returns an exit status. */
int bench_sweep(struct bench_options *options);

#endif
