/*
 * lanes.h: what backend.c (messages) and open.c (communicators) share. Nobody else includes it.
 *
 * How sends and receives never wait for each other in a circle. NCCL matches by order, not by tag, and the operations
 * of a communicator run one launch after another: a launch with nothing but a receive would keep the send that its peer
 * waits for from ever starting. So nothing is launched when it is posted:
 *
 *   - wait() launches, and only when it has no completion left to give back: whatever the caller posts in answer to the
 *     completions of a launch is launched together;
 *   - a launch has equally many messages of every flow of its rank: all that are posted, or, where the rank is idle and
 *     there are several of each, the first half and then the rest, so that there is always one behind that which runs;
 *   - what all ranks of this process launch at one time is one group of NCCL's.
 *
 * So the launch that a rank is at ends with the same message of all its flows, say the t-th. Of all ranks, that with
 * the least t waits for nothing that its peers have not launched; it ends, and another one has the least. Completions
 * are given back in the order in which the requests were posted, so the messages of two ranks keep one order at both
 * ends.
 */
#ifndef WF_BENCH_NCCL_PARTS_H
#define WF_BENCH_NCCL_PARTS_H

#include "bench/backends/backend.h"
#include "library.h"
#include "mem/cuda_driver.h"
#include "world.h"

/* A send or receive; a request of the seam. Owner: the backend's list of free ones, else the lane. */
struct nccl_operation {
    struct nccl_operation *next;
    bench_request *place; /* in the caller's array: where the request is found again */
    void *buffer;
    uint64_t length, tag;
    uint32_t pair;
    uint32_t share;      /* of its flow, that goes into the next launch: while that is made */
    uint32_t rank, peer; /* this one's and the other's */
    bool sends;
    bool failed; /* its launch did: see the backend's text */
    int64_t completed_ns;
};

struct nccl_list {
    struct nccl_operation *first, *last;
};

#define NCCL_LAUNCHES 2 /* of a rank at a time: one that runs and one behind it */

/* What runs together. */
struct nccl_launched {
    struct nccl_list operations;
    wf_cu_event event; /* behind them in the stream */
};

/* A rank of this process. */
struct nccl_lane {
    uint32_t rank;
    int gpu; /* the driver's number */
    wf_cu_device device;
    wf_cu_context context; /* NULL: not retained */
    wf_cu_stream stream;
    nccl_comm comm;
    struct nccl_list posted; /* not launched yet */
    struct nccl_list next;   /* while a launch is made: what it takes */
    struct nccl_launched launches[NCCL_LAUNCHES];
    uint32_t oldest, under_way; /* launches, from the oldest on and round */
    void *scratch;              /* GPU memory for what connects the ranks */
};

struct bench_backend {
    const struct bench_plan *plan;
    struct bench_link *link;
    struct nccl_library library;
    struct wf_cuda_driver cuda;
    struct nccl_ranks ranks;
    struct nccl_world world;
    struct nccl_lane *lanes; /* those of this node, in the order of their ranks */
    uint32_t lane_count;
    struct nccl_operation *operations; /* all there are, */
    uint64_t operation_count;
    struct nccl_operation *free; /* and those that are not in use */
    struct nccl_list ended;
    uint32_t *counts; /* by pair and direction: while a launch is made */
    bool abandoned;   /* a thread of NCCL's may use all of this for ever */
    bool broken;      /* a launch failed, or the communicators did: they are aborted, not destroyed */
    char why[200];    /* of the first failure */
};

/* The lane whose list an operation of this node is in. */
static inline struct nccl_lane *nccl_lane_of(const struct bench_backend *backend,
                                             const struct nccl_operation *operation)
{
    return &backend->lanes[operation->rank - backend->ranks.first[backend->link->node]];
}

/* Parts of the seam that the set-up uses, too. */
int nccl_expect(struct bench_backend *backend, uint64_t count, struct wf_status *status);
int nccl_wait(struct bench_backend *backend, bench_request *requests, int count, int timeout_ms, int *index,
              struct weft_completion *completion);

/* Posts `what` (buffer, length, tag) on a pair, from or to that end of it which is here. -EAGAIN: more than were
 * expected. */
int nccl_post(struct bench_backend *backend, uint32_t pair, bool sends, const struct nccl_operation *what,
              bench_request *out);

/* Launches what is next of all lanes that have room for it, as one group. 0, or -EIO with `why`. */
int nccl_launch(struct bench_backend *backend);

int nccl_backend_open(struct bench_link *link, const struct bench_plan *plan, struct bench_backend **out,
                      struct wf_status *status);
void nccl_backend_close(struct bench_backend *backend);

#endif
