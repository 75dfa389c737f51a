/*
 * backend.h: the backend that carries messages over a net plugin for NCCL, as NCCL's proxy would.
 */
#ifndef WF_BENCH_BACKEND_PLUGIN_H
#define WF_BENCH_BACKEND_PLUGIN_H

#include "bench/backends/backend.h"

extern const struct bench_backend_ops bench_backend_plugin;

#endif
