/*
 * levels.h: the levels and scores of a mesh's links, as odd.h defines them, the medians of a place's links, and how far
 * levels and scores lie around zero.
 */
#ifndef WF_BENCH_LEVELS_H
#define WF_BENCH_LEVELS_H

#include <stdbool.h>
#include <stddef.h>

#include "odd.h"

#define BENCH_MAD_TO_SIGMA 1.4826 /* of a normal distribution */

/* One direction. */
struct bench_levels_side {
    size_t sources, targets, pairs, used; /* sizes that count */
    double *levels;                       /* [size][pair], in those sizes; NaN: none */
    double *scores;                       /* of a pair; NaN: none */
    double *raw;                          /* what these were at first */
};

/* Of both directions. */
struct bench_levels {
    struct bench_levels_side forth, back; /* of none there are no pairs */
    double *memory;                       /* all of the above and below; owned */
    double *room;                         /* for the pairs of both */
    size_t *used;                         /* indexes of the sizes that count; owned */
    const struct bench_links *links;
};

/* A source or a target of one direction; where both are the same nodes, a node with all that it sends and receives. */
enum bench_levels_role { BENCH_LEVELS_RECEIVES, BENCH_LEVELS_SENDS, BENCH_LEVELS_BOTH, BENCH_LEVELS_ROLES };

struct bench_levels_place {
    enum bench_levels_role role;
    size_t index;
};

/* -ENOMEM. Can be given to fini either way. */
int bench_levels_init(struct bench_levels *levels, const struct bench_links *links);
void bench_levels_fini(struct bench_levels *levels);

/* Levels and scores of the sizes that count. False: there are none. */
bool bench_levels_measure(struct bench_levels *levels);

/* Measures levels anew, from their median or that of the pairs that are not of a place, and makes scores of them. */
void bench_levels_settle(struct bench_levels_side *side, const struct bench_levels_place *without, double *room);

bool bench_levels_is_of(const struct bench_levels_side *side, const struct bench_levels_place *place, size_t pair);

/* How many places of a role there are. */
size_t bench_levels_places(const struct bench_levels_side *side, enum bench_levels_role role);

/* Median of the values that are the place's; of the levels or scores that are not; and the first less the second. */
double bench_levels_median(const struct bench_levels_side *side, const struct bench_levels_place *place,
                           const double *values, double *room);
double bench_levels_usual(const struct bench_levels_side *side, const struct bench_levels_place *place,
                          const double *values, double *room);
double bench_levels_effect(const struct bench_levels_side *side, const struct bench_levels_place *place,
                           const double *values, double *room);

/* Sigma and noise of one direction, and sigma as if the place had no effect. */
double bench_levels_sigma(const struct bench_levels *levels, const struct bench_levels_side *side);
double bench_levels_noise(const struct bench_levels *levels, const struct bench_levels_side *side);
double bench_levels_sigma_without(const struct bench_levels *levels, const struct bench_levels_side *side,
                                  const struct bench_levels_place *place, double effect);

#endif
