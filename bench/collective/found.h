/*
 * found.h: what the runs have found.
 *
 *     figure of a backend = the least, over its ways, of the median over the rounds of the mean time
 */
#ifndef WF_BENCH_COLLECTIVE_FOUND_H
#define WF_BENCH_COLLECTIVE_FOUND_H

#include <jansson.h>

#include "plan.h"

#define COLL_ROUNDS_MAX 1000

/* One operation, size, place, backend and way among so many ranks. */
struct coll_sample {
    const struct coll_backend *backend;
    const struct coll_way *way;
    uint32_t ranks;
    enum bench_collective op;
    bool in_place;
    uint64_t size, count, iters;
    char memory[24]; /* that it works on: "host", "cuda", "cuda (emulated)" */
    char lacks[120]; /* why there is none; "": there is one */
    double *means;   /* microseconds, of each round; owned */
    int rounds;
    double min_us, p50_us, max_us, cpu_s; /* of the last round; min and max of all */
    uint64_t wrong, checked;              /* of all rounds */
};

/* Owner: the measuring thread. */
struct coll_found {
    struct coll_sample *samples;
    size_t count, room;
    json_t *runs;    /* of what was started: backend, way, ranks, command, facts, error */
    json_t *absent;  /* backends that could not be had, and why */
    json_t *failed;  /* backends of which a run has failed, and why the first has */
    json_t *skipped; /* sizes that were left out, and why */
    int failures;
};

int coll_found_init(struct coll_found *found, struct wf_status *status);
void coll_found_fini(struct coll_found *found);

/* Takes in the lines that the ranks of a run have written; -EPROTO: one is not understood. `facts` becomes what the
 * backend said of itself, a new reference or NULL; `ranks` how many there were. */
int coll_found_read(struct coll_found *found, const struct coll_run *run, const char *text, json_t **facts,
                    uint32_t *ranks, struct wf_status *status);

/* Median over the rounds; negative: there is no sample. */
double coll_sample_us(const struct coll_sample *sample);

/* The fastest way of the backend for what `like` is a sample of; NULL: it has none. Ways aside are left out. */
const struct coll_sample *coll_best(const struct coll_found *found, const struct coll_sample *like,
                                    const struct coll_backend *backend);

/* The best of all other backends, in the memory of `own`, which is Weft's; NULL: there is none. */
const struct coll_sample *coll_best_other(const struct coll_found *found, const struct coll_sample *own);

/* Whether another round may make this way the best of its backend for anything: it is within a quarter of it. */
bool coll_way_counts(const struct coll_found *found, const struct coll_backend *backend, const struct coll_way *way,
                     uint32_t ranks);

uint64_t coll_found_wrong(const struct coll_found *found);

#endif
