/* The public calls on the trace. */
#include "core/ground/trace.h"

#include <errno.h>

#include "core/calls/context.h"
#include "core/ground/refusal.h"
#include "core/ground/world.h"

#define EVENTS_AT_ONCE 64 /* taken under the lock together: nothing that writes an event waits long for it */

_Static_assert((int)WEFT_TRACE_SENT == WF_TRACE_SENT && (int)WEFT_TRACE_RECEIVED == WF_TRACE_RECEIVED &&
                   (int)WEFT_TRACE_COPIED_OUT == WF_TRACE_COPIED_OUT && (int)WEFT_TRACE_COPIED_IN == WF_TRACE_COPIED_IN,
               "the same kinds");

int weft_trace_start(struct weft_context *context, uint32_t events, struct weft_error *err)
{
    if (WF_IS_NULL(wf_status_of(err), context))
        return -EINVAL;
    int result = wf_trace_start(&context->world.trace, events, wf_world_now(&context->world));
    if (result < 0)
        return wf_fail(wf_status_of(err), result, "no memory for a trace of %u events: give fewer", events);
    return 0;
}

static void tell(const struct wf_trace_event *own, struct weft_trace_event *event)
{
    *event = (struct weft_trace_event){
        .begin_ns = own->begin_ns,
        .end_ns = own->end_ns,
        .tag = own->tag,
        .offset = own->offset,
        .bytes = own->bytes,
        .endpoint = own->endpoint,
        .remote = own->remote,
        .rail = own->rail,
        .channel = own->channel,
        .gpu = own->gpu,
        .kind = own->kind,
    };
}

int weft_trace_take(struct weft_context *context, struct weft_trace_event *events, int max, uint64_t *lost)
{
    if (WF_IS_NULL(wf_refusal(), context) || (max > 0 && WF_IS_NULL(wf_refusal(), events)))
        return -EINVAL;
    if (max < 0) {
        wf_fail(wf_refusal(), -EINVAL, "max is %d: give 0 or more", max);
        return wf_refused(__func__, -EINVAL);
    }
    struct wf_trace_event own[EVENTS_AT_ONCE];
    uint64_t lost_now;
    int count = 0, taken;
    do {
        int wanted = max - count < EVENTS_AT_ONCE ? max - count : EVENTS_AT_ONCE;
        taken = (int)wf_trace_take(&context->world.trace, own, (uint32_t)wanted, &lost_now);
        for (int i = 0; i < taken; i++)
            tell(&own[i], &events[count + i]);
        count += taken;
    } while (taken == EVENTS_AT_ONCE);
    if (lost)
        *lost = lost_now;
    return count;
}
