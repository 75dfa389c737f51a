/*
 * member.h: a process that a command has started as one of its ranks, or that a launcher has: its context, its group.
 */
#ifndef WF_BENCH_COLLECTIVE_MEMBER_H
#define WF_BENCH_COLLECTIVE_MEMBER_H

#include "bench/plan/options.h"
#include "collective/weft_coll.h"

/* Owner: the rank. All zero has joined nobody. */
struct coll_membership {
    struct weft_config *settings;
    struct weft_context *context;
    struct weft_group *group;
};

/* Waits for all others. Who this is says --member: "RANK/SIZE/FILE", "found" or "found/FILE". `own` can be given to
 * coll_leave() whatever the result. */
int coll_join(const struct bench_options *options, struct coll_membership *own, struct wf_status *status);
void coll_leave(struct coll_membership *own);

#endif
