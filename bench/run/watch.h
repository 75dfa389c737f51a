/*
 * watch.h: --watch-memory: what this node holds while messages are measured, and whether it grows.
 */
#ifndef WF_BENCH_WATCH_H
#define WF_BENCH_WATCH_H

#include "bench/nodes/link.h"
#include "bench/plan/options.h"
#include "bench/sense/sense.h"

/* Owner: the measuring thread. All zero: nothing is watched. */
struct bench_watch {
    struct bench_link *link;
    struct bench_sense *sense;
    int64_t staging;                           /* pinned for a GPU that is in use, both directions */
    struct weft_gpu_info gpus[BENCH_GPUS_MAX]; /* in use by this context: others are nobody's business here */
    uint64_t blocks[BENCH_GPUS_MAX];           /* the largest free block of each at the start */
    int gpu_count;
};

/* Starts where the setting watch_memory is on. The link's buffers are there by then. */
int bench_watch_start(struct bench_watch *watch, const struct bench_options *options, struct bench_link *link,
                      struct wf_status *status);

/* Ends it, and leaves what was found in link->memory_watch; again, or without a start: nothing happens. */
void bench_watch_finish(struct bench_watch *watch);

#endif
