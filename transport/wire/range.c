#include "wire/range.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

void wf_range_init(struct wf_range_set *set)
{
    set->covered = 0;
    set->count = 0;
    set->capacity = WF_RANGE_INLINE;
    set->ranges = set->few;
}

void wf_range_lend(struct wf_range_set *set, struct wf_range *array, uint32_t capacity)
{
    assert(capacity >= set->count);
    memcpy(array, set->ranges, set->count * sizeof(*array));
    set->ranges = array;
    set->capacity = capacity;
}

bool wf_range_borrowed(const struct wf_range_set *set)
{
    return set->ranges != set->few;
}

/* The first range that ends after `start`: the only one that can hold it, and the place of a new one. */
static uint32_t find(const struct wf_range_set *set, uint64_t start)
{
    uint32_t low = 0, high = set->count;

    /* Chunks of one channel arrive in order, so the end is the likely place. */
    if (high > 0 && set->ranges[high - 1].end <= start)
        return high;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (set->ranges[middle].end > start)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* As wf_range_test() for start < end, where `at` is find(set, start). */
static int relation(const struct wf_range_set *set, uint32_t at, uint64_t start, uint64_t end)
{
    if (at == set->count)
        return 0;

    const struct wf_range *range = &set->ranges[at];
    if (range->start >= end)
        return 0;
    return range->start <= start && range->end >= end ? 1 : -EPROTO;
}

static void remove_at(struct wf_range_set *set, uint32_t at)
{
    set->count -= 1;
    memmove(&set->ranges[at], &set->ranges[at + 1], (set->count - at) * sizeof(*set->ranges));
}

static int insert_at(struct wf_range_set *set, uint32_t at, uint64_t start, uint64_t end)
{
    if (set->count == set->capacity)
        return -ENOSPC;
    if (at < set->count)
        memmove(&set->ranges[at + 1], &set->ranges[at], (set->count - at) * sizeof(*set->ranges));
    set->ranges[at] = (struct wf_range){.start = start, .end = end};
    set->count += 1;
    return 0;
}

/* Puts an absent range before `at`, as part of its neighbours where it touches them. */
static int join_at(struct wf_range_set *set, uint32_t at, uint64_t start, uint64_t end)
{
    bool left = at > 0 && set->ranges[at - 1].end == start;
    bool right = at < set->count && set->ranges[at].start == end;

    if (left && right) {
        set->ranges[at - 1].end = set->ranges[at].end;
        remove_at(set, at);
    } else if (left) {
        set->ranges[at - 1].end = end;
    } else if (right) {
        set->ranges[at].start = start;
    } else {
        return insert_at(set, at, start, end);
    }
    return 0;
}

int wf_range_add(struct wf_range_set *set, uint64_t start, uint64_t end)
{
    if (start == end)
        return 0;
    if (start > end)
        return -EPROTO;

    uint32_t at = find(set, start);
    int present = relation(set, at, start, end);
    if (present != 0)
        return present > 0 ? -EEXIST : present;

    int rc = join_at(set, at, start, end);
    if (rc == 0)
        set->covered += end - start;
    return rc;
}

bool wf_range_prefix(const struct wf_range_set *set, uint64_t end)
{
    return end == 0 || (set->count > 0 && set->ranges[0].start == 0 && set->ranges[0].end >= end);
}

int wf_range_test(const struct wf_range_set *set, uint64_t start, uint64_t end)
{
    if (start == end)
        return 0;
    if (start > end)
        return -EPROTO;
    return relation(set, find(set, start), start, end);
}
