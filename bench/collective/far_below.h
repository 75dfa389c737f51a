/*
 * far_below.h: a backend that stays ten times below what the rails allow is not slow but set up wrongly, or the wrong
 * one.
 *
 * What they allow is known where a run of Weft has found it: its ranks are on several hosts, and all rails have a line
 * rate.
 */
#ifndef WF_BENCH_COLLECTIVE_FAR_BELOW_H
#define WF_BENCH_COLLECTIVE_FAR_BELOW_H

#include "found.h"

/* Of this backend among so many ranks, in a line; "": it is not, that is not known, or no size was large enough to
 * tell. Returns `text`. */
char *coll_far_below(const struct coll_found *found, const struct coll_backend *backend, uint32_t ranks, char *text,
                     size_t room);

#endif
