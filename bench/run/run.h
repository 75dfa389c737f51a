/*
 * run.h: the commands `mesh` and `pair`, from the plan to the exit status.
 */
#ifndef WF_BENCH_RUN_H
#define WF_BENCH_RUN_H

#include "bench/plan/options.h"

/* Runs what `options` ask for; prints the report, or one line on what went wrong. Returns an exit status. */
int bench_run(struct bench_options *options);

#endif
