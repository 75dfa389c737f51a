/*
 * workload.h: goes through a plan: backends, modes, sizes, pairs; gives each node the samples of both.
 */
#ifndef WF_BENCH_WORKLOAD_H
#define WF_BENCH_WORKLOAD_H

#include "link.h"
#include "measure.h"
#include "progress.h"

/* Everything of the plan. `bed->ops` and `bed->backend` are set here. */
int bench_workload(struct bench_bed *bed, struct bench_link *link, struct bench_result *result,
                   struct bench_progress *progress, struct wf_status *status);

/* All bytes that will move, warm-up included, as bench_progress_step() counts them. */
uint64_t bench_workload_bytes(const struct bench_plan *plan);

/* The end: totals of both nodes, and node0's verdict, which decides the exit status of both. */
int bench_workload_finish(struct bench_bed *bed, struct bench_link *link, struct bench_result *result, bool *passed,
                          struct wf_status *status);

#endif
