/*
 * bout.h: the connections of the pairs that two nodes of a team have between them, for as long as these measure
 * together.
 */
#ifndef WF_BENCH_BOUT_H
#define WF_BENCH_BOUT_H

#include "bench/nodes/link.h"
#include "bench/plan/schedule.h"

/* Opens the connections of `count` pairs from `first` on, all between this node and link->other, which does the same:
 * `joined`, by pair, gets them; pairs of the same two endpoints share one. */
int bench_bout_join(struct bench_link *link, const struct bench_plan *plan, uint32_t first, uint32_t count,
                    struct weft_connection **joined, struct wf_status *status);

/* Closes them: nothing is under way. */
void bench_bout_part(const struct bench_plan *plan, uint32_t first, uint32_t count, struct weft_connection **joined);

#endif
