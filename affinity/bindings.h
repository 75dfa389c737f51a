/*
 * bindings.h: the processors that a user gives to rails, as text: "eth1:8-21,112-125;fe80::2:22-35".
 *
 * Items are separated by ';', empty ones and spaces around an item, its rail and its list play no part. The last ':' of
 * an item ends the rail, since addresses contain colons and processor lists do not.
 */
#ifndef WF_AFFINITY_BINDINGS_H
#define WF_AFFINITY_BINDINGS_H

#include <stddef.h>

#include "affinity/cpus.h"
#include "affinity/plan.h"

struct wf_binding {
    char rail[64];       /* name or interface of a rail, as it was written */
    struct wf_cpus cpus; /* never empty */
};

struct wf_bindings {
    int count;
    struct wf_binding of[WF_PLAN_RAILS]; /* no rail twice, by its text */
};

/* NULL or "": no bindings. 0, or -EINVAL with a sentence that quotes what was not understood. */
int wf_bindings_parse(const char *text, struct wf_bindings *out, char *why, size_t why_room);

#endif
