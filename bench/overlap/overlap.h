/*
 * overlap.h: `weft overlap`: how much of the communication of gradients is hidden behind computation.
 *
 *     hidden share = (one after the other - both at once) / communication alone, from the wall clock
 *
 * The ranks and what they do are those of `weft collective`; this room asks them, reads what they say, and shows it.
 */
#ifndef WF_BENCH_OVERLAP_H
#define WF_BENCH_OVERLAP_H

#include "bench/plan/options.h"

/* From the options to the exit status. */
int bench_overlap(struct bench_options *options);

#endif
