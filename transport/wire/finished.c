#include "wire/finished.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_CAPACITY 8

void wf_finished_init(struct wf_finished *set)
{
    *set = (struct wf_finished){.floor = 1};
}

void wf_finished_fini(struct wf_finished *set)
{
    free(set->above);
    wf_finished_init(set);
}

/* The intervals above the floor as a range set that borrows their array. Only the fields that range.c looks at in a
 * borrowed set are filled in. */
static void lend_above(const struct wf_finished *set, struct wf_range_set *view)
{
    view->covered = 0;
    view->count = set->count;
    view->capacity = set->capacity;
    view->ranges = set->above;
}

static int grow(struct wf_finished *set)
{
    if (set->capacity > UINT32_MAX / 2)
        return -ENOMEM;

    uint32_t capacity = set->capacity ? set->capacity * 2 : FIRST_CAPACITY;
    struct wf_range *above = realloc(set->above, capacity * sizeof(*above));
    if (!above)
        return -ENOMEM;
    set->above = above;
    set->capacity = capacity;
    return 0;
}

static int add_above(struct wf_finished *set, uint64_t number)
{
    struct wf_range_set view;

    lend_above(set, &view);
    int rc = wf_range_add(&view, number, number + 1);
    if (rc == -ENOSPC) {
        rc = grow(set);
        if (rc)
            return rc;
        lend_above(set, &view);
        rc = wf_range_add(&view, number, number + 1);
    }
    set->count = view.count;
    return rc;
}

/* The number at the floor has ended: lifts the floor over it, and over the interval that then touches the
 * floor. The next interval stands apart. */
static void lift(struct wf_finished *set)
{
    set->floor += 1;
    if (set->count == 0 || set->above[0].start > set->floor)
        return;
    set->floor = set->above[0].end;
    set->count -= 1;
    memmove(set->above, set->above + 1, set->count * sizeof(*set->above));
}

int wf_finished_add(struct wf_finished *set, uint64_t number)
{
    /* The last number of all has no successor to be a floor; it counts as finished, so that a frame of a peer that
     * names it is drained. */
    if (number < set->floor || number == UINT64_MAX)
        return -EEXIST;
    if (number > set->floor)
        return add_above(set, number);
    lift(set);
    return 0;
}

bool wf_finished_has(const struct wf_finished *set, uint64_t number)
{
    struct wf_range_set view;

    if (number < set->floor || number == UINT64_MAX)
        return true;
    if (set->count == 0)
        return false;
    lend_above(set, &view);
    return wf_range_test(&view, number, number + 1) > 0;
}
