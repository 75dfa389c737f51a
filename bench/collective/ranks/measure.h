/* measure.h: what the files of this room share. */
#ifndef WF_BENCH_RANK_MEASURE_H
#define WF_BENCH_RANK_MEASURE_H

#include "rank.h"
#include "values.h"

/* Owner: one rank. */
struct rank_world {
    const struct rank_backend *backend;
    const struct rank_asked *asked;
    uint32_t rank, ranks;
    struct values values;
    void *send, *recv; /* memory for the largest size */
    void *mirror;      /* as much of the process, where the backend has memory of its own; else NULL */
    uint64_t send_bytes, recv_bytes;
    double *all;      /* room for what all ranks tell */
    double *times_us; /* of one sample's iterations */
    double open_us;   /* what the backend's open() took */
    double heard_s;   /* when rank 0 has last said something of this sample */
};

#define RANK_TOLD 5           /* numbers that a rank tells of a sample */
#define RANK_TOLD_MOST 14     /* and at most, of anything */
#define RANK_ITERS_MAX 100000 /* with iters auto */

/* All operations, sizes and places; rank 0 writes the lines. */
int rank_measure(struct rank_world *world, struct wf_status *status);

/* Layers and buckets instead: the member `overlap` of what is asked. */
int rank_overlap(struct rank_world *world, struct wf_status *status);
/* Instead: what it costs to make anew what the backend can (renew.c); rank 0 writes the lines. */
int rank_renew(struct rank_world *world, struct wf_status *status);

/* What this rank hands in to a call, in the memory of the backend. */
int rank_fill(struct rank_world *world, const struct rank_call *call, struct wf_status *status);

/* Fills in a call of the first operation and size that are asked for, in place. */
void rank_first_call(const struct rank_world *world, struct rank_call *call);

/* What rank 0 writes of one sample, or why there is none. */
struct rank_sample {
    struct rank_call call;
    uint64_t bytes; /* as bandwidth.h defines them */
    uint64_t iters;
    double mean_us, min_us, p50_us, max_us, cpu_s;
    uint64_t wrong, checked; /* elements at all ranks */
};

void rank_say_facts(const struct rank_world *world);
void rank_say_sample(const struct rank_sample *sample);
void rank_say_lack(const struct rank_call *call, uint64_t bytes, const char *why);
void rank_say_nothing(void); /* an empty line */
void rank_say_done(void);

#endif
