/*
 * backends.h: which backends there are.
 */
#ifndef WF_BENCH_BACKENDS_H
#define WF_BENCH_BACKENDS_H

#include "backend.h"

extern const struct bench_backend_ops bench_backend_weft;
extern const struct bench_backend_ops bench_backend_null;
extern const struct bench_backend_ops bench_backend_nccl;
/* The same with the stand-in of the tests: no figure of it is NCCL's, so it has a name of its own in every result. */
extern const struct bench_backend_ops bench_backend_nccl_emulated;

/* All of them. */
extern const struct bench_backend_choice bench_backends[];

/* Asks those of the plan whether they can be used for it; see the operation `check`. */
int bench_backends_check(struct bench_plan *plan, const struct wf_config *config, int node, struct wf_status *status);

#endif
