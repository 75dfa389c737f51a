/*
 * vigil.h: while all nodes of --local meet, nothing wakes the measuring thread. If one of them dies then, a thread ends
 * the run at once, as a failure of that node, and this process.
 */
#ifndef WF_BENCH_VIGIL_H
#define WF_BENCH_VIGIL_H

#include <pthread.h>
#include <stdbool.h>

#include "ending.h"

/* Owner: the measuring thread. */
struct bench_vigil {
    struct bench_ending *ending;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool over;
};

/* After the children were started, and bench_ending_set_alone(); until stop() only this thread looks after them. */
int bench_vigil_start(struct bench_vigil *vigil, struct bench_ending *ending, struct wf_status *status);
void bench_vigil_stop(struct bench_vigil *vigil);

#endif
