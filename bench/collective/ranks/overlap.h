/*
 * overlap.h: what the files of `weft overlap` share at a rank.
 *
 *     an iteration = computation alone, communication alone, one after the other, and both at once: in turns, so that
 *     whatever slows the machine slows all four
 */
#ifndef WF_BENCH_RANK_OVERLAP_H
#define WF_BENCH_RANK_OVERLAP_H

#include "courier.h"
#include "layers.h"
#include "measure.h"

enum overlap_mode { OVERLAP_COMPUTE, OVERLAP_COMMUNICATE, OVERLAP_SERIAL, OVERLAP_BOTH, OVERLAP_MODES };

/* When what happened at this rank, in seconds from the start. */
struct overlap_times {
    double start;
    double *begun, *ended;         /* of each layer */
    struct courier_times *buckets; /* of each bucket */
};

/* Owner: one rank. */
struct overlap {
    struct rank_world *world;
    struct layers layers;
    struct courier courier;
    enum rank_style style;
    uint64_t bucket_bytes; /* as asked */
    struct rank_bucket *buckets;
    uint32_t bucket_count;
    float *scratch; /* of the server: what a rank has sent */
    struct overlap_times times[OVERLAP_MODES];
    uint64_t wrong, checked; /* elements at all ranks */
};

/* Of all ranks: the slowest one's time, and the processor time of all. */
struct overlap_figures {
    double wall_s[OVERLAP_MODES], cpu_s[OVERLAP_MODES];
};

const char *overlap_mode_name(enum overlap_mode mode);

/* Makes one bucket the same at all ranks: what a struct courier calls. `context` is a struct overlap. */
int overlap_synchronise(void *context, const struct rank_bucket *bucket, struct wf_status *status);

/* Why the backend cannot; NULL: it can. */
const char *overlap_lacks(const struct overlap *overlap);

/* What rank 0 writes. */
void overlap_say_start(const struct overlap *overlap);
void overlap_say_lack(const struct overlap *overlap, const char *why);
void overlap_say_iteration(const struct overlap *overlap, const struct overlap_figures *figures);
void overlap_say_end(const struct overlap *overlap);

#endif
