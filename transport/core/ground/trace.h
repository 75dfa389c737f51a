/*
 * trace.h: what has happened to chunks and to copies of a context, kept until the user takes it.
 *
 * Invariant: while the trace is off, a place that could write an event reads one flag and does nothing else. While it
 * is on, nobody waits for room: an event that finds none is counted in `lost`. taken + kept + lost = all since the
 * start.
 *
 * Any thread may call anything here at any time, with any lock held: `lock` is inside all other locks.
 */
#ifndef WF_CORE_GROUND_TRACE_H
#define WF_CORE_GROUND_TRACE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* As enum weft_trace_kind. */
enum wf_trace_kind {
    WF_TRACE_SENT,       /* a chunk, from the post of its send operation to the operation's end */
    WF_TRACE_RECEIVED,   /* a chunk, from its header to its last byte in memory */
    WF_TRACE_COPIED_OUT, /* a copy from a GPU's memory, from its start until it was found done */
    WF_TRACE_COPIED_IN,  /* a copy into a GPU's memory */
};

/* As struct weft_trace_event. */
struct wf_trace_event {
    int64_t begin_ns, end_ns; /* of the world's clock */
    uint64_t tag;             /* of the message; 0: it has none */
    uint64_t offset, bytes;   /* of the message's payload */
    uint32_t endpoint, remote;
    int32_t rail;    /* index of wf_lines.rails; -1: a copy */
    int32_t channel; /* -1: a copy */
    int32_t gpu;     /* -1: a chunk */
    int32_t kind;
};

/* Owner: the world. */
struct wf_trace {
    _Atomic bool on; /* written with `lock` held, read without */
    pthread_mutex_t lock;
    struct wf_trace_event *events; /* ring of `room`; NULL: off */
    uint32_t room, first, count;
    uint64_t lost;    /* events that found no room since the start */
    int64_t since_ns; /* when it was started: what began before is no event */
};

void wf_trace_init(struct wf_trace *trace);
void wf_trace_fini(struct wf_trace *trace);

/* Is it on? Where this is false the caller takes no time and calls nothing. */
static inline bool wf_trace_on(const struct wf_trace *trace)
{
    return __builtin_expect(atomic_load_explicit(&trace->on, memory_order_relaxed), 0);
}

/* Forgets what it has, and keeps up to `events` from `now_ns` on; 0: off. 0 or -ENOMEM: then all is as it was. */
int wf_trace_start(struct wf_trace *trace, uint32_t events, int64_t now_ns);

/* Adds an event, which has ended. Does nothing if the trace is off, or was started after the event began. */
void wf_trace_add(struct wf_trace *trace, const struct wf_trace_event *event) __attribute__((cold));

/* Moves up to `max` events out of the ring, the first ones first; returns their number. `lost` as it is then. */
uint32_t wf_trace_take(struct wf_trace *trace, struct wf_trace_event *events, uint32_t max, uint64_t *lost);

#endif
