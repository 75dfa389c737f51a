#include "core/session/watched.h"

#include "core/channel/channel.h"
#include "core/channel/half_state.h"
#include "core/channel/payload.h"
#include "core/message/inbound.h"
#include "core/message/outbound.h"
#include "core/request/request.h"

static void *begin(const struct wf_channel *channel, const struct wf_frame *frame, const struct weft_request *request,
                   bool receives)
{
    struct weft_chunk chunk = {
        .offset = frame->offset,
        .bytes = frame->length,
        .rail = channel->rail,
        .channel = (int32_t)channel->id,
        .fd = channel->payload ? channel->payload->fd : channel->fd,
        .receives = receives,
    };
    return request->watcher->begins(request->user_data, &chunk);
}

static void end(const struct weft_request *request, void *own, bool whole)
{
    request->watcher->ends(request->user_data, own, whole);
}

void wf_watched_send(struct wf_channel *channel, const struct wf_frame *frame, const struct wf_outbound *outbound)
{
    wf_tx_watch(&channel->tx, begin(channel, frame, outbound->request, false));
}

void wf_watched_sent(struct wf_channel *channel)
{
    struct wf_tx *tx = &channel->tx;
    bool whole = tx->op.result >= 0 && !(channel->payload && channel->payload->op.result < 0);
    for (uint32_t watched = wf_tx_take_watched(tx); watched != 0; watched &= watched - 1) {
        int i = __builtin_ctz(watched);
        end(tx->batch[i]->request, tx->watched_own[i], whole);
    }
}

void wf_watched_receive(struct wf_channel *channel, const struct wf_inbound *inbound)
{
    wf_rx_watch(&channel->rx, true, begin(channel, &channel->rx.frame, inbound->request, true));
}

void wf_watched_received(struct wf_channel *channel, bool whole)
{
    struct wf_rx *rx = &channel->rx;
    end(rx->claim->request, rx->watched_own, whole);
    wf_rx_watch(rx, false, NULL);
}
