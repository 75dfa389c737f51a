/*
 * choose.h: inside of a search: search.c keeps the runs and makes batches of points, choose.c says which points.
 */
#ifndef WF_BENCH_CHOOSE_H
#define WF_BENCH_CHOOSE_H

#include "search.h"

#define BENCH_FAILURES_MOST 2 /* of a point */
#define BENCH_BETWEEN 8       /* points of a search between two runs of the baseline */
#define BENCH_BEST_MOST 4

/* Puts the points of the next batch of this stage into `chosen`; false: the stage is over. */
bool bench_search_choose(struct bench_search *search);

/* --- in search.c --- */

/* The best points, the best first; returns how many there are, at most `most`, which is at most BENCH_BEST_MOST. */
uint32_t bench_search_find_best(const struct bench_search *search, uint32_t *best, uint32_t most);

/* Two points in the batches that have both, before the confirmation or in it. */
void bench_search_compare_two(const struct bench_search *search, uint32_t point, uint32_t other, bool confirmation,
                              struct bench_comparison *out);

/* An order by `state`, the same every time. */
void bench_search_shuffle(uint32_t *points, uint32_t count, uint64_t state);

/* Runs that are left before the confirmation. */
uint32_t bench_search_runs_left(const struct bench_search *search);

/* Runs that so many points of a search take, with the baseline between them. */
uint32_t bench_search_runs_of(uint32_t points);

#endif
