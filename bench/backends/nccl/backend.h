/*
 * backend.h: the backend that carries messages over NCCL.
 */
#ifndef WF_BENCH_BACKEND_NCCL_H
#define WF_BENCH_BACKEND_NCCL_H

#include "bench/backends/backend.h"

extern const struct bench_backend_ops bench_backend_nccl;
/* The same with the stand-in of the tests: no figure of it is NCCL's, so it has a name of its own in every result. */
extern const struct bench_backend_ops bench_backend_nccl_emulated;

#endif
