/* What the session does with each frame that arrives. The receive half calls it with the session's lock held. A
 * negative result means that the peer broke the protocol; the channel ends. */
#include "core/session/arrive.h"

#include <errno.h>

#include "core/channel/channel.h"
#include "core/channel/half_state.h"
#include "core/channel/ops.h"
#include "core/ground/reached.h"
#include "core/message/connection.h"
#include "core/message/connection_close.h"
#include "core/message/detach.h"
#include "core/message/inbound.h"
#include "core/message/match.h"
#include "core/message/outbound.h"
#include "core/message/served.h"
#include "core/message/stage.h"
#include "core/request/request.h"
#include "core/session/loss.h"
#include "core/session/payload.h"
#include "core/session/session.h"
#include "core/session/small.h"
#include "core/session/totals_in.h"
#include "core/session/traffic.h"
#include "core/session/trial.h"
#include "core/session/watched.h"

static struct wf_session *session_of(const struct weft_connection *connection)
{
    return WF_CONTAINER(connection->desk, struct wf_session, desk);
}

/* The peer broke the protocol: fails the session; the error names the frame and the mistake. */
static int violation(struct wf_session *session, const struct wf_frame *frame, const char *how)
{
    WF_REACHED("session UP: frame against the protocol");
    wf_guard_fail(&session->guard, -EPROTO,
                  "%s broke the protocol: %s of connection %u, message %llu, bytes %llu + %u of %llu %s",
                  session->peer.name, wf_frame_name(frame->type), frame->conn, (unsigned long long)frame->msg,
                  (unsigned long long)frame->offset, frame->length, (unsigned long long)frame->total, how);
    return -EPROTO;
}

/* The message of this side that the frame is about. NULL with 0: it has ended. NULL with -EPROTO: this side never gave
 * that number. */
static struct wf_outbound *own_message(struct weft_connection *connection, const struct wf_frame *frame, int *result)
{
    *result = 0;
    if (frame->msg == 0 || frame->msg >= connection->next_number)
        *result = violation(session_of(connection), frame, "speaks of a message that was never sent");
    return *result < 0 ? NULL : wf_outbound_find(connection, frame->msg, false);
}

#define KIND_FLAGS (WF_FLAG_WRITE | WF_FLAG_NOTIFY | WF_FLAG_LIST)

/* Is the number within the limit, which is on introduced minus finished? */
static bool within_limit(const struct weft_connection *connection, uint64_t number)
{
    return number <= wf_connection_limit(connection);
}

/* Does the frame agree with the first frame of the message? */
static bool agrees(const struct wf_inbound *inbound, const struct wf_frame *frame)
{
    if (inbound->total == WF_TOTAL_UNKNOWN) /* refused before it was introduced; or a READ, which has no bytes */
        return inbound->state == WF_INBOUND_DRAINING;
    return inbound->total == frame->total && inbound->tag == frame->key &&
           inbound->flags == (frame->flags & KIND_FLAGS) && inbound->base == frame->base;
}

/* Does something of it come unasked? An OFFER says so, a DATA frame is part of it. A write needs no match. */
static bool comes_unasked(const struct wf_frame *frame)
{
    return frame->type == WF_OFFER ? frame->offset > 0 : !(frame->flags & WF_FLAG_WRITE);
}

/* The first frame of a message that was refused before: fills in its tag, kind and size, and gives its credit back. */
static void name(struct wf_inbound *inbound, const struct wf_frame *frame)
{
    if (inbound->total != WF_TOTAL_UNKNOWN || inbound->refuse_seen)
        return;
    inbound->tag = frame->key;
    inbound->flags = frame->flags & KIND_FLAGS;
    inbound->base = frame->base;
    wf_inbound_name(inbound, frame->total, !comes_unasked(frame));
}

/* The message of a DATA or OFFER frame, created if it is new. NULL with 0: it has finished, its bytes are drained. */
static int introduce(struct weft_connection *connection, const struct wf_frame *frame, struct wf_inbound **out)
{
    struct wf_session *session = session_of(connection);
    *out = wf_inbound_find(connection, frame->msg);
    if (frame->total == WF_TOTAL_UNKNOWN)
        return violation(session, frame, "has a size that nothing has");
    if (*out && !agrees(*out, frame))
        return violation(session, frame, "contradicts what introduced the message");
    if (*out) {
        name(*out, frame);
        return 0;
    }
    if (wf_finished_has(&connection->finished, frame->msg))
        return frame->msg == 0 ? violation(session, frame, "has no number") : 0;
    if (!within_limit(connection, frame->msg))
        return violation(session, frame, "is beyond the limit of introductions");
    bool unsolicited = comes_unasked(frame);
    *out = wf_inbound_create(connection, frame->msg, frame->key, frame->total, !unsolicited);
    if (!*out && wf_inbound_fits(connection, frame->total, !unsolicited))
        return -ENOMEM;
    if (!*out)
        return violation(session, frame, "is beyond the credit for unsolicited bytes");
    (*out)->flags = frame->flags & KIND_FLAGS;
    (*out)->base = frame->base;
    WF_REACHED_IF(frame->type == WF_OFFER && unsolicited,
                  "incoming message EARLY: announced, for its first bytes come behind others");
    if (wf_onesided_introduced(*out, frame) < 0)
        return violation(session, frame, "does not fit its kind");
    if ((*out)->state != WF_INBOUND_EARLY) { /* it needs no match: the messages after it can be matched */
        (*out)->claims += 1;
        wf_match_advance(connection);
        (*out)->claims -= 1;
    }
    return 0;
}

/* It may be complete: the rest of it came while other messages were matched, or is here already. */
static void look_again(struct weft_connection *connection, struct wf_inbound *inbound)
{
    connection->pins += 1;
    if (inbound->state != WF_INBOUND_EARLY)
        wf_inbound_check(inbound);
    connection->pins -= 1;
    wf_connection_check(connection);
}

static int take_offer(struct weft_connection *connection, const struct wf_frame *frame)
{
    struct wf_inbound *inbound;
    int result = introduce(connection, frame, &inbound);
    if (result < 0 || !inbound)
        return result;
    if (frame->offset > 0 && inbound->state != WF_INBOUND_DRAINING && frame->offset != inbound->burst)
        return violation(session_of(connection), frame, "announces bytes that may not come unasked");
    connection->pins += 1;
    look_again(connection, inbound); /* a list */
    wf_match_advance(connection);
    connection->pins -= 1;
    wf_connection_check(connection);
    return 0;
}

/* May these bytes come now? Yes within the burst, or if they were granted. */
static bool promised(const struct wf_inbound *inbound, const struct wf_frame *frame)
{
    bool asked = inbound->kind == WF_INBOUND_WRITE || inbound->kind == WF_INBOUND_READING;
    if (inbound->state == WF_INBOUND_DRAINING || inbound->state == WF_INBOUND_CONFIRMING || asked)
        return true;       /* CONFIRMING: a second copy */
    if (inbound->detached) /* all of it, also on other channels: what a lost device channel carried */
        return inbound->state == WF_INBOUND_MATCHED && !inbound->parked;
    uint64_t end = frame->offset + frame->length;
    if (end <= inbound->burst)
        return true;
    /* While the message is parked its bytes go to the pool, which has room for the burst alone. */
    return inbound->state == WF_INBOUND_MATCHED && !inbound->parked && frame->offset >= inbound->burst &&
           wf_stage_in_promised(inbound, end);
}

/* The inbound message for the reply to one of this side's READs. NULL with 0: it has ended, the bytes are drained. */
static int find_reading(struct weft_connection *connection, const struct wf_frame *frame, struct wf_inbound **out)
{
    if (frame->msg == 0 || frame->msg >= connection->next_number)
        return violation(session_of(connection), frame, "answers what was never asked");
    *out = wf_inbound_find_reading(connection, frame->msg);
    if (*out && (*out)->total != frame->total)
        return violation(session_of(connection), frame, "has not the size that was asked for");
    return 0;
}

/* May the payload come on this channel? A device channel is for the memory of one GPU, and for messages whose sender
 * was told so: what is not matched yet could end in host memory, where fragments cannot go. One that has been refused
 * meanwhile, or has ended, is drained. */
static bool suits_channel(const struct wf_channel *channel, const struct wf_inbound *inbound)
{
    if (channel->strand < 0 || !inbound || inbound->state == WF_INBOUND_DRAINING ||
        inbound->state == WF_INBOUND_CONFIRMING)
        return true;
    return inbound->state == WF_INBOUND_MATCHED && inbound->detached && inbound->device &&
           (uint32_t)inbound->device->index == wf_strand_domain((uint32_t)channel->strand);
}

static int take_data(struct wf_channel *channel, struct weft_connection *connection, const struct wf_frame *frame)
{
    struct wf_session *session = wf_session_of(channel);
    struct wf_rx *rx = &channel->rx;
    if (frame->length > session->guard.world->tuning.chunk || (frame->length == 0 && frame->total != 0))
        return violation(session, frame, "has a length that was never agreed");
    WF_REACHED_IF(connection->state == WF_CONNECTION_OPENING, "connection OPENING: DATA");
    wf_connection_opened(connection);
    struct wf_inbound *inbound;
    bool reply = frame->flags & WF_FLAG_READ_REPLY;
    int result = reply ? find_reading(connection, frame, &inbound) : introduce(connection, frame, &inbound);
    if (result < 0)
        return result;
    wf_rx_unclaim(rx);
    if (!suits_channel(channel, inbound))
        return violation(session, frame, "comes on a channel for other memory");
    if (!inbound)
        return 0; /* the message has finished: the bytes are drained and acknowledged */
    if (!promised(inbound, frame))
        return violation(session, frame, "comes before it was granted");
    int there = wf_range_test(&inbound->arrived, frame->offset, frame->offset + frame->length);
    if (there < 0)
        return violation(session, frame, "overlaps bytes that are here");
    if (there > 0 && frame->length > 0) { /* these bytes came before */
        look_again(connection, inbound);
        return 0;
    }
    struct wf_channel *other = wf_session_payload_rival(channel, inbound, frame);
    if (other)
        return wf_session_payload_outlive(channel, other, frame);
    wf_session_payload_claim(channel, inbound);
    return 0;
}

/* A GRANT that may name a domain of the peer. */
static int take_domain(struct wf_outbound *outbound, const struct wf_frame *frame)
{
    struct wf_session *session = session_of(outbound->connection);
    if (frame->key > WF_DOMAINS_MAX || (frame->key > 0 && !(session->terms.features & WF_FEATURE_DEVICE)))
        return -EPROTO;
    if (frame->key > 0)
        wf_session_use_strand(session, wf_strand_of((uint32_t)frame->key - 1, session->terms.dialer));
    return wf_outbound_grant(outbound, frame->offset, frame->key);
}

static int take_grant(struct weft_connection *connection, const struct wf_frame *frame)
{
    int result, done = 0;
    struct wf_outbound *outbound = own_message(connection, frame, &result);
    if (outbound && frame->base == WF_BASE_LANDED)
        done = wf_outbound_landed(outbound, frame->offset);
    else if (outbound)
        done = take_domain(outbound, frame);
    return done < 0 ? violation(session_of(connection), frame, "grants what was not asked for") : result;
}

/* The status in a frame: a value that is no negative errno is the peer's mistake, and becomes -EPROTO. */
static int status_of(const struct wf_frame *frame)
{
    int64_t status = (int64_t)frame->key;
    return status < 0 && status >= -4095 ? (int)status : -EPROTO;
}

/* The peer gives up a message of its own. */
static int refused_by_sender(struct weft_connection *connection, const struct wf_frame *frame)
{
    /* The message may use a list (`base`), or be one (`msg`). */
    wf_upload_drop(connection, frame->base);
    wf_upload_drop(connection, frame->msg);
    struct wf_inbound *inbound = wf_inbound_find(connection, frame->msg);
    if (!inbound || inbound->state == WF_INBOUND_CONFIRMING) {
        if (wf_finished_has(&connection->finished, frame->msg))
            return frame->msg == 0 ? -EPROTO : wf_inbound_answer(connection, frame->msg, status_of(frame));
        if (!within_limit(connection, frame->msg))
            return -EPROTO;
        /* The message was never introduced here: its number must only be finished, and the REFUSE answered. */
        inbound = wf_inbound_create(connection, frame->msg, 0, WF_TOTAL_UNKNOWN, true);
        if (!inbound)
            return -ENOMEM;
    }
    /* It has then taken no blocks of the pool either: the credit that it spent is given back here. */
    if (inbound->total == WF_TOTAL_UNKNOWN && !inbound->refuse_seen)
        wf_desk_settle(connection->desk, frame->offset);
    connection->pins += 1;
    if (inbound->partner) {
        wf_onesided_reply_refused(inbound, status_of(frame));
    } else {
        inbound->refuse_seen = true;
        wf_inbound_refuse(inbound, status_of(frame));
        /* Answer also when all bytes are here: the acknowledgements may be lost, and then the sender waits for this. */
        if (!inbound->refuse_sent) {
            inbound->refuse_due = true;
            wf_inbound_todo(inbound);
        }
        wf_inbound_check(inbound);
    }
    connection->pins -= 1;
    wf_match_advance(connection);
    return 0;
}

/* The notification with this number, if it has its number but is not sent yet; or NULL. */
static struct wf_outbound *unheard_note(struct weft_connection *connection, uint64_t number)
{
    struct wf_outbound *subject = wf_outbound_find(connection, number - 1, false);
    return subject && subject->note && subject->note->number == number ? subject->note : NULL;
}

static int take_refuse(struct weft_connection *connection, const struct wf_frame *frame)
{
    if (!(frame->flags & WF_FLAG_PEER))
        return refused_by_sender(connection, frame);
    int result;
    struct wf_outbound *outbound = own_message(connection, frame, &result);
    if (result == 0 && !outbound)
        outbound = unheard_note(connection, frame->msg);
    if (outbound)
        wf_outbound_refused_by_peer(outbound, status_of(frame));
    return result;
}

static int take_read(struct weft_connection *connection, const struct wf_frame *frame)
{
    if (wf_inbound_find(connection, frame->msg) || wf_finished_has(&connection->finished, frame->msg))
        return frame->msg == 0 ? violation(session_of(connection), frame, "has no number") : 0; /* said twice */
    if (!within_limit(connection, frame->msg))
        return violation(session_of(connection), frame, "is beyond the limit of introductions");
    int result = wf_onesided_read(connection, frame);
    if (result == 0)
        wf_match_advance(connection);
    return result;
}

static int take_for_connection(struct wf_channel *channel, const struct wf_frame *frame)
{
    struct wf_session *session = wf_session_of(channel);
    struct weft_connection *connection = wf_connection_find(&session->desk, frame->conn);
    if (!connection) {
        wf_rx_unclaim(&channel->rx);
        if (!wf_connection_was_closed(&session->desk, frame->conn))
            return violation(session, frame, "speaks of a connection that was never opened");
        WF_REACHED("connection DEAD: a late frame");
        return 0; /* stale frames are drained */
    }
    switch (frame->type) {
    case WF_DATA:
        return take_data(channel, connection, frame);
    case WF_OFFER:
        wf_connection_opened(connection);
        return take_offer(connection, frame);
    case WF_GRANT:
        return take_grant(connection, frame);
    case WF_READ:
        wf_connection_opened(connection);
        return take_read(connection, frame);
    case WF_REFUSE:
        return take_refuse(connection, frame);
    default:
        return violation(session, frame, "is not in use yet");
    }
}

static int place_payload(struct wf_channel *channel)
{
    return take_for_connection(channel, &channel->rx.frame);
}

static int take_open(struct wf_session *session, const struct wf_frame *frame)
{
    if (frame->base >= WF_CLASSES)
        return violation(session, frame, "names a traffic class that does not exist");
    int result = wf_session_use_class(session, (unsigned)frame->base);
    return result < 0 ? result : wf_connection_take_open(&session->desk, frame);
}

static int take_sequenced(struct wf_channel *channel, const struct wf_frame *frame)
{
    struct wf_session *session = wf_session_of(channel);
    switch (frame->type) {
    case WF_OPEN:
        return take_open(session, frame);
    case WF_OPENED:
        return wf_connection_take_opened(&session->desk, frame);
    case WF_CLOSE:
        return wf_connection_take_close(&session->desk, frame);
    case WF_CLOSED:
        return wf_connection_take_closed(&session->desk, frame);
    case WF_DOWN:
        return wf_totals_take_down(session, frame);
    default:
        return take_for_connection(channel, frame);
    }
}

int wf_channel_take_acknowledgement(struct wf_channel *channel, const struct wf_frame *frame)
{
    uint64_t total = wf_window_unwrap(channel->tx.acknowledged, frame->ack);
    bool news = total > channel->tx.acknowledged || channel->tx.moved;
    return news ? wf_channel_acknowledge(channel, total) : 0;
}

static int take_frame(struct wf_channel *channel, const struct wf_frame *frame)
{
    WF_REACHED("channel UP: frame valid");
    int result = wf_channel_take_acknowledgement(channel, frame);
    if (result < 0)
        return result;
    if (!wf_frame_sequenced(frame->type))
        return wf_totals_take(channel, frame);
    if (channel->rx.disposed >= channel->rx.granted_frames)
        return violation(wf_session_of(channel), frame, "is more than the window that was granted");
    result = take_sequenced(channel, frame);
    if (result == 0 && frame->type != WF_DATA)
        wf_channel_dispose(channel, 0);
    return result;
}

static int in_places(const struct wf_inbound *inbound, bool pooled, uint64_t offset, uint64_t length, struct iovec *iov,
                     int max, uint64_t *covered)
{
    return pooled ? wf_inbound_pool_places(inbound, offset, length, iov, max, covered)
                  : wf_inbound_places(inbound, offset, length, iov, max, covered);
}

static void worked_through(struct wf_channel *channel)
{
    wf_match_notes(&wf_session_of(channel)->desk);
}

static void endpoints(const struct wf_channel *channel, uint32_t number, uint32_t *local, uint32_t *remote)
{
    const struct weft_connection *connection = wf_connection_find(&wf_session_of(channel)->desk, number);
    *local = connection ? connection->local_endpoint : UINT32_MAX;
    *remote = connection ? connection->remote_endpoint : UINT32_MAX;
}

const struct wf_channel_ops wf_session_channel_ops = {
    .out_places = wf_outbound_places,
    .in_places = in_places,
    .is_scattered = wf_inbound_is_scattered,
    .land_small = wf_small_land,
    .take_frame = take_frame,
    .place_payload = place_payload,
    .finish_payload = wf_session_payload_finish,
    .drop_claim = wf_session_payload_drop_claim,
    .worked_through = worked_through,
    .endpoints = endpoints,
    .loan = wf_detached_loan,
    .detached_places = wf_detached_places,
    .land_part = wf_stage_in_land,
    .take_pattern = wf_session_take_pattern,
    .watched = wf_watched_sent,
    .released = wf_outbound_released,
    .lost = wf_channel_lost,
};
