/*
 * comms.h: the plugin opened for a plan: a comm for each direction in which this node uses a pair,
 *
 *     the node that receives: listen, handle -> the node that sends; then accept until there is a comm
 *     the node that sends:    connect until there is one
 *
 * and the memory of the pair's messages registered with each, as NCCL does before the first message.
 */
#ifndef WF_BENCH_PLUGIN_COMMS_H
#define WF_BENCH_PLUGIN_COMMS_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/backends/backend.h"
#include "library.h"
#include "settings.h"

struct net_comm;

/* A message. Owner: the backend; in use while a comm has it, or it has ended and wait() has not returned it. */
struct net_operation {
    struct net_operation *next;
    struct net_comm *comm;
    bench_request *place; /* the caller's */
    void *request;        /* the plugin's; NULL: it has not taken the message yet */
    void *buffer;
    uint64_t length, tag;
    uint64_t bytes;       /* that came, once it has ended */
    int64_t completed_ns; /* when that was seen */
    bool flushing;        /* it has come, and the flush of GPU memory has not ended */
};

/* One direction of a pair. */
struct net_comm {
    void *handle; /* the plugin's; NULL: this node has no such part */
    void *memory; /* the registration */
    bool registered, sends, gpu;
    uint32_t busy_at;             /* its place among those that have messages */
    struct net_operation *first;  /* oldest message */
    struct net_operation *last;   /* newest */
    struct net_operation *untold; /* the oldest that the plugin has not taken; NULL: it has all */
};

/* Owner: the measuring thread. */
struct bench_backend {
    struct bench_link *link;
    const struct bench_plan *plan;
    struct net_library library;
    struct net_settings settings;
    bool begun;    /* init() was called */
    void *context; /* of init() */
    int device_count;
    struct net_comm *comms; /* by pair: what receives, then what sends */
    struct net_comm **busy; /* those with messages, in no order */
    uint32_t busy_count;
    struct net_operation *operations, *free, *ended, *ended_last;
    uint64_t operation_count;
    int error; /* of the first call that failed: nothing goes on after that; 0: none has */
    char why[WEFT_TEXT_BYTES];
};

int net_backend_open(struct bench_link *link, const struct bench_plan *plan, struct bench_backend **out,
                     struct wf_status *status);
void net_backend_close(struct bench_backend *backend);

/* Room for so many messages at a time (backend.c). */
int net_backend_expect(struct bench_backend *backend, uint64_t count, struct wf_status *status);

static inline struct net_comm *net_comm_of(const struct bench_backend *backend, uint32_t pair, bool sends)
{
    return &backend->comms[2 * (uint64_t)pair + sends];
}

#endif
