#include "core/session/payload.h"

#include <errno.h>

#include "core/channel/half_state.h"
#include "core/channel/lines.h"
#include "core/channel/work.h"
#include "core/drive/worker.h"
#include "core/ground/reached.h"
#include "core/message/connection.h"
#include "core/message/connection_close.h"
#include "core/message/inbound.h"
#include "core/message/match.h"
#include "core/message/stage.h"
#include "core/session/loss.h"
#include "core/session/session.h"
#include "core/session/watched.h"

static void unclaim(struct wf_channel *channel)
{
    struct wf_inbound *inbound = wf_rx_unclaim(&channel->rx);
    inbound->claims -= 1;
    wf_inbound_check(inbound);
}

/* May the payload go to the pool although its message is matched? It will then need a copy of its own. So it must have
 * a block at least, or be the end of the burst: else a peer could make us copy each byte separately. */
static bool has_blocks(const struct wf_inbound *inbound, const struct wf_frame *frame)
{
    uint64_t end = frame->offset + frame->length;
    return !inbound->settled && end <= inbound->burst && (frame->length >= WF_BLOCK_BYTES || end == inbound->burst);
}

/* Goes the payload to the memory of a receive whose user is told of it? */
static bool is_watched(const struct wf_rx *rx)
{
    return rx->claim && rx->claim->watched && !rx->pooled && rx->frame.length > 0;
}

void wf_session_payload_claim(struct wf_channel *channel, struct wf_inbound *inbound)
{
    struct wf_rx *rx = &channel->rx;
    inbound->claims += 1;
    wf_rx_claim(rx, inbound);
    if (inbound->state == WF_INBOUND_EARLY)
        wf_match_advance(inbound->connection);
    wf_rx_pool(rx, inbound->state == WF_INBOUND_EARLY || inbound->state == WF_INBOUND_UNMATCHED || inbound->parked);
    wf_channel_redirects(channel, false);
    bool staged = inbound->device && !rx->pooled && rx->frame.length > 0 && !channel->payload;
    if (inbound->state == WF_INBOUND_DRAINING) {
        unclaim(channel);
    } else if (staged && !wf_stage_in_take(channel)) {
        wf_rx_pool(rx, has_blocks(inbound, &rx->frame));
        wf_channel_hold(channel, !rx->pooled);
        if (rx->held)
            unclaim(channel);
    }
    if (is_watched(rx))
        wf_watched_receive(channel, rx->claim);
}

/* Do the ranges of two chunks overlap? */
static bool overlap(const struct wf_frame *a, const struct wf_frame *b)
{
    return a->offset < b->offset + b->length && b->offset < a->offset + a->length;
}

struct wf_channel *wf_session_payload_rival(const struct wf_channel *channel, struct wf_inbound *inbound,
                                            const struct wf_frame *frame)
{
    inbound->resent |= (frame->flags & WF_FLAG_RESENT) != 0;
    if (inbound->claims == 0 || !inbound->resent)
        return NULL;
    WF_LINES_EACH (other, channel->lines) {
        if (other != channel && other->rx.claim == inbound && overlap(&other->rx.frame, frame))
            return other;
    }
    return NULL;
}

int wf_session_payload_outlive(struct wf_channel *channel, struct wf_channel *other, const struct wf_frame *frame)
{
    if (!(frame->flags & WF_FLAG_RESENT) || channel->kill)
        return -ESTALE;
    WF_REACHED("channel UP: a chunk whose range another channel claims");
    wf_channel_lost(other, -ESTALE, "the peer sends its chunks again elsewhere");
    wf_channel_hold(channel, true);
    wf_session_of(channel)->loss.place_wanted = true;
    return 0;
}

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
    if (rx->watched)
        wf_watched_received(channel, true);
    struct wf_inbound *inbound = message_read(channel);
    if (inbound) {
        struct weft_connection *connection = inbound->connection;
        connection->pins += 1;
        /* The payload went to the pool, but the receive was posted meanwhile. */
        if (rx->claim && rx->pooled && inbound->state == WF_INBOUND_MATCHED && !inbound->parked)
            wf_inbound_copy_out(inbound, start, end);
        bool copied = (rx->slot || (channel->payload && rx->claim)) && inbound->state == WF_INBOUND_MATCHED;
        if (copied)
            wf_stage_in_start(channel);
        else if (wf_rx_unclaim(rx))
            inbound->claims -= 1;
        wf_stage_in_drop(channel); /* gives back what is left: the message was refused */
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
        if (last && channel->kind == WF_CHANNEL_EXPRESS)
            wf_worker_expect_answer(rx->worker);
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
    if (rx->watched)
        wf_watched_received(channel, false);
    struct wf_inbound *inbound = wf_rx_unclaim(rx);
    wf_stage_in_drop(channel);
    if (!inbound)
        return;
    inbound->claims -= 1;
    wf_inbound_check(inbound);
    wf_session_place_free(wf_session_of(channel));
}
