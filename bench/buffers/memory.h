/*
 * memory.h: how much memory a plan needs, and whether that is there.
 *
 *     need(node) = library + buffers + their page tables
 *     buffers    = stream + max over (mode, size) of receivers(mode, node) x areas x landing + background
 *
 * is compared with every limit that the node is under before a byte of it is allocated; nodes that share a limit need
 * the sum. Where messages lie in GPU memory, that is the need of each GPU, with the receivers that are on it, and the
 * node needs the stream to compare with.
 */
#ifndef WF_BENCH_MEMORY_H
#define WF_BENCH_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "bench/machine/gpus.h"
#include "bench/machine/memory_limits.h"
#include "bench/plan/schedule.h"

#define BENCH_SAMPLE_BYTES 808ull /* of a struct bench_sample, at most: bench/result/sample.c looks that it is so */
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

/* A node, as far as its memory is concerned. */
struct bench_party {
    int node;
    const struct bench_gpus *gpus;
    const struct bench_limits *limits;
};

/* The nodes whose memory is known here: one, or both. */
struct bench_parties {
    struct bench_party all[2];
    int count;
    bool met; /* the nodes have: their GPUs are known, and errors name them; else all of them are here */
};

/* What there is too little of. */
struct bench_lack {
    unsigned nodes;                  /* which need it: bits 1 << node; 0: nothing lacks */
    const struct weft_gpu_info *gpu; /* NULL: host memory */
    const char *limit;               /* name of the limit of host memory */
    uint64_t need, room;
};

/* Compares the plan with all limits: true, or what is missed by most. */
bool bench_memory_suffices(const struct bench_plan *plan, const struct bench_parties *parties, struct bench_lack *lack);

/* "node0 needs 4.1 GiB of memory and has 2.0 GiB (the memory limit of the control group)", or of parties that have not
 * met "needs 4.1 GiB of memory here and ..."; `even` goes behind the need. Returns `text`. */
char *bench_lack_text(const struct bench_lack *lack, bool met, const char *even, char *text, size_t room);

#endif
