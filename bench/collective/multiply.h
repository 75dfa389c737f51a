/*
 * multiply.h: products of matrices in the memory of this rank's GPU. cuBLAS computes them; it is found at run time, and
 * nothing of it is needed to build this.
 */
#ifndef WF_BENCH_COLLECTIVE_MULTIPLY_H
#define WF_BENCH_COLLECTIVE_MULTIPLY_H

#include "base/status.h"
#include "bench/collective/ranks/rank.h"

/* Once, for GPU number `gpu`: all stays until the process ends. -EOPNOTSUPP: no cuBLAS that can be used, and `status`
 * says why. */
int coll_multiply_open(int gpu, struct wf_status *status);

/* "cuBLAS 13.1.0"; "cuBLAS 13.1.0 (a stand-in)" with that of the tests. */
const char *coll_multiply_how(void);

/* For struct rank_backend: one thread at a time. The processor sleeps meanwhile. */
int coll_multiply(const struct rank_product *product, struct wf_status *status);

#endif
