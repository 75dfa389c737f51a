/*
 * phase.h: the inside of a phase: its flows and its segments; see measure.h.
 */
#ifndef WF_BENCH_PHASE_H
#define WF_BENCH_PHASE_H

#include "bed.h"

/* One direction of one pair, as this node sees it. */
struct bench_flow {
    uint32_t pair;
    bool receives;
    uint32_t sender;       /* number of the pair among those that its source sends on */
    uint32_t place;        /* of the arena: where it leaves from, or lands */
    uint32_t landing;      /* number of its first landing there */
    uint32_t posted, done; /* of the segment */
    int64_t *completed;    /* receiver: of the timed segment */
    double *times;         /* receiver: of all counted iterations, ns */
    uint32_t time_count;
    uint64_t verified_bytes;
    struct bench_wrong wrong;
};

struct bench_phase {
    struct bench_bed *bed;
    enum bench_mode mode;
    uint64_t size;
    uint32_t first, count; /* pairs */
    uint32_t iters;        /* that are timed; 0 until bench_phase_set_iters() */
    uint32_t warmed;       /* messages of the warm-up: iterations count on from there */
    uint32_t slots;
    uint32_t areas; /* landings of a flow */
    uint64_t tag;
    struct bench_flow *flows;
    uint32_t flow_count, receivers;
    uint32_t *landings;      /* by place: so many are taken */
    bench_request *requests; /* flow x slot */
    uint32_t *iterations;    /* flow x slot: the iteration that was posted last */
    uint32_t live;           /* requests under way */
    int64_t *completed;      /* memory of the flows' lists */
    double *times;
    int64_t posted_ns;        /* just before the first send of the last segment */
    int64_t elapsed_ns;       /* timed segments: start to last completion here */
    struct bench_usage usage; /* of timed segments */
    struct weft_rail_stats before[2][BENCH_RAILS_MAX], after[2][BENCH_RAILS_MAX]; /* [intra] */
    int rail_count[2];
    struct bench_direct direct;     /* before the timed segment */
    struct bench_news mine, theirs; /* of the timed segment */
};

/* Lists of flows and requests for bed, size and pairs already set. Can be given to fini either way. */
int bench_phase_init(struct bench_phase *phase, struct wf_status *status);
void bench_phase_fini(struct bench_phase *phase);

/* Once, before a timed segment: room for the times of so many iterations. */
int bench_phase_set_iters(struct bench_phase *phase, uint32_t iters, struct wf_status *status);

/* Where an iteration of a flow lands that is posted in `slot`. */
uint8_t *bench_phase_landing(const struct bench_phase *phase, const struct bench_flow *flow, uint32_t slot,
                             uint32_t iteration);
/* What iteration `iteration` of a flow carries, in host memory. */
const uint8_t *bench_phase_data(const struct bench_phase *phase, const struct bench_flow *flow, uint32_t iteration);

/* Completions that a time is taken over. */
uint32_t bench_phase_group(const struct bench_phase *phase);

/* Barrier, then all iterations of the segment. A timed one fills the times of the flows, a verified one counts what it
 * verified and what was wrong. */
int bench_phase_run(struct bench_phase *phase, const struct bench_segment *segment, struct wf_status *status);

#endif
