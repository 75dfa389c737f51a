/*
 * tracing.h: what a context has traced, taken as it comes, and whether it adds up.
 */
#ifndef TRACING_H
#define TRACING_H

#include "loop_support.h"

#define TRACING_ROOM 20000 /* events, more than any test has */

/* Events of one context, in the order in which they were taken. */
struct tracing {
    struct weft_context *context;
    int count;
    struct weft_trace_event events[TRACING_ROOM];
};

/* Room for all that is to come. */
void tracing_start(struct tracing *tracing, struct weft_context *context);
/* Takes what there is. */
void tracing_take(struct tracing *tracing);
/* The bytes of the events of this kind and tag, and their number. */
uint64_t tracing_bytes(const struct tracing *tracing, int kind, uint64_t tag);
int tracing_events(const struct tracing *tracing, int kind, uint64_t tag);
/* Takes until there are events of this kind and tag for `bytes` bytes; then they cover them, each once, with times from
 * `begin_ns` until now. */
void tracing_covers(struct tracing *tracing, int kind, uint64_t tag, uint64_t bytes, int64_t begin_ns);

#endif
