/*
 * bed.h: what every phase of a run works on, and what they all do with it: count what the process uses and what the
 * rails do, poison a landing, and compare it with what was sent.
 */
#ifndef WF_BENCH_BED_H
#define WF_BENCH_BED_H

#include "bench/backends/backend.h"
#include "bench/buffers/arena.h"
#include "bench/buffers/pattern.h"
#include "bench/machine/load.h"
#include "bench/nodes/control.h"
#include "bench/plan/schedule.h"
#include "bench/result/path.h"
#include "rounds.h"

/* What every phase works on. Owner: the measuring thread. */
struct bench_bed {
    const struct bench_plan *plan;
    int node;
    bool leads; /* where neither node of a phase receives alone, the start barrier */
    struct bench_control *control;
    const struct bench_arena *arena;
    struct bench_placement *placement;
    const struct bench_backend_ops *ops; /* in use now */
    struct bench_backend *backend;
    struct bench_backend *backends[BENCH_BACKENDS_MAX]; /* all that are open, as the plan has them; NULL: it is not */
    uint64_t copied_up_to;       /* messages of up to so many bytes may be done at the sender before they land */
    uint64_t serial;             /* phases so far, the same on both nodes: tag of their messages */
    struct bench_budget *budget; /* of the set that is measured now: the time for what is verified, */
    struct bench_budget *pace;   /* and for what is timed, with iters auto */
    struct bench_load *load;     /* what its timed messages kept busy */
};

/* What runs from one barrier to its end. */
struct bench_segment {
    uint32_t first, count; /* iterations */
    bool timed, verified;
};

/* What this process has used, all its threads together. */
struct bench_usage {
    uint64_t cpu_ns;
    uint64_t page_faults; /* minor and major */
};

void bench_usage_now(struct bench_usage *usage);
/* Adds to `sum` what was used since `before`. */
void bench_usage_since(const struct bench_usage *before, struct bench_usage *sum);

/* Whether a segment that is sent again is verified, and whether a timed one is. */
bool bench_verifies(const struct bench_bed *bed);
bool bench_verifies_timed(const struct bench_bed *bed);

/* Overwrites a landing and its guard in a place of the arena; compares them with what was sent. What takes long looks
 * up now and then: 0, or what bench_control_check() says. */
int bench_poison(const struct bench_bed *bed, uint32_t place, uint8_t *landing, uint64_t size,
                 struct wf_status *status);
int bench_check(const struct bench_bed *bed, uint32_t place, const uint8_t *landing, const uint8_t *expected,
                uint64_t size, uint64_t iteration, struct bench_wrong *wrong, struct wf_status *status);

/* A phase ends while some of its requests are under way (NULL: none at this place). */
void bench_abandon(const struct bench_bed *bed, const bench_request *requests, size_t count);

/* The counters of the rails between the nodes, or of those within this node: fills up to BENCH_RAILS_MAX of `stats` and
 * returns how many. 0: the backend has none, or cannot tell. */
int bench_rails_now(const struct bench_bed *bed, bool intra, struct weft_rail_stats *stats);

/* Payload between the nodes that network cards have read and written in this node's GPU memory themselves, so far. */
struct bench_direct {
    uint64_t sent, received;
};

/* All 0: none, or the backend does not tell. */
void bench_direct_now(const struct bench_bed *bed, struct bench_direct *direct);
/* What has become of it since `before`, as news of a timed segment. */
void bench_direct_since(const struct bench_bed *bed, const struct bench_direct *before, struct bench_news *news);
/* The path of `all` bytes of a segment in this kind of memory, of which so many went without a copy. */
enum bench_path bench_bed_path(const struct bench_bed *bed, enum bench_memory memory, uint64_t direct, uint64_t all);

/* Adds to `news` what became of `count` rails between two looks at them. */
void bench_count_events(const struct weft_rail_stats *before, const struct weft_rail_stats *after, int count,
                        struct bench_news *news);

#endif
