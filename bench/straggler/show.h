/* show.h: what a run of `weft straggler` leaves: a table for people, and JSON (schema weft.straggler/1). */
#ifndef WF_BENCH_STRAGGLER_SHOW_H
#define WF_BENCH_STRAGGLER_SHOW_H

#include <stdio.h>

#include "asked.h"
#include "bench/collective/end.h"
#include "found.h"

/* One run. */
struct straggler_run {
    const struct bench_options *options;
    const struct straggler_asked *asked;
    const struct straggler_found *found;
    struct coll_end end;
    const char *command; /* of the first rank */
};

void straggler_show(FILE *out, const struct straggler_run *run);

/* All that the options ask for; the first error is returned. */
int straggler_write(const struct straggler_run *run, struct wf_status *status);

#endif
