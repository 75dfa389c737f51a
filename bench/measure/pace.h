/*
 * pace.h: how many messages a phase measures where nobody has said it (iters auto). Its warm-up is sent in rounds that
 * grow, until one of them is long enough to tell what a message takes; then
 *
 *     iterations = share of the time / time of a message in the last round,    least <= iterations <= most
 *
 * The warm-up takes a tenth of the share, or one round. Both nodes go by the longer of their times, and so come to the
 * same numbers.
 */
#ifndef WF_BENCH_PACE_H
#define WF_BENCH_PACE_H

#include <stdint.h>

#include "rounds.h"

struct bench_pace {
    uint32_t first;       /* messages of the first round */
    uint32_t least, most; /* iterations that are measured; equal: their number is known */
    int64_t share_ns;     /* of the budget */
    int64_t each_ns;      /* of a message in the last round */
    uint32_t last, done;  /* messages of the last round, and of all */
    int64_t spent_ns;
};

/* `warmup`: messages that are sent first in any case; without them one is, if there is something to find out. */
void bench_pace_init(struct bench_pace *pace, const struct bench_budget *budget, uint32_t warmup, uint32_t least,
                     uint32_t most);

/* Messages of the next round of the warm-up; 0: it is over. */
uint32_t bench_pace_next(const struct bench_pace *pace);

/* A round of `count` messages took so long, the longer time of both nodes. */
void bench_pace_took(struct bench_pace *pace, uint32_t count, uint64_t elapsed_ns);

/* What is to be measured once the warm-up is over. */
uint32_t bench_pace_iters(const struct bench_pace *pace);

#endif
