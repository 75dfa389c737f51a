/*
 * range.h: the bytes of a message that have arrived. Invariant: ranges are disjoint, not adjacent, in rising order, and
 * covered == sum(end - start).
 */
#ifndef WF_WIRE_RANGE_H
#define WF_WIRE_RANGE_H

#include <stdbool.h>
#include <stdint.h>

struct wf_range {
    uint64_t start, end; /* [start, end), start < end */
};

#define WF_RANGE_INLINE 8
#define WF_RANGE_MAX 256 /* the sender keeps at most 255 chunks of a message unacknowledged */

struct wf_range_set {
    uint64_t covered;
    uint32_t count;          /* ranges now */
    uint32_t capacity;       /* entries behind `ranges` */
    struct wf_range *ranges; /* `few`, or an array lent by the owner */
    struct wf_range few[WF_RANGE_INLINE];
};

/* Do not copy or move the set afterwards: `ranges` points into it. */
void wf_range_init(struct wf_range_set *set);

/* Lends a larger array (WF_RANGE_MAX entries) and moves the ranges into it. When the set is no longer used and
 * wf_range_borrowed() is true, the owner of the array takes it back from `set->ranges`. */
void wf_range_lend(struct wf_range_set *set, struct wf_range *array, uint32_t capacity);
bool wf_range_borrowed(const struct wf_range_set *set);

/* Adds [0, end) to a set that is empty. */
static inline void wf_range_fill(struct wf_range_set *set, uint64_t end)
{
    set->ranges[0] = (struct wf_range){.start = 0, .end = end};
    set->count = end > 0;
    set->covered = end;
}

/*
 * Adds [start, end): 0; -EEXIST: all of it is already present; -EPROTO: a part of it is present, or start > end;
 * -ENOSPC: there is no room for one more entry. On an error nothing changes. An empty range returns 0 and changes
 * nothing.
 */
int wf_range_add(struct wf_range_set *set, uint64_t start, uint64_t end);

/* Is [0, end) wholly present? Always true for end 0. */
bool wf_range_prefix(const struct wf_range_set *set, uint64_t end);

/* Is [start, end) in the set? 0: nothing of it; 1: all of it; -EPROTO: a part of it. */
int wf_range_test(const struct wf_range_set *set, uint64_t start, uint64_t end);

#endif
