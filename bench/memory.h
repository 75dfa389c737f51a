/*
 * memory.h: how much memory a plan needs, and how much there is.
 *
 *     need(node) = stream + max over (mode, size) of receivers(mode, node) x areas x landing + background
 *
 * is compared with what is available before a byte of it is allocated. Where messages lie in GPU memory, that is the
 * need of each GPU, with the receivers that are on it, and the node needs the stream to compare with.
 */
#ifndef WF_BENCH_MEMORY_H
#define WF_BENCH_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "gpus.h"
#include "memory_limits.h"
#include "schedule.h"

#define BENCH_BOUNCE (8ull << 20) /* what comes from or goes to GPU memory passes through so much host memory */

/* Bytes of host memory that `node` will allocate; UINT64_MAX when they do not fit 64 bits. */
uint64_t bench_memory_need(const struct bench_plan *plan, int node, const struct bench_gpus *gpus);

/* The same of the memory of the GPU number `place` of the `places` that its endpoints take in turn. */
uint64_t bench_memory_need_at(const struct bench_plan *plan, int node, uint32_t places, uint32_t place);

/* What these consist of: the stream, or nothing where nobody sends from that place; its landings without those of the
 * background; and these. */
uint64_t bench_stream_need(const struct bench_plan *plan);
uint64_t bench_stream_need_at(const struct bench_plan *plan, int node, uint32_t places, uint32_t place);
uint64_t bench_landings_need(const struct bench_plan *plan, int node, uint32_t places, uint32_t place);
uint64_t bench_background_need(const struct bench_plan *plan, int node, uint32_t places, uint32_t place);

/* From one landing for messages of `size` bytes to the next, and how many areas of the stream a sender takes turns in.
 */
uint64_t bench_landing_stride(uint64_t size);
uint64_t bench_sender_areas(const struct bench_plan *plan, uint64_t size);

/* 0, or -ENOMEM with need, availability and a remedy. `need` is that of all nodes on this machine. */
int bench_memory_check(const struct bench_plan *plan, uint64_t need, struct wf_status *status);

/* The same of a GPU's memory. `need` is that of all endpoints on it, of both nodes. */
int bench_memory_check_gpu(const struct bench_plan *plan, const struct weft_gpu_info *gpu, uint64_t need,
                           struct wf_status *status);

#endif
