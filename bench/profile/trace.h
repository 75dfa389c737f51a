/*
 * trace.h: what one rank did, as Chrome trace events in the form that PyTorch's profiler (Kineto) gives them: Perfetto,
 * chrome://tracing and what reads PyTorch's traces show it. Of each message of which the rank is the source or the
 * destination there is one event, and beneath it the spans of that end (pieces.h):
 *
 *     events of a tid are in the order of time          spans lie within their message
 *     two events of a tid nest, or do not overlap        ts = start - base_ns, in microseconds, exact to the nanosecond
 *
 * Messages of a rank follow each other. Where the clocks say that one has begun before the last has ended, it is drawn
 * from that end on, and its args say "trimmed_ns".
 */
#ifndef WF_BENCH_PROFILE_TRACE_H
#define WF_BENCH_PROFILE_TRACE_H

#include <stdbool.h>

#include "bench/words/whole.h"

#include "row.h"

struct bench_piece; /* pieces.h */

/* Whose trace it is. What it points to outlives the writer. */
struct bench_trace_rank {
    uint32_t rank, world;
    int64_t pid;
    const char *backend;         /* of the whole profile: "weft" */
    const char *name;            /* of the process: "rank 0: gpu0 of node0" */
    const char *label;           /* beside it: the node's name */
    const char *device;          /* what PyTorch would call it: "cuda:0", "cpu" */
    const char *const *backends; /* names of bench_profile_row.backend */
    const json_t *devices;       /* an array of Kineto's deviceProperties; NULL: none */
    int64_t base_ns;             /* ts 0: not after any message */
    int64_t base_unix_ns;        /* the same moment by node0's CLOCK_REALTIME */
};

/* Owner: its writer. */
struct bench_trace {
    struct bench_whole whole;
    const struct bench_trace_rank *rank;
    int error;                    /* the first one: 0 or a negative errno; nothing is written from there on */
    uint64_t events, messages;    /* so far */
    int64_t end_ns;               /* of the last message */
    struct bench_profile_row row; /* the message that waits for its spans */
    bool waits;                   /* there is one */
    struct bench_piece *pieces;   /* its spans */
    size_t piece_count, piece_room;
    struct bench_profile_span *lanes; /* one span of each; it has a tid, and a name in the file */
    size_t lane_count;
};

/* On failure there is nothing to close, and closing it does no harm. */
int bench_trace_open(struct bench_trace *trace, const char *path, const struct bench_trace_rank *rank,
                     struct wf_status *status);

/* The next message in the order of time; one of other ranks is left out. */
void bench_trace_message(struct bench_trace *trace, const struct bench_profile_row *row);

/* A span of the last message, in any order; one of another rank is left out. */
void bench_trace_span(struct bench_trace *trace, const struct bench_profile_span *span);

/* Returns the first error of all calls. The file is there only if there was none. */
int bench_trace_close(struct bench_trace *trace, struct wf_status *status);

/* The number by which a trace and a graph (graph.h) know the n-th message of a rank. */
static inline uint64_t bench_trace_record(uint64_t message)
{
    return 3 * message + 1;
}

/* Puts a string of JSON with its quotes. */
void bench_put_json_text(FILE *file, const char *text);

#endif
