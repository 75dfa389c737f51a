/*
 * measure.h: one phase: some pairs, one size, one mode.
 *
 *     warm-up, see pace.h | barrier | iterations, timed | barrier | the same iterations, verified | barrier | ... see
 * rounds.h
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

#include "bed.h"
#include "bench/result/result.h"

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

/* One message of one pair, which travels alone. What this node has no part in stays as it was. */
struct bench_single {
    uint32_t pair;
    uint64_t size;
    uint32_t iteration; /* decides about its data; of a pair and size no two messages have the same */
    bool verified;      /* poisoned before, and compared afterwards */
    /* out: */
    int64_t posted_ns;      /* CLOCK_MONOTONIC: at the source just before it was posted, else soon after that */
    int64_t landed_ns;      /* at the destination: when the last byte was in its place */
    struct bench_news news; /* of this node: what became of its rails meanwhile */
    int rail_count;         /* at the destination: what came on which rail */
    uint64_t rail_bytes[BENCH_RAILS_MAX];
    uint64_t verified_bytes; /* added to */
    struct bench_wrong wrong;
};

/* Both nodes call it for every message, and return when both are done with it, also where one has no part in it. */
int bench_measure_single(struct bench_bed *bed, struct bench_single *single, struct wf_status *status);

#endif
