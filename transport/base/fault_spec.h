/*
 * fault_spec.h: reads the text of the setting `fault`. docs/faults.md describes each item.
 *
 *     seed=N,reset_every=SIZE,flip_every=SIZE,short=0|1,stall=RAIL@MS+MS,drop=RAIL@MS+MS
 *
 * In any order; each item at most once, but up to WF_FAULT_WINDOWS items `stall` and `drop` together.
 */
#ifndef WF_BASE_FAULT_SPEC_H
#define WF_BASE_FAULT_SPEC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

#define WF_FAULT_WINDOWS 16
#define WF_FAULT_RAIL 64           /* bytes of a rail's name, with the final 0 */
#define WF_FAULT_MS_MAX 1000000000 /* about twelve days */

/* A period in which a rail is gone or stalls. */
struct wf_fault_window {
    bool drop;                /* true: the rail is gone; false: it stalls */
    char rail[WF_FAULT_RAIL]; /* as given: an interface, an address, or an index */
    int64_t start_ms;         /* since the context was created */
    int64_t length_ms;        /* at least 1 */
};

struct wf_fault_spec {
    uint64_t seed;        /* 1 if the text has none */
    uint64_t reset_every; /* bytes; 0: never */
    uint64_t flip_every;  /* bytes; 0: never */
    bool shorten;
    int window_count;
    struct wf_fault_window windows[WF_FAULT_WINDOWS];
};

/* "" means no faults. -EINVAL: `status` names the wrong item and its correct form; `out` is not changed. */
int wf_fault_parse(const char *text, struct wf_fault_spec *out, struct wf_status *status);

#endif
