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

/* A backend that the setting `backend` may name. A list of them ends with one without a name. */
struct bench_backend_choice {
    const char *name; /* as in its table */
    const struct bench_backend_ops *ops;
};

/* The entry of that name; NULL: there is none. */
const struct bench_backend_choice *bench_backend_find(const struct bench_backend_choice *choices, const char *name);

#define BENCH_SIZES_MAX 64
#define BENCH_BACKENDS_MAX 4

/* What is verified, in the order of the setting's choices. */
enum bench_check {
    BENCH_CHECK_NONE,
    BENCH_CHECK_AGAIN, /* what is sent again after the timed pass; see bench/measure/rounds.h */
    BENCH_CHECK_ALL    /* and what is timed */
};

enum bench_mode { BENCH_ISOLATED, BENCH_LOADED, BENCH_MODES };

/* What the messages of a node lie in. Emulated is what the driver of the tests has: no GPU is behind it. */
enum bench_memory { BENCH_HOST, BENCH_CUDA, BENCH_EMULATED, BENCH_MEMORIES };

/* A directed pair: src sends to dst. Two nodes are 0 (listens) and 1 (connects); more have their ranks. */
struct bench_pair {
    uint32_t src, dst;
    uint16_t src_node, dst_node;
    uint8_t src_memory, dst_memory; /* enum bench_memory */
};

static inline bool bench_pair_equal(const struct bench_pair *a, const struct bench_pair *b)
{
    return a->src == b->src && a->dst == b->dst && a->src_node == b->src_node && a->dst_node == b->dst_node;
}

/* Two nodes of a group that measure together while others do the same, or one with itself (low == high). */
struct bench_bout {
    uint16_t low, high;
    uint32_t round;        /* in which no node is twice */
    uint32_t first, count; /* of the plan's pairs */
};

struct bench_plan {
    enum bench_command command;
    bool latency; /* ping-pong instead of bandwidth */
    enum bench_check check;
    int64_t check_time_ns; /* of a set */
    bool modes[BENCH_MODES];
    bool intra;         /* some pairs lie within one node */
    uint32_t endpoints; /* per node */
    bool by_gpus;       /* one for each GPU of this node, as nobody has said how many */
    struct {
        enum bench_memory memory;
        uint32_t gpus; /* that its endpoints take in turn; 0: host memory */
    } nodes[BENCH_NODES_MOST];
    int node_count;
    int processes; /* of a node, each of which stands in this plan as one of its own, with a share of the endpoints */
    uint32_t inflight;   /* messages outstanding per pair; 0: by the command and the size */
    uint32_t buffers;    /* that the messages of a pair take turns in, at each side; 0: see bench_plan_areas() */
    uint64_t background; /* latency: bytes of the messages that are exchanged meanwhile; 0: none */
    uint32_t background_inflight;
    uint32_t iters, warmup; /* per size; iters 0: what fits into the share of the size, see bench/measure/pace.h */
    int64_t auto_ns;        /* that all timed messages shall take, with iters 0 */
    uint64_t seed;
    uint64_t chunk; /* of this node's settings; the other may have another one */
    const char *pattern;
    uint64_t sizes[BENCH_SIZES_MAX]; /* ascending, no two equal */
    int size_count;
    struct bench_pair *pairs; /* owned; shuffled by the seed */
    uint32_t pair_count;
    uint32_t group; /* pairs that run together when isolated: 1, or 2 for bidir */
    /* Of a group of nodes; else there are none: */
    struct bench_bout *bouts; /* owned; by round. The pairs are in their order */
    uint32_t bout_count, round_count;
    uint32_t busiest; /* most pairs that one node has an end of */
    const struct bench_backend_ops *backends[BENCH_BACKENDS_MAX];
    const char *backend_names[BENCH_BACKENDS_MAX]; /* as they were asked for */
    const char *nccl_library;                      /* where NCCL is looked for, "": in the usual places */
    const char *plugin_library;                    /* the same of its net plugin */
    int backend_count;
};

/* -EINVAL: settings that contradict each other; -EOPNOTSUPP: not available here. Can be given to fini either way. */
int bench_plan_init(struct bench_plan *plan, const struct bench_options *options, struct wf_status *status);
void bench_plan_fini(struct bench_plan *plan);

/* The pair by node and endpoint, where the plan has processes of nodes. */
struct bench_pair bench_plan_outer(const struct bench_plan *plan, const struct bench_pair *pair);

/* What is known of a node's memory before the nodes meet, or once they have: the plan says host at first. */
void bench_plan_set_memory(struct bench_plan *plan, int node, enum bench_memory memory, uint32_t gpus);

/* Most pairs of a phase in `mode` that one node takes part in, the same at all nodes. */
uint32_t bench_plan_span(const struct bench_plan *plan, enum bench_mode mode);

/* Part of bench_plan_init(): the sizes alone. */
int bench_plan_sizes(struct bench_plan *plan, const struct wf_config *config, struct wf_status *status);

/* Counted iterations of a size, at least and, in a phase of so many pairs, at most; and how many of them may be under
 * way at once. The first two are equal unless plan->iters is 0. */
uint32_t bench_plan_iters(const struct bench_plan *plan, uint64_t size);
uint32_t bench_plan_most_iters(const struct bench_plan *plan, uint64_t size, uint32_t pairs);
uint32_t bench_plan_slots(const struct bench_plan *plan, uint64_t size);

/* Time of one backend, mode and size for messages that are timed, with iters 0. */
int64_t bench_plan_share_ns(const struct bench_plan *plan);

/* Areas that the messages of a size take turns in at a receiver: iteration i lands in area i modulo this, or, with the
 * setting `buffers` 0, in that of its slot. */
uint32_t bench_plan_areas(const struct bench_plan *plan, uint64_t size);

uint64_t bench_plan_largest(const struct bench_plan *plan);

/* Most pairs of a phase in `mode` that `node` sends on. Both nodes send and receive on the pair of a ping-pong. */
uint32_t bench_plan_senders(const struct bench_plan *plan, enum bench_mode mode, int node);

/* Most pairs that one of the `places` receives or sends on, which the endpoints of the node take in turn. */
uint32_t bench_plan_receivers_at(const struct bench_plan *plan, enum bench_mode mode, int node, uint32_t places,
                                 uint32_t place);
uint32_t bench_plan_senders_at(const struct bench_plan *plan, enum bench_mode mode, int node, uint32_t places,
                               uint32_t place);

uint64_t bench_plan_samples(const struct bench_plan *plan);

/* Equal on both nodes, or the two would wait for each other. */
uint64_t bench_plan_digest(const struct bench_plan *plan);

const char *bench_mode_name(enum bench_mode mode);

#endif
