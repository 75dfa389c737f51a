/*
 * local.h: node1 of --local: this program once more, as a child that never outlives us.
 */
#ifndef WF_BENCH_LOCAL_H
#define WF_BENCH_LOCAL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/status.h"
#include "bench/plan/options.h"

#define BENCH_CHILD_UNSTARTED 126 /* its exit status where it could not become this program once more */

/* Owner: the measuring thread; the pid may be read by the signal thread. */
struct bench_child {
    volatile pid_t pid; /* 0: none, or collected */
    int wait_status;    /* once collected */
    bool ended;
};

/* What --local means for settings that were left alone: loopback rails. Before the plan. */
int bench_local_defaults(struct bench_options *options, struct wf_status *status);

/* Starts node1, told to connect to `port` on this machine, with every setting of ours. */
int bench_child_start(struct bench_child *child, const struct bench_options *options, int port,
                      struct wf_status *status);

/* 0 while it lives; else -ECHILD and how it ended. */
int bench_child_check(struct bench_child *child, struct wf_status *status);

/* Waits up to `timeout_ms` for its end, then kills it. Its exit status; 128 + signal if it was killed; 0: no child. */
int bench_child_end(struct bench_child *child, int timeout_ms);

/* From the signal thread, when everything else hangs. */
void bench_child_kill(const struct bench_child *child);

#endif
