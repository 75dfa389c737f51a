/*
 * run.h: what a result file says, in the form that figures are made from. A file is somebody's word: it may be cut off,
 * from elsewhere, from a later version, or made to harm. What is not understood is refused with the reason, and what is
 * understood is never believed further than its own file.
 */
#ifndef WF_REPORT_RUN_H
#define WF_REPORT_RUN_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/status.h"
#include "bench/result/slow.h"
#include "bench/words/progress.h"

enum report_mode { REPORT_ISOLATED, REPORT_LOADED, REPORT_MODES };

/* Numbers that a file does not tell are NaN. */
struct report_sample {
    uint32_t src, dst; /* of the run's `ends` */
    uint32_t backend;  /* of the run's `backends` */
    enum report_mode mode;
    bool latency;         /* a half round trip */
    bool counted;         /* its rate is that of messages by the second, a matter of turns at a processor */
    uint64_t size;        /* bytes of a message */
    double p10, p50, p90; /* us per message, or half a round trip */
    double cv;            /* standard deviation over mean */
    double rate;          /* GB/s from the median; NaN with latency */
    double cpu;           /* processor seconds a GB, of both nodes */
    double iters, failures, retransmits, wrong;
    unsigned stamps; /* of enum bench_stamp */
    size_t carried;  /* the first of the run's `carried`, and how many are the sample's */
    uint32_t carried_count;
};

/* What a rail carried of one size, mode and backend. */
struct report_flow {
    uint32_t backend, rail; /* of the run's `rails` */
    enum report_mode mode;
    uint64_t size;
    double bytes;
};

/* A list of different texts. */
struct report_texts {
    char **list;
    size_t count, room;
};

/* More of these no network has, and a file that has them takes for ever. */
#define REPORT_ENDS_MOST 16384
#define REPORT_BACKENDS_MOST 64
#define REPORT_FLOWS_MOST 65536

enum report_source {
    REPORT_OF_RUN,        /* weft mesh, pair, profile */
    REPORT_OF_PEERS,      /* weft peers */
    REPORT_OF_SWEEP,      /* weft sweep */
    REPORT_OF_MODEL,      /* model.json of weft profile */
    REPORT_OF_SENSE,      /* temperatures.csv of weft profile */
    REPORT_OF_PLAN,       /* a drawing of weft topo */
    REPORT_OF_COLLECTIVE, /* weft collective, JSON or CSV */
    REPORT_OF_STRAGGLER,  /* weft straggler */
    REPORT_OF_SETUP,      /* weft setup-cost */
    REPORT_OF_OVERLAP     /* weft overlap */
};

/* Owner: the report's list. */
struct report_run {
    enum report_source source;
    char *path;                   /* as it was named */
    char *folder;                 /* that it lies in */
    json_t *root;                 /* the file without its samples; NULL of CSV and SVG */
    char *text;                   /* of CSV and SVG */
    struct report_texts ends;     /* "node0:host1", in the order of their first samples */
    struct report_texts backends; /* "weft" */
    struct report_texts rails;    /* "node0 eth0" */
    struct report_texts names;    /* of rails: "eth0" */
    struct report_sample *samples;
    size_t sample_count;
    struct bench_carried *carried; /* of the samples; `rail` is of `names` */
    size_t carried_count, carried_room;
    struct report_flow *flows;
    size_t flow_count, flow_room;
};

/* The index of a text, which is added if it is new. 0 or -ENOMEM. */
int report_text_index(struct report_texts *texts, const char *text, uint32_t *index);
void report_texts_fini(struct report_texts *texts);

/* Opens a file, which nothing but a file is: no folder (-EISDIR), no pipe and no device (-ESPIPE). */
int report_open(const char *path, FILE **file, uint64_t *bytes, struct wf_status *status);

/* Reads a file, and shows how far it is where `progress` is not NULL. -EPROTO: it is whole, and no result; -EBADMSG: it
 * is damaged, or of a later version; -EFBIG: it does not fit into memory; -E2BIG: it has more endpoints, backends or
 * rails than a report can show. */
int report_run_read(const char *path, struct bench_progress *progress, struct report_run **run,
                    struct wf_status *status);
void report_run_destroy(struct report_run *run);

/* Takes the samples of a result from `root`, and leaves the rest. */
int report_run_take_samples(struct report_run *run, struct wf_status *status);

/* Whether the text of the run is the CSV of weft collective; and that as samples in `root`, which are those of its
 * JSON. In collective.c. */
bool report_collective_csv(const struct report_run *run);
int report_collective_read(struct report_run *run, struct wf_status *status);

/* The number of a node in "node1:gpu3" or "node1"; -1: it has none. */
int report_node_of(const char *end);

/* For qsort_r(): two indices of `ends`, the list, in the order of names, in which host10 is behind host9. */
int report_compare_ends(const void *one, const void *other, void *ends);

/* A number of an object, NaN where there is none; a text, "" where there is none. */
double report_number(const json_t *object, const char *name);
const char *report_text(const json_t *object, const char *name);

/* A number as a count: 0 where there is none or it is below 0, and at most 2^62. */
uint64_t report_count(const json_t *object, const char *name);

#endif
