/*
 * spread.h: what the pairs of one set and direction came to. Pure figures; the words are report's.
 *
 *     a pair's rate = size / its median time,      a direction's figures are over the rates of its pairs
 *
 * Of a single pair, figures are over the times of its messages.
 */
#ifndef WF_BENCH_SPREAD_H
#define WF_BENCH_SPREAD_H

#include "result.h"

/* From the endpoints of one node to those of another, or the same; of more than two nodes, between any two, or within
 * any. */
struct bench_way {
    int src_node, dst_node; /* both BENCH_ANY_TWO, or both BENCH_ANY_ONE */
};

#define BENCH_ANY_TWO (-1)
#define BENCH_ANY_ONE (-2)

#define BENCH_WAYS 4
extern const struct bench_way bench_ways[BENCH_WAYS];

static inline bool bench_pair_goes(const struct bench_pair *pair, const struct bench_way *way)
{
    if (way->src_node < 0)
        return (pair->src_node == pair->dst_node) == (way->src_node == BENCH_ANY_ONE);
    return pair->src_node == way->src_node && pair->dst_node == way->dst_node;
}

/* The ways that lines are about: of two nodes each, of more all together. `*count`: how many. */
const struct bench_way *bench_ways_of(const struct bench_result *result, int *count);

/* "0>1"; "all", "own". */
const char *bench_way_text(const struct bench_way *way, char *text, size_t room);

/* Whether the plan has pairs that go this way. */
bool bench_plan_has_way(const struct bench_plan *plan, const struct bench_way *way);

struct bench_spread {
    size_t pairs;    /* 0: nothing else counts */
    bool by_message; /* a single pair */
    bool grouped;    /* all messages of a pair share one time: of them there is no spread */
    bool counted;    /* and that although they were not all in flight at once: their number by the second is a rate */
    double min, p10, median, p90; /* GB/s; negative: nothing was moved */
    double cv;             /* standard deviation over mean, of rates, or of a single pair's times; negative: none */
    double time_us;        /* of a message: median of the pairs' medians */
    double messages_per_s; /* of a pair, median */
    double together;       /* loaded: GB/s of all pairs of this way; negative: none */
    uint32_t iters;        /* of the pair that had fewest */
    uint64_t wrong;
    bool checked, failed; /* bytes were compared; a rail failed meanwhile */
};

/* `room` has room for all samples of the result. */
void bench_spread_of(const struct bench_result *result, const struct bench_set *set, const struct bench_way *way,
                     double *room, struct bench_spread *spread);

/* The rates of the pairs of this way; returns how many there are. */
size_t bench_way_rates(const struct bench_result *result, const struct bench_set *set, const struct bench_way *way,
                       double *rates);

/* Two groups of pairs, each with rates close together and far from the other's. */
struct bench_groups {
    size_t low_count, high_count;
    double low, high; /* their medians */
    double bound;     /* no rate of the lower group is above it */
};

/* Whether there are two. Sorts the rates. */
bool bench_groups_find(double *rates, size_t count, struct bench_groups *groups);

/* The sample of a set and pair; NULL: there is none. */
const struct bench_sample *bench_sample_find(const struct bench_result *result, const struct bench_set *set,
                                             const struct bench_pair *pair);

#endif
