/*
 * work.h: what the commands that start ranks have in common, from the first signal that counts to the exit status.
 */
#ifndef WF_BENCH_COLLECTIVE_WORK_H
#define WF_BENCH_COLLECTIVE_WORK_H

#include <stdbool.h>

#include "base/status.h"

/* When a run has started. */
struct coll_time {
    char started[32]; /* ISO 8601, UTC */
    char stamp[32];   /* the same for names of files: 20261126_120000 */
};

void coll_note_time(struct coll_time *time);

/* Calls `work` with signals taken (bench/words/interrupt.h), before there is another thread. Returns what it returns.
 */
int coll_with_signals(int (*work)(void *context, struct wf_status *status), void *context, struct wf_status *status);

/* Says on standard error why nothing could be measured; the exit status for it. */
int coll_refused(struct wf_status *status);

/* Whether this may be one of several ranks that a launcher has started: the first one writes the files, and they may be
 * the same ones. */
bool coll_has_first(bool found);

#endif
