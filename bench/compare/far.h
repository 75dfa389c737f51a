/*
 * far.h: weft peers between two nodes. node0 (--listen) runs the servers, node1 (--connect) the clients and the
 * rounds. What goes over the wire is names and numbers:
 *
 *     node1: {"run": TOOL, "variant", "metric", "size", ...}     node0: {"port", "words", "settings"} or {"error"}
 *     node1: {"collect": whether its client worked}              node0: {"text", "cpu_s", ...} or {"error"}
 *
 * asking.h has the rest. Where a port was taken, node1 asks again.
 *
 * Each node makes its command lines from its own table of tools and its own settings: none comes from the network.
 */
#ifndef WF_BENCH_COMPARE_FAR_H
#define WF_BENCH_COMPARE_FAR_H

#include <jansson.h>

#include "bench/nodes/asking.h"
#include "compare.h"

/* Owner: the measuring thread. */
struct bench_far {
    struct bench_asking asking;
    char addresses[PEER_RAILS_MAX][64]; /* node0's */
    json_t *begun;                      /* what node0 said of the server that it started last */
    json_t *ended;                      /* and of what became of it */
};

extern const struct peers_far bench_far_ops; /* of struct bench_far */

/* node1: connects, and makes node0's rails those of the plan. */
int bench_far_connect(struct bench_far *far, const struct bench_options *options, struct peers_plan *plan,
                      struct wf_status *status);

/* Says goodbye, or why not: `failed` is the reason, NULL where all went well. */
void bench_far_close(struct bench_far *far, const char *failed);

/* node0: serves one other node until it has said goodbye. */
int bench_far_serve(struct bench_far *far, const struct bench_options *options, struct peers_plan *plan,
                    struct wf_status *status);

#endif
