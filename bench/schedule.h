/*
 * schedule.h: what is measured, in which order. Both nodes compute it from the same settings and must come to the
 * same digest:
 *
 *     samples = pairs x sizes x modes x backends
 */
#ifndef WF_BENCH_SCHEDULE_H
#define WF_BENCH_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/config.h"
#include "base/status.h"
#include "options.h"

struct bench_backend_ops;

#define BENCH_SIZES_MAX 64
#define BENCH_BACKENDS_MAX 4

enum bench_mode { BENCH_ISOLATED, BENCH_LOADED, BENCH_MODES };

/* A directed pair: src sends to dst. The nodes are 0 (listens) and 1 (connects). */
struct bench_pair {
    uint32_t src, dst;
    uint8_t src_node, dst_node;
};

static inline bool bench_pair_equal(const struct bench_pair *a, const struct bench_pair *b)
{
    return a->src == b->src && a->dst == b->dst && a->src_node == b->src_node && a->dst_node == b->dst_node;
}

struct bench_plan {
    enum bench_command command;
    bool latency; /* ping-pong instead of bandwidth */
    bool check;
    bool modes[BENCH_MODES];
    bool intra;          /* some pairs lie within one node */
    uint32_t endpoints;  /* per node */
    uint32_t inflight;   /* messages outstanding per pair; 0: by the command and the size */
    uint32_t buffers;    /* that the messages of a pair take turns in, at each side; 0: see bench_plan_areas() */
    uint64_t background; /* latency: bytes of the messages that are exchanged meanwhile; 0: none */
    uint32_t background_inflight;
    uint32_t iters, warmup; /* per size; iters 0: clamp(32 MiB / size, 2, 20) */
    uint64_t seed;
    const char *pattern;
    uint64_t sizes[BENCH_SIZES_MAX]; /* ascending, no two equal */
    int size_count;
    struct bench_pair *pairs; /* owned; shuffled by the seed */
    uint32_t pair_count;
    uint32_t group; /* pairs that run together when isolated: 1, or 2 for bidir */
    const struct bench_backend_ops *backends[BENCH_BACKENDS_MAX];
    int backend_count;
};

/* -EINVAL: settings that contradict each other; -EOPNOTSUPP: not available here. Can be given to fini either way. */
int bench_plan_init(struct bench_plan *plan, const struct bench_options *options, struct wf_status *status);
void bench_plan_fini(struct bench_plan *plan);

/* Part of bench_plan_init(): fills in pairs, pattern and group, for endpoints and seed already set. In pairs.c. */
int bench_plan_pairs(struct bench_plan *plan, const struct wf_config *config, struct wf_status *status);

/* Counted iterations of a size, and how many of them may be under way at once. */
uint32_t bench_plan_iters(const struct bench_plan *plan, uint64_t size);
uint32_t bench_plan_slots(const struct bench_plan *plan, uint64_t size);

/* Areas that the messages of a size take turns in at a receiver: iteration i lands in area i modulo this, or, with the
 * setting `buffers` 0, in that of its slot. */
uint32_t bench_plan_areas(const struct bench_plan *plan, uint64_t size);

uint64_t bench_plan_largest(const struct bench_plan *plan);

/* Most pairs of a phase in `mode` that `node` receives on, and those that it sends on. A ping-pong is both at either.
 */
uint32_t bench_plan_receivers(const struct bench_plan *plan, enum bench_mode mode, int node);
uint32_t bench_plan_senders(const struct bench_plan *plan, enum bench_mode mode, int node);

uint64_t bench_plan_samples(const struct bench_plan *plan);

/* Equal on both nodes, or the two would wait for each other. */
uint64_t bench_plan_digest(const struct bench_plan *plan);

const char *bench_mode_name(enum bench_mode mode);

/* "node0:host3". Returns `buffer`. */
char *bench_endpoint_name(int node, uint32_t endpoint, char *buffer, size_t room);

#endif
