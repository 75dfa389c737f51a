/*
 * workload.h: goes through a plan: modes, sizes, pairs, and for each of these the backends in turns; gives each node
 * the samples of both.
 */
#ifndef WF_BENCH_WORKLOAD_H
#define WF_BENCH_WORKLOAD_H

#include "bench/measure/measure.h"
#include "bench/nodes/link.h"
#include "bench/words/progress.h"

/* Everything of the plan. What is said of backends in `bed` is set here; all are open from the start to the end. */
int bench_workload(struct bench_bed *bed, struct bench_link *link, struct bench_result *result,
                   struct bench_progress *progress, struct wf_status *status);

/* The part of it that opens the backends, for who goes through the plan in another way. */
int bench_workload_open(struct bench_bed *bed, struct bench_link *link, struct bench_progress *progress,
                        struct wf_status *status);

/* Closes the backends that are still open: after a failure, when nobody needs what they hold any more. Whether there
 * were any. */
bool bench_workload_close(struct bench_bed *bed);

/* All work there is, as bench_progress_step() counts it. */
uint64_t bench_workload_total(const struct bench_plan *plan);

/* The end: totals of both nodes, and node0's verdict, which decides the exit status of both. */
int bench_workload_finish(struct bench_bed *bed, struct bench_link *link, struct bench_result *result, bool *passed,
                          struct wf_status *status);

#endif
