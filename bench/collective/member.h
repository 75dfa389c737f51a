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

/* The two halves of it. Each `turn` meets in a place of its own: 0 in FILE, others in FILE.TURN. */
int coll_open_context(const struct bench_options *options, struct coll_membership *own, struct wf_status *status);
int coll_make_group(const struct bench_options *options, struct coll_membership *own, uint64_t turn,
                    struct wf_status *status);

/* The group alone; all of it. */
void coll_drop_group(struct coll_membership *own);
void coll_leave(struct coll_membership *own);

#endif
