#include "core/session/payload.h"

#include <errno.h>

#include "core/channel/half_state.h"
#include "core/channel/work.h"
#include "core/message/connection.h"
#include "core/message/connection_close.h"
#include "core/message/inbound.h"
#include "core/message/stage.h"
#include "core/session/loss.h"
#include "core/session/session.h"

/* Makes STATE due on every channel with disposals that no frame has told the peer yet. */
static void tell_disposals(struct wf_session *session)
{
    struct wf_link *link;
    while ((link = wf_list_pop_front(&session->lines.owing))) {
        struct wf_channel *channel = WF_CONTAINER(link, struct wf_channel, rx.owing_link);
        if (channel->rx.disposed != channel->tx.ack_sent)
            wf_channel_tell_state(channel);
    }
}

/* The message whose payload has just been read: the claimed one, or one that is DRAINING, whose bytes count too. */
static struct wf_inbound *message_read(struct wf_channel *channel)
{
    if (channel->rx.claim)
        return channel->rx.claim;
    struct weft_connection *connection = wf_connection_find(&wf_session_of(channel)->desk, channel->rx.frame.conn);
    bool reply = channel->rx.frame.flags & WF_FLAG_READ_REPLY;
    struct wf_inbound *inbound = NULL;
    if (connection)
        inbound = reply ? wf_inbound_find_reading(connection, channel->rx.frame.msg)
                        : wf_inbound_find(connection, channel->rx.frame.msg);
    return inbound && inbound->state == WF_INBOUND_DRAINING ? inbound : NULL;
}

void wf_session_payload_finish(struct wf_channel *channel)
{
    struct wf_rx *rx = &channel->rx;
    struct wf_session *session = wf_session_of(channel);
    uint64_t start = rx->frame.offset, end = start + rx->frame.length;
    struct wf_inbound *inbound = message_read(channel);
    if (inbound) {
        struct weft_connection *connection = inbound->connection;
        connection->pins += 1;
        /* The payload went to the pool, but the receive was posted meanwhile. */
        if (rx->claim && rx->pooled && inbound->state == WF_INBOUND_MATCHED && !inbound->parked)
            wf_inbound_copy_out(inbound, start, end);
        bool copied = (rx->slot || (channel->payload && rx->claim)) && inbound->state == WF_INBOUND_MATCHED;
        if (copied && wf_stage_in_start(channel) < 0)
            wf_guard_fail(&session->guard, -ENOMEM, "no memory to copy a message from %s to a device",
                          session->peer.name);
        else if (rx->claim && !copied)
            inbound->claims -= 1;
        wf_stage_in_drop(channel); /* gives back what is left: the message was refused meanwhile */
        wf_rx_unclaim(rx);
        int result = wf_inbound_mark(inbound, start, end);
        if (result < 0 && result != -EEXIST)
            wf_guard_fail(&session->guard, result, "a message from %s arrived in too many pieces", session->peer.name);
        bool last = inbound->arrived.covered == inbound->total && inbound->total > session->terms.limits.eager;
        wf_inbound_check(inbound);
        connection->pins -= 1;
        wf_connection_check(connection);
        wf_channel_dispose(channel, rx->frame.length);
        wf_session_place_free(session);
        if (last)
            tell_disposals(session); /* the sender waits for the acknowledgement of the last bytes */
    } else {
        wf_channel_dispose(channel, rx->frame.length);
    }
    wf_channel_redirects(channel, false);
}

/* See payload.h: the inbound message was refused, or the channel lets go. Session lock held. */
void wf_session_payload_drop_claim(struct wf_channel *channel)
{
    struct wf_rx *rx = &channel->rx;
    wf_channel_redirects(channel, false);
    struct wf_inbound *inbound = wf_rx_unclaim(rx);
    wf_stage_in_drop(channel);
    if (!inbound)
        return;
    inbound->claims -= 1;
    wf_inbound_check(inbound);
    wf_session_place_free(wf_session_of(channel));
}
