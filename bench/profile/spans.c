/* What happened to the pieces of messages: from the library's trace, thinned out. */
#include <errno.h>
#include <stdlib.h>

#include "bench/backends/backend.h"
#include "parts.h"

#define TRACE_EVENTS (1u << 16)
#define TAKEN_AT_ONCE 1024

int profile_keep_span(struct profile *profile, const struct bench_profile_span *span, struct wf_status *status)
{
    if (profile->span_count == profile->span_room) {
        size_t room = profile->span_room ? 2 * profile->span_room : 1024;
        struct bench_profile_span *grown = realloc(profile->spans, room * sizeof *grown);
        if (!grown)
            return wf_fail(status, -ENOMEM, "no memory for %zu spans of the trace: use fewer repetitions", room);
        profile->spans = grown;
        profile->span_room = room;
    }
    profile->spans[profile->span_count++] = *span;
    return 0;
}

/* Every so many pieces of a message are kept at each of its ends. */
static uint64_t step_of(const struct profile *profile, uint64_t size)
{
    uint64_t chunk = (uint64_t)wf_config_number(profile->site->options->config, WF_SET_CHUNK);

    return 1 + size / (chunk ? chunk : 1) / PROFILE_SPANS_KEPT;
}

/* The tag says which message it was. Those of the control connection and of the warm-up have tags of no row. */
static int keep_event(struct profile *profile, const struct weft_trace_event *event, struct wf_status *status)
{
    uint64_t row = event->tag - profile->first_tag;
    bool leaves = event->kind == WEFT_TRACE_SENT || event->kind == WEFT_TRACE_COPIED_OUT;

    if (event->kind < 0 || event->kind >= BENCH_SPAN_KINDS || event->tag < profile->first_tag ||
        row >= profile->row_count || event->endpoint >= BENCH_CONTROL_ENDPOINT)
        return 0;
    const struct profile_config *config = profile_config_of(profile, row);
    const struct bench_pair *pair = profile_pair(profile, config);
    int node = profile->site->bed->node;
    if ((leaves ? pair->src_node : pair->dst_node) != node)
        return 0;
    struct profile_mark *mark = &profile->marks[node][row];
    uint64_t step = step_of(profile, config->size), number = mark->events[event->kind]++;
    if (number % step || number / step >= PROFILE_SPANS_MOST)
        return 0;
    const struct bench_profile_span span = {
        .begin_ns = event->begin_ns,
        .end_ns = event->end_ns,
        .offset = event->offset,
        .bytes = event->bytes,
        .row = (uint32_t)row,
        .rank = profile_rank(profile, node, leaves ? pair->src : pair->dst),
        .rail = (int16_t)event->rail,
        .channel = (int16_t)event->channel,
        .gpu = (int16_t)event->gpu,
        .kind = (uint8_t)event->kind,
    };
    return profile_keep_span(profile, &span, status);
}

static struct weft_context *context_of(const struct profile *profile, int backend, bool intra)
{
    const struct bench_backend_ops *ops = profile->plan->backends[backend];

    return ops->context ? ops->context(profile->site->bed->backends[backend], intra) : NULL;
}

int profile_trace(struct profile *profile, struct wf_status *status)
{
    for (int backend = 0; backend < profile->plan->backend_count; backend++)
        for (int intra = 0; intra < 2; intra++) {
            struct weft_context *context = context_of(profile, backend, intra);
            struct weft_error err = {0};
            if (context && weft_trace_start(context, TRACE_EVENTS, &err))
                return wf_fail(status, err.code, "tracing: %s", err.text);
        }
    return 0;
}

/* Events of a message may come after its end: they are taken with those of the next one. */
int profile_take_spans(struct profile *profile, struct wf_status *status)
{
    static struct weft_trace_event events[TAKEN_AT_ONCE];
    int result = 0, count;

    for (int backend = 0; backend < profile->plan->backend_count; backend++)
        for (int intra = 0; intra < 2; intra++) {
            struct weft_context *context = context_of(profile, backend, intra);
            while (context &&
                   (count = weft_trace_take(context, events, TAKEN_AT_ONCE, &profile->spans_lost[intra])) > 0)
                for (int i = 0; result == 0 && i < count; i++)
                    result = keep_event(profile, &events[i], status);
        }
    return result;
}
