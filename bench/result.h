/*
 * result.h: everything a run has found out so far, from which the report and the files are made. A run that is
 * interrupted leaves what was there: the lock is held while something is added, so that the signal thread can write
 * the rest out.
 */
#ifndef WF_BENCH_RESULT_H
#define WF_BENCH_RESULT_H

#include <jansson.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

#include "options.h"
#include "sample.h"
#include "schedule.h"

/* One (backend, mode, size): what all pairs came to together. */
struct bench_set {
    const struct bench_backend_ops *backend;
    enum bench_mode mode;
    uint64_t size;
    uint64_t bytes;
    int64_t elapsed_ns;  /* loaded: barrier to last completion; isolated: 0 */
    double cpu_s_per_gb; /* loaded; negative: none */
};

struct bench_result {
    pthread_mutex_t lock;
    const struct bench_options *options;
    const struct bench_plan *plan; /* NULL until there is one */
    int node;
    char started[32]; /* ISO 8601, UTC */
    char stamp[32];   /* for file names: the same on both nodes */
    struct bench_rail_names rails[2];
    json_t *host[2], *rail_totals[2], *fallbacks[2]; /* as they stand in the result; NULL: not known */
    struct bench_sample *samples;
    size_t sample_count, sample_room;
    struct bench_set *sets;
    int set_count;
    bool complete; /* everything of the plan ran */
    bool interrupted;
    char error[256]; /* empty: none */
    bool written;    /* the files */
};

void bench_result_init(struct bench_result *result, const struct bench_options *options, int node);
void bench_result_fini(struct bench_result *result);

/* "20250131T120000Z" of now, and the readable form of such a stamp. */
void bench_result_stamp(struct bench_result *result, const char *stamp);

int bench_result_add(struct bench_result *result, const struct bench_sample *sample, struct wf_status *status);
int bench_result_add_set(struct bench_result *result, const struct bench_set *set, struct wf_status *status);

/* Sum over all samples; samples that were not checked count nothing. */
uint64_t bench_result_wrong_bytes(const struct bench_result *result);

/* Whether there are samples, and the bytes of some were checked. */
bool bench_result_checked(const struct bench_result *result);

/* All ran, and what was to be checked was right. */
bool bench_result_passed(const struct bench_result *result);

/* Whether a sample belongs to a set. */
bool bench_sample_in_set(const struct bench_sample *sample, const struct bench_set *set);

/* Rates of the samples of a set, in GB/s: `rates` has room for all samples; returns how many there are. */
size_t bench_set_rates(const struct bench_result *result, const struct bench_set *set, double *rates);

/* Aggregate of a loaded set in GB/s; negative: none. */
double bench_set_aggregate(const struct bench_set *set);

/* --- written by result_json.c, result_csv.c, logs.c, report.c; 0 or -errno with `status` --- */

int bench_result_json(const struct bench_result *result, const char *path, struct wf_status *status);
int bench_result_csv(const struct bench_result *result, const char *path, struct wf_status *status);
int bench_result_logs(const struct bench_result *result, const char *folder, struct wf_status *status);
void bench_report(const struct bench_result *result, FILE *out);

/* Creates the folder and those above it. */
int bench_make_folder(const char *path, struct wf_status *status);

/* Settings with value and origin, as in a result. */
json_t *bench_config_to_json(const struct wf_config *config);

/* All files that the options ask for, once; takes the lock. */
int bench_result_write(struct bench_result *result, struct wf_status *status);

#endif
