/* completion.h: `weft completion`, which prints what makes a shell complete the options of weft. */
#ifndef WF_BENCH_COMPLETION_H
#define WF_BENCH_COMPLETION_H

#include "bench/plan/options.h"

/* Prints the script for the shell that is named; returns an exit status. */
int bench_completion(struct bench_options *options);

#endif
