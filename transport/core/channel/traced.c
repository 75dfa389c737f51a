#include "core/channel/traced.h"

#include "core/channel/channel.h"
#include "core/channel/lines.h"
#include "core/channel/ops.h"

static void add(struct wf_channel *channel, enum wf_trace_kind kind, const struct wf_frame *frame, int64_t begin_ns,
                int64_t end_ns)
{
    struct wf_trace_event event = {
        .begin_ns = begin_ns,
        .end_ns = end_ns,
        .tag = frame->flags & WF_FLAG_TAGGED ? frame->key : 0,
        .offset = frame->offset,
        .bytes = frame->length,
        .rail = channel->rail,
        .channel = (int32_t)channel->id,
        .gpu = -1,
        .kind = kind,
    };
    channel->ops->endpoints(channel, frame->conn, &event.endpoint, &event.remote);
    wf_trace_add(&channel->lines->guard->world->trace, &event);
}

/* The frames of the batch are the last ones that were retained, and stay in the ring until the next batch, also when
 * they are acknowledged or strays by now. The first one with a message. */
static uint64_t first_of_batch(const struct wf_tx *tx)
{
    uint64_t at = tx->window.spent_frames;
    for (int left = tx->batch_count; left > 0; left -= tx->retained[at % tx->ring].outbound != NULL)
        at -= 1;
    return at;
}

void wf_traced_batch(struct wf_channel *channel)
{
    const struct wf_tx *tx = &channel->tx;
    if (tx->ended_ns == 0 || tx->op.result < 0)
        return;
    for (uint64_t at = first_of_batch(tx); at < tx->window.spent_frames; at++) {
        const struct wf_retained *retained = &tx->retained[at % tx->ring];
        if (retained->outbound)
            add(channel, WF_TRACE_SENT, &retained->frame, tx->posted_ns, tx->ended_ns);
    }
}

void wf_traced_arrival(struct wf_channel *channel, const struct wf_frame *frame, int64_t begin_ns)
{
    add(channel, WF_TRACE_RECEIVED, frame, begin_ns, wf_world_now(channel->lines->guard->world));
}
