/*
 * local.h: the other nodes of --local: this program once more, as children that never outlive us.
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
    int node;
    struct bench_child *next; /* of more than two nodes, the others; NULL: none */
};

/* What --local means for settings that were left alone: loopback rails. Before the plan. */
int bench_local_defaults(struct bench_options *options, struct wf_status *status);

/* Starts the others, told to connect to `port` on this machine, with every setting of ours: node1, or as many as the
 * options say. */
int bench_child_start(struct bench_child *child, const struct bench_options *options, int port,
                      struct wf_status *status);

/* The first one that has ended by itself, with a status or a signal; NULL: none. */
const struct bench_child *bench_child_failed(const struct bench_child *child);

/* For bench_control_look_after(): the death of one is known long before the session notices. It may have ended well,
 * after the last word. `context` is the child. */
int bench_child_mourn(void *context, struct wf_status *status);

/* Frees what bench_child_start() has added. */
void bench_child_fini(struct bench_child *child);

/* Of all of them: 0 while they live; else -ECHILD and how it ended. */
int bench_child_check(struct bench_child *child, struct wf_status *status);

/* Waits up to `timeout_ms` for the end of all, then kills those that are left. The first exit status that is not 0, 128
 * + signal of one that was killed; 0: all went well, or there is none. */
int bench_child_end(struct bench_child *child, int timeout_ms);

/* From the signal thread, when everything else hangs. */
void bench_child_kill(const struct bench_child *child);

#endif
