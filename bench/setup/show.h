/* show.h: what a run of `weft setup-cost` leaves: a table for people, and JSON (schema weft.setup_cost/1). */
#ifndef WF_BENCH_SETUP_SHOW_H
#define WF_BENCH_SETUP_SHOW_H

#include <stdio.h>

#include "bench/collective/end.h"
#include "bench/plan/options.h"
#include "found.h"

/* One run of the command. */
struct setup_run {
    const struct bench_options *options;
    uint64_t size, iters;
    const struct setup_found *found;
    struct coll_end end;
};

/* -ENOMEM */
int setup_show(FILE *out, const struct setup_run *run);

/* All that the options ask for; the first error is returned. */
int setup_write(const struct setup_run *run, struct wf_status *status);

#endif
