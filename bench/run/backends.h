/*
 * backends.h: which backends there are.
 */
#ifndef WF_BENCH_BACKENDS_H
#define WF_BENCH_BACKENDS_H

#include "bench/backends/backend.h"

/* All of them. */
extern const struct bench_backend_choice bench_backends[];

/* Asks those of the plan whether they can be used for it; see the operation `check`. */
int bench_backends_check(struct bench_plan *plan, const struct wf_config *config, int node, struct wf_status *status);

#endif
