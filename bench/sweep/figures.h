/*
 * figures.h: what the runs of a point come to. A score is better the larger it is.
 */
#ifndef WF_BENCH_FIGURES_H
#define WF_BENCH_FIGURES_H

#include <stddef.h>

/* The median; sorts `values`. 0 where there are none. */
double bench_figures_median(double *values, size_t count);

/* Standard deviation over mean; negative where there are fewer than two. */
double bench_figures_cv(const double *values, size_t count);

#define BENCH_PAIRS_LEAST 3 /* of fewer an interval says nothing */

/* How many times `theirs` `ours` is, in pairs of one round each: what disturbs a round disturbs both. */
struct bench_comparison {
    size_t pairs;     /* 0: nothing else counts */
    double ratio;     /* geometric mean of ours / theirs */
    double low, high; /* its 95 % interval (Student's t of the logarithms); with one pair 0 and infinity */
};

void bench_figures_compare(const double *ours, const double *theirs, size_t pairs, struct bench_comparison *out);

#endif
