/*
 * straggler.h: `weft straggler`: barriers among ranks, one of which is made late now and then: who was late, by how
 * much, and how soon that was known.
 *
 *     each rank: delay, or none -> barrier -> all ranks tell all how long they waited       rank 0: rule.h -> a line
 */
#ifndef WF_BENCH_STRAGGLER_H
#define WF_BENCH_STRAGGLER_H

#include "bench/plan/options.h"

/* From the options to the exit status. */
int bench_straggler(struct bench_options *options);

#endif
