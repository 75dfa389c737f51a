/*
 * criteria.h: whether a profile is worth anything: what was wanted of it, what was found, and whether that will do.
 * What cannot be said of this machine or this run is not applicable, with the reason; it is never met.
 */
#ifndef WF_BENCH_PROFILE_CRITERIA_H
#define WF_BENCH_PROFILE_CRITERIA_H

#include <stdio.h>

#include "model.h"

/* The figures that decide. */
struct bench_criteria_input {
    /* Of the run; who ran it fills them in. */
    uint64_t configs, complete; /* planned, and those with all their repetitions */
    uint64_t errors;            /* 1: bytes were wrong */
    uint32_t ranks, traces;     /* planned, and those whose trace was written */
    uint32_t sizes, sizes_complete;
    uint64_t seed;
    const char *digest; /* of the order of execution; NULL: it is not stated */
    double
        drift_ppm; /* the largest of any two clocks, without its sign, and its error; negative: it was not measured */
    uint64_t throttled;  /* messages during which a GPU was */
    bool watched;        /* GPUs were watched for that */
    uint32_t link_kinds; /* of pairs of GPUs: within a node, between the nodes */
    double kinds_ratio;  /* bandwidth of the best kind by that of the worst */
    bool model_written;

    /* Of the messages: bench_criteria_measure(). */
    uint32_t repeated, steady; /* sizes of links that were repeated, and those with a CV below 5 % */
    double cv_median;          /* of the repeated */
    uint32_t large, near;      /* links with large sizes, and those whose two largest come near to their best */
    double near_least;         /* the least share of the best */
    uint32_t small, even;      /* links with several small sizes, and those that take about the same time for them */
    double small_spread;       /* the largest (max - min) / median */
    uint32_t links, fitted;    /* and those with a model */
    uint32_t clear;            /* those whose model explains the times */
    double r2_least;           /* of them */
    uint32_t crossed;          /* those with a crossover within their sizes */
    double residual;           /* bench_model_residual() */
};

/* Leaves the figures of the run as they are. -ENOMEM. */
int bench_criteria_measure(const struct bench_model *model, struct bench_criteria_input *input,
                           struct wf_status *status);

enum bench_verdict {
    BENCH_NOT_MET,
    BENCH_MET,
    BENCH_NOT_APPLICABLE,
};

struct bench_criterion {
    const char *name, *wanted;
    enum bench_verdict verdict;
    char found[160]; /* the figures, or why it is not applicable */
};

#define BENCH_CRITERIA 13

void bench_criteria_judge(const struct bench_criteria_input *input, struct bench_criterion criteria[BENCH_CRITERIA]);

/* "met      low variance: 97.3 % of 372 configurations below 5 %, median 1.2 %", a line each. */
void bench_criteria_print(FILE *out, const struct bench_criterion *criteria, size_t count);

/* An array of objects: name, wanted, found, met (null: not applicable), reason. A new reference. */
json_t *bench_criteria_to_json(const struct bench_criterion *criteria, size_t count);

#endif
