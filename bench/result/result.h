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

#include "bench/machine/load.h"
#include "bench/plan/options.h"
#include "bench/plan/schedule.h"
#include "sample.h"

/* How far apart the nodes are. */
enum bench_nearness {
    BENCH_APART,       /* as far as is known */
    BENCH_ONE_MACHINE, /* in networks of their own on one machine */
    BENCH_LOOPBACK     /* in one network of one machine: whatever the rails are called, nothing leaves it */
};

/* One (backend, mode, size): what all pairs came to together. */
struct bench_set {
    const struct bench_backend_ops *backend;
    enum bench_mode mode;
    uint64_t size;
    uint64_t bytes;
    int64_t elapsed_ns;      /* loaded: barrier to last completion; isolated: 0 */
    double cpu_s_per_gb;     /* loaded; negative: none */
    double ended_s;          /* seconds from the meeting of the nodes to the end of its last message */
    struct bench_busy *busy; /* at each node, while its messages were timed; the result's are its own */
};

/* How the run came to its end before all was measured. */
enum bench_cut_by {
    BENCH_CUT_NOT,     /* it did not */
    BENCH_CUT_SIGNAL,  /* a node got one */
    BENCH_CUT_LOSS,    /* a node was not to be reached any more */
    BENCH_CUT_FAILURE, /* something went wrong at a node */
};

struct bench_cut {
    enum bench_cut_by by;
    int node;        /* which one */
    int signal;      /* which one */
    int code;        /* negative errno */
    int exit_status; /* that this node ends with */
};

struct bench_result {
    pthread_mutex_t lock;
    const struct bench_options *options;
    const struct bench_plan *plan; /* NULL until there is one */
    int node;
    int node_count;
    uint32_t first_endpoint; /* of those that this process has of its node; all of them: 0, and of the plan */
    uint32_t endpoint_count; /* 0: all */
    uint32_t at_once; /* node pairs of many nodes that were measured at a time when isolated; 0: all that can be */
    char started[32]; /* ISO 8601, UTC */
    char stamp[32];   /* for file names: the same on all nodes */
    /* By node: */
    struct bench_rail_names *rails;
    json_t **host, **rail_totals, **fallbacks, **faults; /* as they stand in the result; NULL: not known */
    struct bench_sample *samples;
    size_t sample_count, sample_room;
    struct bench_set *sets;
    int set_count;
    enum bench_nearness nearness;
    int64_t begun_ns;       /* when the nodes met; 0: they have not */
    int64_t took_ns;        /* from there to the end */
    bool shown_head;        /* of the report, */
    size_t shown_fallbacks; /* so many of its own lines, */
    int shown_sets;         /* so many of the sets, */
    FILE *stream;           /* where samples go at once; NULL: nowhere */
    int stream_error;       /* negative errno of the first line that did not get there */
    bool complete;          /* everything of the plan ran */
    struct bench_cut cut;
    char error[256]; /* empty: none */
    int error_code;  /* negative errno that goes with it; 0: none does */
    int exit_status; /* and the status of the process; 0: as bench_result_exit_status() finds */
    bool begun;      /* the nodes have met */
    bool written;    /* there was an attempt to write the files, */
    bool filed;      /* and it went well */
};

void bench_result_init(struct bench_result *result, const struct bench_options *options, int node);
void bench_result_fini(struct bench_result *result);

/* Of so many nodes, where there are not two: before anything is known of one of them. -ENOMEM. */
int bench_result_set_nodes(struct bench_result *result, int count, struct wf_status *status);

/* "20250131T120000Z" of now, or "20250131T120000Z-3" for the third run of a server that stays, and the readable form of
 * such a stamp. */
void bench_result_stamp(struct bench_result *result, const char *stamp);
bool bench_is_stamp(const char *text);

int bench_result_add(struct bench_result *result, const struct bench_sample *sample, struct wf_status *status);
int bench_result_add_set(struct bench_result *result, const struct bench_set *set, struct wf_status *status);

/* The run ended early, or what followed it failed: kept with its reason, unless that happened before. */
void bench_result_cut(struct bench_result *result, const struct bench_cut *cut, const char *reason);

/* The results of a run that went well cannot be written; the lock is held. */
void bench_result_unwritten(struct bench_result *result, const struct wf_status *why);

/* Keeps what bench_totals() tells of a node. */
void bench_result_keep_totals(struct bench_result *result, int node, const json_t *totals);

/* Adds what further processes of a node have told of its rails. */
void bench_result_add_rails(struct bench_result *result, int node, const json_t *rails);

/* Sum over all samples; samples that were not checked count nothing. */
uint64_t bench_result_wrong_bytes(const struct bench_result *result);

/* Sums over the samples that were checked: what was measured, and what was verified. */
uint64_t bench_result_measured_bytes(const struct bench_result *result);
uint64_t bench_result_verified_bytes(const struct bench_result *result);

/* Whether there are samples, and the bytes of some were checked. */
bool bench_result_checked(const struct bench_result *result);

/* All ran, and what was to be checked was right. */
bool bench_result_passed(const struct bench_result *result);

/* The status of the process, as far as it is known by then: what goes wrong later it alone tells. */
int bench_result_exit_status(const struct bench_result *result);

/* Whether a sample belongs to a set. */
bool bench_sample_in_set(const struct bench_sample *sample, const struct bench_set *set);

/* Rates of the samples of a set, in GB/s: `rates` has room for all samples; returns how many there are. */
size_t bench_set_rates(const struct bench_result *result, const struct bench_set *set, double *rates);

/* Aggregate of a loaded set in GB/s; negative: none. */
double bench_set_aggregate(const struct bench_set *set);

/* Why the run was cut short, in a few words; "" where it was not. Returns `buffer`. */
char *bench_cut_text(const struct bench_result *result, char *buffer, size_t room);

/* Says on standard error which sample is the first with wrong bytes, and what stood there. */
void bench_result_tell_wrong(const struct bench_result *result);

#endif
