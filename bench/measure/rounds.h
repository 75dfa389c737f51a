/*
 * rounds.h: the pass that verifies what was measured. The messages of a phase are sent again in order, in rounds, until
 * all of them are verified or the time of the set is over, at least one window of them:
 *
 *     window <= verified iterations <= iterations
 *
 * A node knows only its own clock. So the nodes tell each other after each round how long it took, and both go by the
 * longer time: they come to the same number of iterations for the next round, or to the same end.
 */
#ifndef WF_BENCH_ROUNDS_H
#define WF_BENCH_ROUNDS_H

#include <stdint.h>

#include "base/status.h"
#include "bench/nodes/control.h"

/* The time of a set (one backend, mode and size), which its phases share: what one does not need is left to the others.
 */
struct bench_budget {
    int64_t left_ns;
    uint32_t phases; /* still to come */
};

/* A phase is over. What it took beyond its share is taken from the others, which then do the least they have to. */
void bench_budget_spend(struct bench_budget *budget, int64_t spent_ns);

struct bench_rounds {
    uint32_t iters, window; /* of the timed pass; the least that is verified */
    int64_t share_ns;       /* of the budget */
    int64_t each_ns;        /* what an iteration is expected to take */
    uint32_t done;          /* iterations */
    int64_t spent_ns;
};

/* `timed_ns`: what the timed pass took, the longer time of both nodes. */
void bench_rounds_init(struct bench_rounds *rounds, const struct bench_budget *budget, uint32_t iters, uint32_t window,
                       uint64_t timed_ns);

/* Iterations of the next round; 0: the pass is over. */
uint32_t bench_rounds_next(const struct bench_rounds *rounds);

/* A round of `count` iterations took so long, the longer time of both nodes. */
void bench_rounds_took(struct bench_rounds *rounds, uint32_t count, uint64_t elapsed_ns);

/* Sends and verifies `count` iterations from `first` on, the first one of the timed pass being 0. */
typedef int bench_round(void *context, uint32_t first, uint32_t count, struct wf_status *status);

/* All rounds; takes their time from the budget. 0, or what `round` or the control connection failed with. */
int bench_rounds_run(struct bench_rounds *rounds, struct bench_budget *budget, struct bench_control *control,
                     bench_round *round, void *context, struct wf_status *status);

#endif
