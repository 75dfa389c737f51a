/* found.h: what rank 0 of a run has written, and what comes of it. */
#ifndef WF_BENCH_STRAGGLER_FOUND_H
#define WF_BENCH_STRAGGLER_FOUND_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

/* Owner: the measuring thread. All zero is one that has heard nothing; each member but `events` and `curve` NULL until
 * it is heard. */
struct straggler_found {
    json_t *facts;    /* names of the ranks, and how they were found */
    json_t *events;   /* of each rank that was late, or delayed: barrier, rank, late_ms, ... */
    json_t *curve;    /* of some barriers each: the largest lateness, and whose */
    json_t *deadline; /* the barrier that has ended the group, with the words of the library */
    json_t *end;      /* took_s, barrier_ms */
};

/* -EPROTO: a line is not understood. `found` can be given to fini() whatever the result. */
int straggler_found_read(struct straggler_found *found, const char *text, struct wf_status *status);
void straggler_found_fini(struct straggler_found *found);

/* The name of a rank; "?" */
const char *straggler_name(const struct straggler_found *found, int rank);

/* What comes of the events; of `rank`, or of all (-1). */
struct straggler_sums {
    uint64_t delayed;     /* barriers before which one rank was delayed */
    uint64_t found;       /* of them, those in which it was named */
    uint64_t near;        /* of those, with a lateness within a tenth of what the rank itself has measured */
    uint64_t named;       /* without having been delayed */
    uint64_t processor;   /* late for want of a processor */
    double off, off_most; /* of what was found: |lateness / delay - 1|, median and most */
    double late_ms;       /* median lateness of those that were named */
    double after_ms;      /* and how long after the first rank's entering that was known, median */
};

void straggler_sum(const struct straggler_found *found, int rank, struct straggler_sums *sums);

#endif
