/*
 * agreeing.h: the parts of an agreement, of two nodes (agree.c) and of many (team_agree.c).
 */
#ifndef WF_BENCH_AGREEING_H
#define WF_BENCH_AGREEING_H

#include "agree.h"

/* What every node tells about itself: settings, host, rails, memory and the digest of its plan. A new reference. */
json_t *bench_introduction(const struct bench_agreement *agreement);

/* The settings of the node that decides, and the plan that follows from them. */
int bench_adopt(struct bench_agreement *agreement, const json_t *hello, struct wf_status *status);
/* What was made of them, so that they fit. */
int bench_adopt_fit(struct bench_agreement *agreement, const json_t *theirs, struct wf_status *status);

/* -EPROTO: that node plans something else. */
int bench_check_digest(const struct bench_plan *plan, const json_t *theirs, struct wf_status *status);

/* When the run started: it becomes a part of the names of files. */
int bench_adopt_stamp(struct bench_result *result, const json_t *theirs, struct wf_status *status);

/* What a node's messages lie in: nodes of host memory and of GPU memory can measure together. */
void bench_adopt_memory(struct bench_plan *plan, int node, const json_t *theirs);

/* Everything about a node; the names of rails are those of the receiving node. */
void bench_remember(struct bench_result *result, int node, const json_t *about);

#endif
