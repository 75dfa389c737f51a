/*
 * setup_cost.h: `weft setup-cost`: what it costs to make a communicator anew in every iteration, against keeping it.
 *
 *     for each number of processes and backend: start the ranks (bench/collective), which do both, and read what they
 * say
 */
#ifndef WF_BENCH_SETUP_COST_H
#define WF_BENCH_SETUP_COST_H

#include "bench/plan/options.h"

/* From the options to the exit status. */
int bench_setup_cost(struct bench_options *options);

#endif
