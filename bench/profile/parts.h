/*
 * parts.h: what the files of this room share: one profile, from its order to its files. Nobody else includes it.
 *
 *     configuration (pair, size, backend) x repetition = row: one timed message
 *     each node makes a mark of each row, by its own clock; node0 hears node1's marks, and two marks become a row's
 * times an exchange of clock readings is a fix, fixes make a track, and the track turns node1's times into node0's a
 * window is one long comparison of clocks, and tells their drift a sum is what the repetitions of a configuration came
 * to at a node; with the rows' times it becomes a sample
 */
#ifndef WF_BENCH_PROFILE_PARTS_H
#define WF_BENCH_PROFILE_PARTS_H

#include <jansson.h>

#include "bench/sense/sense.h"
#include "clocks.h"
#include "criteria.h"
#include "profile.h"
#include "row.h"

#define PROFILE_TEXT_ROWS 8000 /* of numbers, in one text to the other node: below BENCH_TEXT_MAX */
#define PROFILE_SPANS_KEPT 64  /* pieces of a message at one end; more are thinned out to about so many, */
#define PROFILE_SPANS_MOST 128 /* and never more than that */

/* A pair, a size and a backend. */
struct profile_config {
    uint32_t id;   /* its number in the order of ranks, sizes and backends */
    uint32_t pair; /* of the plan */
    uint64_t size;
    int backend; /* of the plan */
};

/* What one node has seen of a message, by its own clock. All zero: it had no part in it. */
struct profile_mark {
    int64_t begin_ns; /* at the source just before the post, else soon after that */
    int64_t end_ns;   /* at the destination when the last byte had landed, else when this node was done with it */
    uint32_t retransmits, failures;
    uint32_t events[BENCH_SPAN_KINDS]; /* pieces of it that were traced, by their kind */
    unsigned troubles;                 /* bits of enum bench_stamp */
};

/* What the repetitions of a configuration came to at this node. */
struct profile_sum {
    uint64_t verified_bytes;
    struct bench_wrong wrong;
    int rail_count;
    uint64_t *rail_bytes; /* rail_count; NULL: nothing has come here */
    uint64_t resent_bytes;
    uint64_t direct_sent, direct_received; /* that network cards of this node read and wrote in GPU memory */
    uint8_t path_send, path_receive;       /* enum bench_path; of the other node's end: as it has told node0 */
};

/* One comparison of clocks. */
struct profile_window {
    struct bench_drift nodes;                /* node1 against node0; known to node0 */
    double steered_ppm[2];                   /* by node */
    struct bench_drift gpus[BENCH_GPUS_MAX]; /* each GPU of this node against its processor */
    int gpu_count;
};

/* A run. Owner: the measuring thread. */
struct profile {
    const struct bench_profile_site *site;
    const struct bench_plan *plan;
    struct profile_config *configs; /* in the order of execution */
    size_t config_count, row_count; /* rows: configurations times repetitions */
    struct profile_mark *marks[2];  /* by node and row; of the other node only at node0, after it has told them */
    struct profile_sum *sums;       /* by place in `configs` */
    struct bench_profile_span *spans;
    size_t span_count, span_room;
    uint64_t spans_lost[2];         /* [intra]: events that found no room */
    uint64_t first_tag;             /* of row 0; each row has the next */
    struct bench_profile_row *rows; /* node0, once the marks of both are known */
    struct bench_track track;       /* node0: both nodes' clocks */
    uint64_t unfixed;               /* work since the clocks were compared last */
    struct profile_window *start, *end;
    int windows;
    struct bench_sense *sense;
    char warmed[200]; /* what became of --warm-to */
    int rewarmed;     /* times that it was warmed up again */
    json_t *before;   /* findings of this node before the start */
    json_t *about[2]; /* what each node tells of itself, see metadata.c; node0 has both in the end */
    struct bench_criterion judged[BENCH_CRITERIA];
    json_t *criteria;     /* node0: as they were judged; NULL: not yet */
    json_t *sensed;       /* node0: rows of node1's sampler, lines */
    char folder[1200];    /* of the files; node0 */
    int folder_lock;      /* a descriptor of it; -1: it is not locked */
    int64_t base_unix_ns; /* node0: CLOCK_REALTIME when its CLOCK_MONOTONIC was base_ns */
    int64_t base_ns;
};

static inline uint32_t profile_rank(const struct profile *profile, int node, uint32_t endpoint)
{
    return (uint32_t)node * profile->plan->endpoints + endpoint;
}

static inline const struct profile_config *profile_config_of(const struct profile *profile, size_t row)
{
    return &profile->configs[row % profile->config_count];
}

static inline const struct bench_pair *profile_pair(const struct profile *profile, const struct profile_config *config)
{
    return &profile->plan->pairs[config->pair];
}

/* --- order.c --- */

/* All configurations, shuffled by the seed: the same at both nodes. */
int profile_order(struct profile *profile, struct wf_status *status);
/* Of that order: the same number, the same order. */
uint64_t profile_order_digest(const struct profile *profile);

/* --- compare.c: clocks --- */

/* Compares the clocks once; node0 keeps the best of some round trips. */
int profile_fix(struct profile *profile, struct wf_status *status);
/* The same where enough has been measured since the last time. */
int profile_fix_after(struct profile *profile, uint64_t bytes, struct wf_status *status);
/* For drift_s, drift_windows times, each into a window. */
int profile_compare(struct profile *profile, struct profile_window *windows, struct wf_status *status);
/* A time of a node by node0's clock, and by how much that may be wrong. */
int64_t profile_time(const struct profile *profile, int node, int64_t ns);
int64_t profile_time_error(const struct profile *profile, int node, int64_t ns);

/* --- watch.c: what is watched meanwhile --- */

int profile_watch(struct profile *profile, struct wf_status *status);
/* Ends the sampler, and says of each mark of this node what disturbed it. */
void profile_watched(struct profile *profile);
/* Heats what there is to heat up to `warm_to`, for at most `seconds`. Both nodes end together. */
int profile_warm(struct profile *profile, int to_celsius, int seconds, struct wf_status *status);
/* The same where it is due after `messages` messages and a node has become cold. */
int profile_warm_again(struct profile *profile, size_t messages, struct wf_status *status);

/* --- passes.c --- */

/* Of each configuration: one at least, where something is to be verified. */
uint32_t profile_warm_ups(const struct bench_plan *plan);
/* Warm-up of all configurations, then all repetitions. */
int profile_passes(struct profile *profile, struct wf_status *status);

/* --- spans.c --- */

int profile_keep_span(struct profile *profile, const struct bench_profile_span *span, struct wf_status *status);
/* From now on the library traces. */
int profile_trace(struct profile *profile, struct wf_status *status);
/* Takes what it has traced. Of a message with many pieces every k-th is kept. */
int profile_take_spans(struct profile *profile, struct wf_status *status);

/* --- gather.c --- */

/* node1 tells node0 all that it knows; node0 takes it. */
int profile_gather(struct profile *profile, struct wf_status *status);
/* node0 tells node1 the samples. */
int profile_share_samples(struct profile *profile, struct wf_status *status);

/* --- conclude.c --- */

/* What speaks against all messages from or to a GPU of this node; -1: none. */
unsigned profile_gpu_stamps(const struct profile *profile, int gpu);
/* node0: the rows, with their stamps, and a sample of each configuration. */
int profile_conclude(struct profile *profile, struct wf_status *status);
/* Its own part of a configuration's sample, without times. */
void profile_sample(const struct profile *profile, size_t config, struct bench_sample *sample);

/* --- metadata.c --- */

/* What this node tells of itself. A new reference. */
json_t *profile_about(const struct profile *profile);
/* One rank's metadata, from what both nodes have told. A new reference. */
json_t *profile_metadata(const struct profile *profile, uint32_t rank);
json_t *profile_drift_to_json(const struct bench_drift *drift);

/* --- files.c --- */

/* Writes all files and moves them to their places. */
int profile_write(struct profile *profile, struct wf_status *status);

/* --- folder.c --- */

#define PROFILE_PATH (sizeof((struct profile *)0)->folder + 80)

/* Makes the folder of this kind of machine, so that what cannot be written, or has no room, is known before anything is
 * measured. */
int profile_folder(struct profile *profile, struct wf_status *status);
/* Where a file is written. Returns `path`. */
const char *profile_path(const struct profile *profile, const char *name, char *path, size_t room);
/* Puts what was written into its place, and removes what is there of another run. */
int profile_folder_publish(const struct profile *profile, struct wf_status *status);
/* Removes what was written and is not in its place. */
void profile_folder_clean(struct profile *profile);

#endif
