/*
 * far.h: a sweep between two nodes. node1 (--connect) decides which point is next; node0 (--listen) runs its half of
 * it:
 *
 *     node1: {"hello", "measure", "rails"}               node0: {"hello", "rails"}
 *     node1: {"run": {SETTING: VALUE}}                    node0: {"port", "command"}
 *     node1: {"collect": whether its own half worked}     node0: {"ended"}
 */
#ifndef WF_BENCH_SWEEP_FAR_H
#define WF_BENCH_SWEEP_FAR_H

#include "site.h"

/* node1: connects, and learns how many rails both nodes have. */
int bench_sweep_connect(struct bench_site *site, struct wf_status *status);

/* node1: has node0's half started; -EADDRINUSE: another try gets another port. */
int bench_sweep_begin(struct bench_site *site, uint32_t point, int *port, struct wf_status *status);

/* node1: has it ended. -ECHILD: it had failed. */
int bench_sweep_collect(struct bench_site *site, bool worked, struct wf_status *status);

/* node0: serves one sweep. */
int bench_sweep_serve(struct bench_site *site, struct wf_status *status);

#endif
