/*
 * values.h: what the elements are before an operation, and what they have to be after it.
 *
 *     element i of rank r = a small whole number made of (i mod PERIOD, r), exact in every type
 *
 * The numbers are so small that no sum of them is rounded or wraps around, in any order: the expected result is exact,
 * and is compared bit by bit. PERIOD is a prime, so that a piece at a wrong place that is a power of two away shows.
 * An average is a whole number, too, though each rank has another one; a difference in the last two places is allowed
 * there, since some multiply by 1/N.
 */
#ifndef WF_BENCH_RANK_VALUES_H
#define WF_BENCH_RANK_VALUES_H

#include "rank.h"

#define VALUES_PERIOD 65521
#define VALUES_RANKS_MAX 64 /* of a sum of uint8 that does not wrap around, and of bfloat16 that is not rounded */

/* Owner: one rank. */
struct values {
    uint32_t rank, ranks;
    void *block; /* one period */
};

int values_init(struct values *values, uint32_t rank, uint32_t ranks);
void values_fini(struct values *values);

/* How many elements `call` hands in and gets at a rank. */
uint64_t values_sent(const struct rank_call *call, uint32_t ranks);
uint64_t values_received(const struct rank_call *call, uint32_t ranks);

/* Writes what this rank hands in to `call->send`, which the caller may write to. */
void values_fill(struct values *values, const struct rank_call *call);

/* How many elements of `call->result` are not what they have to be; the first of them is `first`. */
uint64_t values_wrong(struct values *values, const struct rank_call *call, uint64_t *first);

#endif
