/*
 * fault_spec.h: the text of the setting `fault`, taken apart. docs/faults.md says what each item does.
 *
 *     seed=N,reset_every=SIZE,flip_every=SIZE,short=0|1,stall=RAIL@MS+MS,drop=RAIL@MS+MS
 *
 * Each item at most once, in any order, but as many stalls and drops as WF_FAULT_WINDOWS.
 */
#ifndef WF_BASE_FAULT_SPEC_H
#define WF_BASE_FAULT_SPEC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

#define WF_FAULT_WINDOWS 16
#define WF_FAULT_RAIL 64           /* bytes of a rail's name, with the end */
#define WF_FAULT_MS_MAX 1000000000 /* about twelve days */

/* A time in which something is wrong with a rail. */
struct wf_fault_window {
    bool drop;                /* the rail is gone; else it stands still */
    char rail[WF_FAULT_RAIL]; /* as given: an interface, an address, or an index */
    int64_t start_ms;         /* after the context was created */
    int64_t length_ms;        /* at least 1 */
};

struct wf_fault_spec {
    uint64_t seed;        /* 1 where none is given */
    uint64_t reset_every; /* bytes; 0: never */
    uint64_t flip_every;  /* bytes; 0: never */
    bool shorten;
    int window_count;
    struct wf_fault_window windows[WF_FAULT_WINDOWS];
};

/* "" is no fault at all. -EINVAL names the item at fault and what is expected of it; `out` is then as it was. */
int wf_fault_parse(const char *text, struct wf_fault_spec *out, struct wf_status *status);

#endif
