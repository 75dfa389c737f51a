/*
 * found.h: what a sweep has found, and the forms of it: a table for people, JSON, CSV, and settings for WEFT_CONFIG.
 */
#ifndef WF_BENCH_FOUND_H
#define WF_BENCH_FOUND_H

#include <jansson.h>
#include <stdio.h>

#include "search.h"
#include "site.h"

/* Owner: the measuring thread. */
struct bench_found {
    const struct bench_options *options;
    const struct bench_space *space;
    const struct bench_search *search;
    const struct bench_site *site;
    json_t *runs;     /* as in the journal: {"point", "value", "cpu_s_per_gb", "error", "sets", ...} each */
    char started[32]; /* ISO 8601, UTC */
    char error[300];  /* why it ended early; "": it did not */
    int error_code;
};

/* A point in figures. */
struct bench_point_figures {
    double value;                   /* GB/s, or us; 0: no run worked */
    double spread;                  /* standard deviation over mean; negative: not known */
    double cpu_s_per_gb;            /* median; negative: not told */
    struct bench_comparison beside; /* the baseline, as scores: above 1 it is better than that */
    uint32_t runs, failures;
    const char *error; /* of the last run that failed; NULL: none did */
};
void bench_found_figures(const struct bench_found *found, uint32_t point, struct bench_point_figures *figures);

/* "GB/s" or "us". */
const char *bench_found_unit(const struct bench_found *found);

/* The values of a point's runs in the confirmation, or before it; returns how many. `values` NULL: counts only. */
size_t bench_found_values(const struct bench_found *found, uint32_t point, bool confirmation, double *values);

/* Whether a point besides the default was measured. */
bool bench_found_others(const struct bench_found *found);

/* One sentence: which point is best and by how much, or that none is. Returns `text`. */
char *bench_found_verdict(const struct bench_found *found, char *text, size_t room);

/* The table and the verdict. */
void bench_found_print(const struct bench_found *found, FILE *out);

/* schema weft.sweep/1; a new reference. */
json_t *bench_found_to_json(const struct bench_found *found);

/* All files that the options name; the first error is told. */
int bench_found_write(const struct bench_found *found, struct wf_status *status);

#endif
