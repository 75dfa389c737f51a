/*
 * run.h: the ranks of one run: started, listened to, and none of them left when the call returns.
 */
#ifndef WF_BENCH_COLLECTIVE_RUN_H
#define WF_BENCH_COLLECTIVE_RUN_H

#include <jansson.h>

#include "plan.h"

/* What a run has left. */
struct coll_outcome {
    char *text;         /* JSON lines, "" without; owned */
    char command[2048]; /* of the first rank, as one would type it; cut */
    char said[4096];    /* what went wrong, a line for each rank that has said something; "": nothing */
    bool forced;        /* all was measured, and then it did not end by itself */
};

#define COLL_END_S 10 /* for a backend to end by itself once all is measured */

/* -ECHILD: a rank has failed, -ETIMEDOUT nothing was heard for long, or not all in plan->limit_s, -EINTR, -EOPNOTSUPP:
 * it says that something is not available here, -EINVAL: no launcher has started it, or other wrong usage. `outcome`
 * can be given to fini() whatever the result. */
int coll_run(const struct coll_plan *plan, const struct coll_run *run, struct coll_outcome *outcome,
             struct wf_status *status);
void coll_outcome_fini(struct coll_outcome *outcome);

/* Takes a line of rank 0, among `ranks`; false: it is not understood. */
typedef bool coll_take_line(void *context, uint32_t ranks, json_t *line);

/* Reads the lines of an outcome's text: the facts, a new reference (NULL: the ranks have told none), and each line of
 * figures behind them. What is no JSON is a library's own words. -EPROTO: a line is not understood. */
int coll_read_lines(const char *text, const char *backend, coll_take_line *take, void *context, json_t **facts,
                    uint32_t *ranks, struct wf_status *status);

#endif
