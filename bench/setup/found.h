/* found.h: what the ranks have said, in rows: medians over the iterations of one kind. */
#ifndef WF_BENCH_SETUP_FOUND_H
#define WF_BENCH_SETUP_FOUND_H

#include <jansson.h>
#include <stdint.h>

#include "base/status.h"

#define SETUP_STEPS_MOST 12

/* Iterations of a backend among so many ranks that have made the same anew. */
struct setup_row {
    char backend[16], what[32]; /* what was made anew; "cold": all, for the first time; "kept": nothing */
    uint32_t ranks;
    size_t count;
    double us, least_us, most_us; /* of an iteration: median, and both ends */
    double operation_us;          /* of that, the operation; median */
    double times_kept;            /* us over that of "kept"; 0: there is none */
    int step_count;               /* 0: only the whole is known */
    char step[SETUP_STEPS_MOST][24];
    double step_us[SETUP_STEPS_MOST]; /* medians */
};

/* Owner: the measuring thread. */
struct setup_found {
    json_t *samples; /* all iterations: backend, ranks, what, turn, us, operation_us, steps_us */
    json_t *runs;    /* of what was started: backend, ranks, command, facts, error */
    json_t *absent;  /* backends that could not be had, and why */
    int failures;
};

int setup_found_init(struct setup_found *found, struct wf_status *status);
void setup_found_fini(struct setup_found *found);

/* Takes in the lines of a run; `facts` becomes what the backend said of itself, a new reference or NULL. -EPROTO: a
 * line is not understood. */
int setup_found_read(struct setup_found *found, const char *backend, const char *text, json_t **facts,
                     struct wf_status *status);

/* The rows in the order of their first samples, owned by the caller; NULL: no memory. */
struct setup_row *setup_rows(const struct setup_found *found, size_t *count);

#endif
