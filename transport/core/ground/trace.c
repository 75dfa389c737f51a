#include "core/ground/trace.h"

#include <errno.h>
#include <stdlib.h>

void wf_trace_init(struct wf_trace *trace)
{
    pthread_mutex_init(&trace->lock, NULL);
}

void wf_trace_fini(struct wf_trace *trace)
{
    free(trace->events);
    pthread_mutex_destroy(&trace->lock);
}

int wf_trace_start(struct wf_trace *trace, uint32_t events, int64_t now_ns)
{
    struct wf_trace_event *ring = events > 0 ? malloc(events * sizeof *ring) : NULL;
    if (events > 0 && !ring)
        return -ENOMEM;
    pthread_mutex_lock(&trace->lock);
    struct wf_trace_event *before = trace->events;
    trace->events = ring;
    trace->room = events;
    trace->first = trace->count = 0;
    trace->lost = 0;
    trace->since_ns = now_ns;
    atomic_store_explicit(&trace->on, events > 0, memory_order_relaxed);
    pthread_mutex_unlock(&trace->lock);
    free(before);
    return 0;
}

/* The place in the ring, `ahead` behind the first event. The sum may be more than 32 bits hold. */
static struct wf_trace_event *place(const struct wf_trace *trace, uint32_t ahead)
{
    return &trace->events[((uint64_t)trace->first + ahead) % trace->room];
}

void wf_trace_add(struct wf_trace *trace, const struct wf_trace_event *event)
{
    pthread_mutex_lock(&trace->lock);
    bool wanted = trace->events && event->begin_ns >= trace->since_ns;
    if (wanted && trace->count < trace->room)
        *place(trace, trace->count++) = *event;
    else if (wanted)
        trace->lost += 1;
    pthread_mutex_unlock(&trace->lock);
}

uint32_t wf_trace_take(struct wf_trace *trace, struct wf_trace_event *events, uint32_t max, uint64_t *lost)
{
    pthread_mutex_lock(&trace->lock);
    uint32_t count = trace->count < max ? trace->count : max;
    for (uint32_t i = 0; i < count; i++)
        events[i] = *place(trace, i);
    if (count > 0)
        trace->first = (uint32_t)(((uint64_t)trace->first + count) % trace->room);
    trace->count -= count;
    *lost = trace->lost;
    pthread_mutex_unlock(&trace->lock);
    return count;
}
