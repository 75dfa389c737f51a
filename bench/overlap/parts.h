/*
 * parts.h: what the files of this room share. What was found is kept as the JSON that the result file gets.
 */
#ifndef WF_BENCH_OVERLAP_PARTS_H
#define WF_BENCH_OVERLAP_PARTS_H

#include <jansson.h>

#include "bench/collective/end.h"
#include "bench/collective/plan.h"
#include "bench/collective/run.h"

/* Owner: the measuring thread. */
struct overlap_found {
    json_t *runs;   /* of what was started: backend, way, ranks, command, facts, error */
    json_t *cases;  /* a backend, a number of ranks, a style and a size of buckets each */
    json_t *absent; /* what could not be had, and why */
    int failures;
    uint64_t wrong; /* elements */
};

int overlap_found_init(struct overlap_found *found, struct wf_status *status);
void overlap_found_fini(struct overlap_found *found);

/* What the options ask of a rank. */
int overlap_asked(struct rank_asked *asked, const struct bench_options *options, struct wf_status *status);

/* Takes in the lines that the ranks of a run have written; -EPROTO: one is not understood. `facts` becomes what the
 * backend said of itself, a new reference or NULL. */
int overlap_read(struct overlap_found *found, const struct coll_run *run, const char *text, json_t **facts,
                 struct wf_status *status);

/* A table of all cases, and what follows from it. */
void overlap_put_table(FILE *out, const struct overlap_found *found);

/* The file of --json and that of --out. */
int overlap_write_files(const struct coll_plan *plan, const struct overlap_found *found, const struct coll_end *end,
                        struct wf_status *status);

#endif
