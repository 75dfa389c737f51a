/*
 * visit.h: one run of a server that stays, with one client: all but the context is made for it, and gone after it.
 */
#ifndef WF_BENCH_VISIT_H
#define WF_BENCH_VISIT_H

#include "bench/nodes/lobby.h"
#include "bench/plan/options.h"

struct bench_visit {
    struct bench_link *house;
    struct bench_guest guest;
    int number;    /* of the run, from 1: a part of the names of its files */
    bool measured; /* out: the nodes agreed on what to measure */
    bool at_fault; /* out: it failed, and neither the client nor the loss of it is why */
};

/* What can be refused before there is a client, and the GPUs that the context is to be for. Leaves nothing behind. 0,
 * or what is wrong. */
int bench_visit_prepare(struct bench_options *options, struct bench_gpus *gpus, struct wf_status *status);

/* Measures. `options` are the run's own, what the client wants goes into them; the guest is gone afterwards. Returns
 * the exit status. */
int bench_visit_run(struct bench_options *options, struct bench_visit *visit);

#endif
