/*
 * search.h: which point is run next, and what the runs so far say. No clock and no network: the same space, seed and
 * scores give the same order, so that a sweep which was cut goes on from the list of its runs.
 *
 *     grid       every point once in each round, but for hopeless ones
 *     automatic  few points far apart; then the neighbours of the best, twice, nearer and nearer; then the best again
 *     both       at last the baseline and the best in turns; only these runs say whether the best is better, because a
 *                point is chosen for good runs, luck among them
 *
 * Runs are made in batches. A batch has each of its points once, in an order of its own: what disturbs the machine for
 * a while hits all points alike. A search has fewer batches than a grid, so in each of them the baseline comes first,
 * last, and between every BENCH_BETWEEN points: where it was slower than usual, what was run beside it does not count,
 * and is run again. A point that failed twice is not run again.
 */
#ifndef WF_BENCH_SEARCH_H
#define WF_BENCH_SEARCH_H

#include "figures.h"
#include "space.h"

enum bench_stage {
    BENCH_STAGE_FIRST,   /* the rounds of a grid, or the few points of a search */
    BENCH_STAGE_NEARER,  /* automatic: neighbours of the best */
    BENCH_STAGE_AGAIN,   /* automatic: the best once more */
    BENCH_STAGE_CONFIRM, /* baseline and best in turns */
    BENCH_STAGE_OVER
};

/* One run. */
struct bench_trial {
    uint32_t point, batch;
    enum bench_stage stage;
    double score;  /* larger is better; 0: it failed */
    bool doubtful; /* the machine was disturbed meanwhile: it does not count */
};

struct bench_tally {
    uint32_t runs, failures; /* of all stages */
    bool hopeless;           /* was far from the best in every round */
};

/* Owner: one thread. */
struct bench_search {
    const struct bench_space *space;
    uint32_t rounds; /* of a grid, and of the confirmation */
    bool automatic;
    uint32_t runs_most; /* that there can be, with the confirmation */
    uint64_t seed;
    enum bench_stage stage;
    struct bench_trial *trials;
    size_t trial_count;
    struct bench_tally *tallies;    /* one for each point */
    uint32_t *chosen, chosen_count; /* the points of the batches that are planned now */
    uint32_t *batch;                /* in the order of their runs */
    uint32_t batch_count, batch_at, batch_number;
    uint32_t batches;           /* of this stage that were planned */
    int stride[BENCH_AXES_MAX]; /* how far a neighbour is */
    bool settled;               /* `best` is what the confirmation is about */
    uint32_t best;
    bool again;         /* the batch of neighbours is run once more */
    uint32_t disturbed; /* runs that did not count */
    double *room;       /* for figures */
};

/* `runs_most` 0: of a grid all, of a search a third of what the grid takes. A small grid is run whole. -ENOMEM. `space`
 * outlives the search. */
int bench_search_init(struct bench_search *search, const struct bench_space *space, bool automatic, uint32_t rounds,
                      uint32_t runs_most, uint64_t seed, struct wf_status *status);
void bench_search_fini(struct bench_search *search);

/* The point to be run now; false: it is over. */
bool bench_search_next(struct bench_search *search, uint32_t *point);

/* What that run has come to; 0: it failed. */
void bench_search_take(struct bench_search *search, double score);

/* The median score of a point before the confirmation, of two runs the better; 0: none worked. */
double bench_search_score(const struct bench_search *search, uint32_t point);

/* The best point so far; the baseline where none worked. Final once the stage is CONFIRM. */
uint32_t bench_search_best(const struct bench_search *search);

/* A point beside the baseline, in the batches before the confirmation; of the best, what the confirmation says. */
void bench_search_compare(const struct bench_search *search, uint32_t point, struct bench_comparison *out);
void bench_search_confirmed(const struct bench_search *search, struct bench_comparison *out);

/* Whether the best is better than the baseline by more than their noise: the confirmation's interval is above 1. */
bool bench_search_wins(const struct bench_search *search);

#endif
