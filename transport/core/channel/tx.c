#include <errno.h>
#include <string.h>

#include "core/channel/channel.h"
#include "core/ground/reached.h"
#include "core/message/connection.h"
#include "core/message/inbound.h"
#include "core/message/outbound.h"
#include "core/message/stage.h"
#include "core/session/resend.h"
#include "core/session/session.h"
#include "wire/crc.h"
#include "core/calls/context.h"

#define PROMPT_NS 1000000.0

/* The batch under construction: frames gathered under the lock, posted without it. */

static bool room(const struct wf_channel *channel)
{
    return channel->tx.frame_count < WF_BATCH_FRAMES && channel->tx.iov_count + WF_TX_SEGMENTS_LEFT <= WF_TX_SEGMENTS;
}

/* What is sent now arrives soon: not behind a queue in the kernel. With one bulk channel nobody waits for the
 * acknowledgement to decide where the next bytes go. */
static bool is_prompt(const struct wf_channel *channel)
{
    const struct wf_tx *tx = &channel->tx;
    if (channel->kind != WF_CHANNEL_BULK || channel->session->lines.bulk_count < 2)
        return true;
    return (double)(tx->window.spent_bytes - tx->acknowledged_bytes) <= tx->rate.bytes_per_ns * PROMPT_NS;
}

/* Room for `bytes` in the batch's own memory, which goes out behind what was added last: as one piece with it, if that
 * lies there too and may grow. */
static uint8_t *add_own(struct wf_tx *tx, uint32_t bytes, bool grow)
{
    uint8_t *at = tx->headers + tx->used;
    struct iovec *last = tx->iov_count > 0 ? &tx->iov[tx->iov_count - 1] : NULL;
    tx->used += bytes;
    if (grow && last && (uint8_t *)last->iov_base + last->iov_len == at)
        last->iov_len += bytes;
    else
        tx->iov[tx->iov_count++] = (struct iovec){at, bytes};
    return at;
}

static void add_payload(struct wf_tx *tx, const struct wf_frame *frame, const struct wf_outbound *outbound)
{
    struct iovec *first = tx->iov + tx->iov_count;
    uint64_t covered; /* all of it: the chunk was made to fit */
    int count =
        wf_outbound_places(outbound, frame->offset, frame->length, first, WF_TX_SEGMENTS - tx->iov_count, &covered);
    if (count == 1 && frame->length <= WF_PACKED_BYTES && !(frame->flags & WF_FLAG_CRC)) {
        const void *payload = first->iov_base;
        memcpy(add_own(tx, frame->length, true), payload, frame->length);
    } else {
        tx->iov_count += count;
    }
}

/* Adds a header, and the payload of `outbound` if there is one. */
static void add(struct wf_channel *channel, struct wf_frame *frame, const struct wf_outbound *outbound)
{
    struct wf_tx *tx = &channel->tx;
    tx->frame_count += 1;
    frame->ack = (uint32_t)channel->rx.disposed;
    if (is_prompt(channel))
        tx->ack_sent = channel->rx.disposed;
    frame->data_off = (uint16_t)(frame->length > 0 ? tx->pad : WF_FRAME_BYTES);
    if (frame->length > 0 && channel->session->context->world.tuning.crc) {
        frame->flags |= WF_FLAG_CRC;
        tx->unsealed[tx->unsealed_count++] = (struct wf_unsealed){*frame, tx->iov_count};
        add_own(tx, frame->data_off, false);
    } else {
        wf_frame_encode(frame, add_own(tx, frame->data_off, true));
    }
    if (frame->length > 0)
        add_payload(tx, frame, outbound);
}

static void add_sequenced(struct wf_channel *channel, struct wf_frame *frame, struct wf_outbound *outbound)
{
    wf_channel_retain(channel, frame, outbound);
    add(channel, frame, outbound);
    if (!outbound)
        return;
    channel->tx.batch[channel->tx.batch_count++] = outbound;
    struct wf_session_rail *rail = &channel->session->lines.rails[channel->rail];
    wf_counter_add(&rail->sent_bytes, frame->length);
}

/* --- frames that are not counted: absolute totals and probes --- */

static void state_frame(struct wf_channel *channel, struct wf_frame *frame)
{
    *frame = (struct wf_frame){.type = WF_STATE, .key = wf_channel_key(channel->id, channel->incarnation)};
    frame->offset = channel->rx.disposed;
    wf_channel_credit(channel, &frame->total, &frame->base);
    channel->rx.granted_frames = frame->total;
    channel->tx.ack_sent = frame->offset;
    channel->tx.state_due = false;
}

const struct wf_channel *wf_channel_behind(const struct wf_channel *express)
{
    const struct wf_session *session = express->session;
    for (int i = 0; i < session->lines.channel_count; i++) {
        const struct wf_channel *channel = session->lines.channels[i];
        bool bulk = channel && channel->kind == WF_CHANNEL_BULK && channel->rail == express->rail && channel->up;
        if (bulk && channel->tx.state_due && !channel->tx.idle)
            return channel;
    }
    return NULL;
}

static void credit_frame(struct wf_session *session, struct wf_frame *frame)
{
    *frame = (struct wf_frame){.type = WF_CREDIT};
    frame->offset = session->desk.unsolicited_settled + (uint64_t)session->desk.blocks.count * WF_BLOCK_BYTES;
    session->desk.unsolicited_told = frame->offset;
    session->desk.credit_due = false;
}

/* The next uncounted frame, if any is due. */
static bool next_total(struct wf_channel *channel, struct wf_frame *frame)
{
    struct wf_session *session = channel->session;
    struct wf_tx *tx = &channel->tx;
    const struct wf_channel *behind;
    if (tx->state_due) {
        state_frame(channel, frame);
    } else if (channel->kind == WF_CHANNEL_EXPRESS && (behind = wf_channel_behind(channel))) {
        state_frame(session->lines.channels[behind->id], frame);
    } else if (session->desk.credit_due && channel->kind == WF_CHANNEL_EXPRESS) {
        credit_frame(session, frame);
    } else if (tx->ping_due) {
        tx->ping_due = false;
        *frame = (struct wf_frame){.type = WF_PING, .msg = session->life.ping_number};
    } else if (tx->pong_due) {
        tx->pong_due = false;
        *frame = (struct wf_frame){.type = WF_PONG, .msg = tx->pong_number};
    } else {
        return false;
    }
    return true;
}

/* --- counted control frames, in the order of the session's lists --- */

static bool connection_frame(struct weft_connection *connection, struct wf_frame *frame)
{
    *frame = (struct wf_frame){.conn = connection->number};
    if (connection->open_due) {
        connection->open_due = false;
        frame->type = WF_OPEN;
        frame->key = (uint64_t)connection->local_endpoint << 32 | connection->remote_endpoint;
        frame->offset = connection->limit_sent;
    } else if (connection->opened_due) {
        connection->opened_due = false;
        frame->type = WF_OPENED;
        frame->offset = connection->limit_sent;
    } else if (connection->close_due) {
        connection->close_due = false;
        connection->close_sent = true;
        frame->type = WF_CLOSE;
        frame->msg = connection->next_number;
    } else if (connection->closed_due) {
        connection->closed_due = false;
        connection->closed_sent = true;
        frame->type = WF_CLOSED;
    } else if (connection->credit_due) {
        connection->credit_due = false;
        frame->type = WF_CREDIT;
        frame->offset = connection->limit_sent = wf_connection_limit(connection);
    } else {
        return false;
    }
    return true;
}

static bool inbound_frame(struct wf_inbound *inbound, struct wf_frame *frame)
{
    uint8_t flags = inbound->kind == WF_INBOUND_READING ? 0 : WF_FLAG_PEER;
    *frame = (struct wf_frame){.conn = inbound->connection->number, .msg = inbound->number, .flags = flags};
    if (inbound->refuse_due) {
        inbound->refuse_due = false;
        inbound->refuse_sent = true;
        frame->type = WF_REFUSE;
        frame->key = (uint64_t)(int64_t)inbound->refuse_status;
        if (inbound->kind == WF_INBOUND_READING && inbound->partner->listed) /* REFUSE may overtake the READ */
            frame->base = inbound->partner->key;
    } else if (inbound->grant_due) {
        inbound->grant_due = false;
        frame->type = WF_GRANT;
        frame->offset = inbound->granted = wf_stage_in_limit(inbound);
    } else {
        return false;
    }
    return true;
}

/* What the peer is to know of a channel that was lost. */
static bool down_frame(struct wf_session *session, struct wf_frame *frame)
{
    for (int i = 0; session->loss.downs_due > 0 && i < session->lines.channel_count; i++) {
        struct wf_channel *channel = session->lines.channels[i];
        if (!channel || !channel->down.due)
            continue;
        channel->down.due = false;
        session->loss.downs_due -= 1;
        *frame = (struct wf_frame){.type = WF_DOWN,
                                   .key = wf_channel_key(channel->id, channel->down.incarnation),
                                   .offset = channel->down.disposed,
                                   .base = (uint64_t)(int64_t)channel->down.reason};
        return true;
    }
    return false;
}

/* The next control frame; the object it speaks of may end with it. */
static bool next_control(struct wf_session *session, struct wf_frame *frame)
{
    struct wf_link *link;
    if (down_frame(session, frame))
        return true;
    while ((link = wf_list_first(&session->desk.todo_connections))) {
        struct weft_connection *connection = WF_CONTAINER(link, struct weft_connection, todo_link);
        if (connection_frame(connection, frame)) {
            wf_connection_check(connection);
            return true;
        }
        wf_link_remove(link);
    }
    while ((link = wf_list_pop_front(&session->desk.todo_inbounds))) {
        struct wf_inbound *inbound = WF_CONTAINER(link, struct wf_inbound, todo_link);
        if (inbound_frame(inbound, frame)) {
            wf_inbound_check(inbound);
            return true;
        }
    }
    if ((link = wf_list_pop_front(&session->desk.todo_outbounds))) {
        struct wf_outbound *outbound = WF_CONTAINER(link, struct wf_outbound, todo_link);
        wf_outbound_refuse_frame(outbound, frame);
        return true;
    }
    return false;
}

/* --- filling --- */

/* What went astray goes first. False when something of it is left that cannot go now: nothing new goes before it. */
static bool fill_resent(struct wf_channel *channel, uint64_t *bytes)
{
    struct wf_session *session = channel->session;
    struct wf_frame frame;
    struct wf_outbound *outbound;
    while (room(channel) && *bytes < session->context->world.tuning.call &&
           wf_resend_pull(channel, &frame, &outbound)) {
        *bytes += frame.length;
        add_sequenced(channel, &frame, outbound);
    }
    return wf_resend_idle(session, channel->kind);
}

static void fill_express(struct wf_channel *channel)
{
    struct wf_session *session = channel->session;
    struct wf_frame frame;
    uint64_t bytes = 0;
    if (!fill_resent(channel, &bytes))
        return;
    while (room(channel) && wf_channel_open(channel, 0) && next_control(session, &frame)) {
        if (wf_frame_sequenced(frame.type))
            add_sequenced(channel, &frame, NULL);
        else
            add(channel, &frame, NULL);
    }
    while (!wf_list_empty(&session->desk.express_ready) && room(channel) &&
           bytes < session->context->world.tuning.call) {
        bool bare;
        struct wf_outbound *outbound = wf_outbound_pull_express(channel, &frame, &bare);
        if (!outbound && !bare)
            break;
        bytes += frame.length;
        add_sequenced(channel, &frame, outbound);
    }
}

static void fill_bulk(struct wf_channel *channel)
{
    struct wf_session *session = channel->session;
    struct wf_frame frame;
    uint64_t bytes = 0;
    if (!fill_resent(channel, &bytes))
        return;
    while (room(channel) && bytes < session->context->world.tuning.call) {
        struct wf_outbound *outbound = wf_outbound_pull_bulk(channel, &frame);
        if (!outbound) {
            if (!wf_list_empty(&session->desk.bulk_ready) && !wf_channel_open(channel, 1))
                wf_counter_add(&session->lines.rails[channel->rail].stalls, 1);
            break;
        }
        bytes += frame.length;
        add_sequenced(channel, &frame, outbound);
    }
}

bool wf_session_wants(const struct wf_session *session, enum wf_channel_kind kind)
{
    if (session->life.closing || session->guard.peer_closing || !wf_resend_idle(session, kind))
        return true;
    if (kind == WF_CHANNEL_BULK)
        return !wf_list_empty(&session->desk.bulk_ready);
    return !wf_list_empty(&session->desk.express_ready) || !wf_list_empty(&session->desk.todo_connections) ||
           !wf_list_empty(&session->desk.todo_inbounds) || !wf_list_empty(&session->desk.todo_outbounds) ||
           session->desk.credit_due || session->loss.downs_due > 0;
}

/* What there is for channels of its kind may be of connections that it does not serve. */
static bool has_work(const struct wf_channel *channel)
{
    const struct wf_session *session = channel->session;
    if (!wf_session_wants(session, channel->kind))
        return false;
    if (channel->kind != WF_CHANNEL_BULK || session->desk.choosy == 0 || session->life.closing ||
        session->guard.peer_closing || !wf_resend_idle(session, channel->kind))
        return true;
    WF_LIST_EACH (link, following, &session->desk.bulk_ready) {
        if (wf_spread_serves(channel, WF_CONTAINER(link, struct weft_connection, ready_link)))
            return true;
    }
    return false;
}

bool wf_channel_wants(const struct wf_channel *channel)
{
    const struct wf_tx *tx = &channel->tx;
    return tx->state_due || tx->pong_due || tx->ping_due || tx->bye_due || has_work(channel) ||
           (channel->kind == WF_CHANNEL_EXPRESS && wf_channel_behind(channel));
}

void wf_channel_release_batch(struct wf_channel *channel)
{
    struct wf_tx *tx = &channel->tx;
    for (int i = 0; i < tx->batch_count; i++)
        wf_outbound_released(tx->batch[i]);
    tx->batch_count = 0;
}

static void begin_batch(struct wf_channel *channel)
{
    struct wf_tx *tx = &channel->tx;
    wf_channel_release_batch(channel);
    tx->iov_count = tx->unsealed_count = tx->frame_count = 0;
    tx->used = 0;
}

bool wf_channel_take_copied(struct wf_channel *channel, struct wf_outbound *outbound)
{
    const struct wf_session *session = channel->session;
    struct wf_tx *tx = &channel->tx;
    struct wf_frame frame;
    bool own = tx->state_due || tx->pong_due || tx->ping_due || tx->bye_due;
    if (own || session->guard.state != WF_SESSION_UP || wf_session_wants(session, WF_CHANNEL_EXPRESS) ||
        !wf_channel_open(channel, outbound->total) || !wf_outbound_pull_copied(outbound, &frame))
        return false;
    begin_batch(channel);
    add_sequenced(channel, &frame, outbound);
    tx->idle = false;
    return true;
}

bool wf_channel_fill(struct wf_channel *channel)
{
    struct wf_session *session = channel->session;
    struct wf_tx *tx = &channel->tx;
    begin_batch(channel);
    struct wf_frame frame;
    while (room(channel) && next_total(channel, &frame))
        add(channel, &frame, NULL);
    if (session->guard.state == WF_SESSION_UP && channel->kind == WF_CHANNEL_EXPRESS)
        fill_express(channel);
    else if (session->guard.state == WF_SESSION_UP)
        fill_bulk(channel);
    if (tx->bye_due && tx->frame_count < WF_BATCH_FRAMES) {
        WF_REACHED("channel UP: session is closing and nothing is retained");
        frame = (struct wf_frame){.type = WF_BYE};
        add(channel, &frame, NULL);
        tx->bye_due = false;
        tx->bye_sent = true;
    }
    tx->idle = tx->frame_count == 0;
    wf_spread_note(channel);
    return !tx->idle;
}

bool wf_channel_rest(struct wf_channel *channel)
{
    channel->tx.idle = true;
    wf_spread_note(channel);
    return false;
}

/* Sums a payload and writes the header that tells the sum. The kernel reads the same bytes next. */
static void seal(struct wf_tx *tx, struct wf_unsealed *unsealed)
{
    const struct iovec *piece = &tx->iov[unsealed->at];
    uint8_t *header = piece->iov_base;
    uint32_t sum = 0;
    for (uint64_t left = unsealed->frame.length; left > 0; left -= piece->iov_len) {
        piece += 1;
        sum = wf_crc32c(sum, piece->iov_base, piece->iov_len);
    }
    unsealed->frame.payload_crc = sum;
    wf_frame_encode(&unsealed->frame, header);
}

void wf_channel_post_send(struct wf_channel *channel)
{
    struct wf_tx *tx = &channel->tx;
    for (int i = 0; i < tx->unsealed_count; i++)
        seal(tx, &tx->unsealed[i]);
    tx->op.kind = WF_OP_SEND;
    tx->op.fd = channel->fd;
    tx->op.iov = tx->iov;
    tx->op.iov_count = tx->iov_count;
    tx->op.context = channel;
    tx->op.began_ns = channel->kind == WF_CHANNEL_BULK ? &tx->began_ns : NULL;
    tx->worker->engine->ops->post(tx->worker->engine, &tx->op);
}

void wf_channel_sent(struct wf_channel *channel)
{
    struct wf_tx *tx = &channel->tx;
    struct wf_session *session = channel->session;
    if (tx->op.result < 0 && tx->op.result != -ECANCELED) {
        wf_session_lock(session);
        WF_REACHED("channel UP: error");
        wf_session_lost(session, channel, (int)tx->op.result, "sending");
        wf_session_unlock(session);
    }
    wf_worker_kick(&session->kicks.each[tx->worker->index], tx->worker);
}
