/*
 * agree.h: before anything is measured, node1 says what it wants; node0 adopts it, makes what nobody has said give way
 * to the memory of both nodes, and both compute the same plan. Nothing but the control connection has been allocated by
 * then.
 */
#ifndef WF_BENCH_AGREE_H
#define WF_BENCH_AGREE_H

#include <stdio.h>

#include "bench/nodes/control.h"
#include "bench/nodes/link.h"
#include "bench/plan/schedule.h"
#include "bench/result/result.h"

struct bench_agreement {
    struct bench_options *options; /* node0: settings are replaced by node1's; node1: by what fits on both */
    struct bench_plan *plan;       /* made again */
    struct bench_link *link;       /* node0: its GPUs are chosen again */
    struct bench_control *control;
    struct bench_result *result; /* hosts, rails, fallbacks of both nodes are filled in; the stamp is node0's */
    FILE *news;                  /* where adopted settings, and what gave way, are printed; NULL: nowhere */
    uint64_t eager;              /* out: the larger of both nodes' `eager` */
};

int bench_agree(struct bench_agreement *agreement, struct wf_status *status);

/* The options with which node1 measures what is set here, each with a blank before it: of what is shared all, with
 * `presets` also these; of the library's settings those of the command line that are not about this machine alone. */
void bench_print_shared(const struct bench_options *options, bool presets, FILE *out);

#endif
