/*
 * measure.h: one phase: some pairs, one size, one mode.
 *
 *     warm-up | barrier | iterations, timed | barrier | the same iterations, verified | barrier | ...      see rounds.h
 *
 * The clock of a receiver runs from the start barrier to its completions; an iteration's time is between completions.
 * In a verified segment a landing is poisoned before a message is received there, and compared with what was sent as
 * soon as it has come, before anything else lands there. With `check` all that is done in the timed segment, too.
 *
 * Where w messages may be outstanding, completions come in batches, so a time is taken over w of them, and counts for
 * each of the w iterations; the last group may be smaller:
 *
 *     time = (completed[last of the group] - completed[last of the group before]) / w      before the first: the start
 *
 * Groups do not overlap and leave nothing out, so the mean of all times is all time over all iterations, and lies
 * between the least and the largest. w is `inflight`. Messages so small that a send is done before its message has
 * landed are under way in any number: how they are batched at the receiver says nothing about a message, and all of
 * them are one group.
 */
#ifndef WF_BENCH_MEASURE_H
#define WF_BENCH_MEASURE_H

#include "arena.h"
#include "backend.h"
#include "control.h"
#include "result.h"
#include "rounds.h"
#include "schedule.h"

/* What every phase works on. Owner: the measuring thread. */
struct bench_bed {
    const struct bench_plan *plan;
    int node;
    struct bench_control *control;
    const struct bench_arena *arena;
    struct bench_placement *placement;
    const struct bench_backend_ops *ops; /* in use now */
    struct bench_backend *backend;
    struct bench_backend *backends[BENCH_BACKENDS_MAX]; /* all that are open, as the plan has them; NULL: it is not */
    uint64_t copied_up_to;       /* messages of up to so many bytes may be done at the sender before they land */
    uint64_t serial;             /* phases so far, the same on both nodes: tag of their messages */
    struct bench_budget *budget; /* of the set that is measured now */
};

/* What runs from one barrier to its end. */
struct bench_segment {
    uint32_t first, count; /* iterations */
    bool timed, verified;
};

/* What a phase came to on this node and the other. */
struct bench_phase_sum {
    int64_t elapsed_ns;  /* the longer of both nodes: barrier to last completion */
    uint64_t bytes;      /* counted bytes of all pairs */
    double cpu_s_per_gb; /* negative: no bytes */
};

/* Measures the pairs [first, first + count) of the plan together; a sample for each that this node receives goes to
 * `result`. */
int bench_measure(struct bench_bed *bed, enum bench_mode mode, uint64_t size, uint32_t first, uint32_t count,
                  struct bench_result *result, struct bench_phase_sum *sum, struct wf_status *status);

/* The same for ping-pong: one pair, half round trips at the source. */
int bench_measure_latency(struct bench_bed *bed, uint64_t size, uint32_t pair, struct bench_result *result,
                          struct wf_status *status);

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

/* Adds to `news` what became of `count` rails between two looks at them. */
void bench_count_events(const struct weft_rail_stats *before, const struct weft_rail_stats *after, int count,
                        struct bench_news *news);

#endif
