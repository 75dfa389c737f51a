/* tracing.c: see tracing.h. */
#include "tracing.h"

#include <stdlib.h>

#include "loop_world.h"

void tracing_start(struct tracing *tracing, struct weft_context *context)
{
    struct weft_error err = {0};

    tracing->context = context;
    tracing->count = 0;
    LOOP_CALL(weft_trace_start(context, TRACING_ROOM, &err), &err);
}

void tracing_take(struct tracing *tracing)
{
    uint64_t lost = 1;
    int count =
        weft_trace_take(tracing->context, tracing->events + tracing->count, TRACING_ROOM - tracing->count, &lost);

    LOOP_CHECK(count >= 0 && lost == 0, "%d taken, %llu lost", count, (unsigned long long)lost);
    tracing->count += count;
}

uint64_t tracing_bytes(const struct tracing *tracing, int kind, uint64_t tag)
{
    uint64_t bytes = 0;

    for (int i = 0; i < tracing->count; i++)
        if (tracing->events[i].kind == kind && tracing->events[i].tag == tag)
            bytes += tracing->events[i].bytes;
    return bytes;
}

int tracing_events(const struct tracing *tracing, int kind, uint64_t tag)
{
    int count = 0;

    for (int i = 0; i < tracing->count; i++)
        count += tracing->events[i].kind == kind && tracing->events[i].tag == tag;
    return count;
}

static int by_offset(const void *left, const void *right)
{
    const struct weft_trace_event *a = left, *b = right;

    return a->offset < b->offset ? -1 : a->offset > b->offset;
}

static void check_event(const struct weft_trace_event *event, int64_t begin_ns, int64_t end_ns)
{
    bool copy = event->kind == WEFT_TRACE_COPIED_OUT || event->kind == WEFT_TRACE_COPIED_IN;

    LOOP_CHECK(begin_ns <= event->begin_ns && event->begin_ns <= event->end_ns && event->end_ns <= end_ns,
               "an event from %lld to %lld, of a message from %lld to %lld", (long long)event->begin_ns,
               (long long)event->end_ns, (long long)begin_ns, (long long)end_ns);
    LOOP_CHECK((event->rail < 0) == copy && (event->channel < 0) == copy && (event->gpu >= 0) == copy,
               "kind %d, rail %d, channel %d, GPU %d", event->kind, event->rail, event->channel, event->gpu);
}

void tracing_covers(struct tracing *tracing, int kind, uint64_t tag, uint64_t bytes, int64_t begin_ns)
{
    static struct weft_trace_event sorted[TRACING_ROOM];
    int64_t limit = loop_now_ms() + LOOP_WAIT_MS;
    uint64_t next = 0;
    int count = 0;

    tracing_take(tracing);
    while (tracing_bytes(tracing, kind, tag) < bytes || tracing_events(tracing, kind, tag) == 0) {
        LOOP_CHECK(loop_now_ms() < limit, "events of %llu bytes, not of %llu",
                   (unsigned long long)tracing_bytes(tracing, kind, tag), (unsigned long long)bytes);
        tracing_take(tracing);
    }
    for (int i = 0; i < tracing->count; i++)
        if (tracing->events[i].kind == kind && tracing->events[i].tag == tag)
            sorted[count++] = tracing->events[i];
    qsort(sorted, (size_t)count, sizeof sorted[0], by_offset);
    for (int i = 0; i < count; i++) {
        LOOP_CHECK(sorted[i].offset == next, "an event of byte %llu, expected %llu",
                   (unsigned long long)sorted[i].offset, (unsigned long long)next);
        check_event(&sorted[i], begin_ns, loop_world_now_ns());
        next += sorted[i].bytes;
    }
    LOOP_CHECK(next == bytes, "events of %llu bytes, not of %llu", (unsigned long long)next, (unsigned long long)bytes);
}
