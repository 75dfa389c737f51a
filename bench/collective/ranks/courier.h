/*
 * courier.h: the thread that synchronises buckets while others are computed, one after the other, in the order in which
 * they were handed over.
 *
 * It calls the backend as every rank does, so any backend will do; meanwhile nobody else may.
 */
#ifndef WF_BENCH_RANK_COURIER_H
#define WF_BENCH_RANK_COURIER_H

#include <pthread.h>

#include "buckets.h"
#include "rank.h"

/* When what happened to a bucket, in seconds of the monotonic clock. */
struct courier_times {
    double ready, begun, ended;
};

/* Synchronises one bucket. */
typedef int (*courier_work)(void *context, const struct rank_bucket *bucket, struct wf_status *status);

/* Owner: one rank. */
struct courier {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    courier_work work;
    void *context;
    const struct rank_bucket *buckets; /* the caller's, between courier_begin() and courier_wait() */
    struct courier_times *times;       /* of each of them; the caller's */
    uint32_t handed, done;
    bool running, ending;
    struct wf_status status; /* of the first bucket that failed: the others are left out */
};

int courier_start(struct courier *courier, courier_work work, void *context, struct wf_status *status);
void courier_stop(struct courier *courier); /* also of one that is all zero */

/* From now on, these. */
void courier_begin(struct courier *courier, const struct rank_bucket *buckets, struct courier_times *times);

/* The next bucket is ready. */
void courier_hand(struct courier *courier);

/* Until all that were handed over are done, or one has failed. */
int courier_wait(struct courier *courier, struct wf_status *status);

double courier_now(void);

#endif
