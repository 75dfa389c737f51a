/*
 * graph.h: the messages of one rank as an execution trace in the form of PyTorch's ExecutionTraceObserver (a Chakra
 * host trace, schema 1.1.1-chakra.0.0.4): what was called, with which tensors, by whom. It has no times but its own.
 *
 *     process (id 1)
 *       thread
 *         process_group:init            which ranks there are
 *         p2p_cfg0042_s0d1_sz1024_r0    a message, by the name that it has in the rank's trace
 *           c10d::send, c10d::recv_
 *             record_param_comms        what replays communication
 *
 * Ids ascend, a parent stands before its children, and the attribute rf_id of a message is the "Record function id" of
 * its event in the trace (trace.h). A message is a tensor of bytes.
 */
#ifndef WF_BENCH_PROFILE_GRAPH_H
#define WF_BENCH_PROFILE_GRAPH_H

#include "trace.h"

/* Owner: its writer. */
struct bench_graph {
    struct bench_whole whole;
    const struct bench_trace_rank *rank;
    int error;              /* the first one: 0 or a negative errno */
    uint64_t nodes;         /* so far */
    uint64_t id;            /* the last one given to a node or a tensor */
    uint64_t thread, store; /* ids of the thread's node, and of the memory of all tensors */
    uint64_t messages;      /* so far */
};

/* On failure there is nothing to close, and closing it does no harm. `start_ns` is of node0's CLOCK_MONOTONIC. */
int bench_graph_open(struct bench_graph *graph, const char *path, const struct bench_trace_rank *rank, int64_t start_ns,
                     struct wf_status *status);

/* The next message in the order of time; one of other ranks is left out. */
void bench_graph_message(struct bench_graph *graph, const struct bench_profile_row *row);

/* Returns the first error of all calls. The file is there only if there was none. */
int bench_graph_close(struct bench_graph *graph, int64_t finish_ns, struct wf_status *status);

#endif
