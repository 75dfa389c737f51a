#include "core/channel/channel.h"

#include <errno.h>
#include <stdlib.h>

#include "core/ground/reached.h"
#include "core/join/door.h"
#include "core/message/connection.h"
#include "core/message/outbound.h"
#include "core/session/resend.h"
#include "core/session/session.h"
#include "core/calls/context.h"

static uint32_t window_frames(const struct wf_channel *channel)
{
    return channel->kind == WF_CHANNEL_EXPRESS ? WF_EXPRESS_WINDOW : channel->session->context->world.tuning.window;
}

static void init_links(struct wf_channel *channel)
{
    wf_link_init(&channel->rx.unacknowledged_link);
    wf_link_init(&channel->tx.op.link);
    wf_link_init(&channel->rx.op.link);
}

int wf_channel_init(struct wf_channel *channel, struct wf_session *session, const struct wf_join *join)
{
    const struct wf_tuning *tuning = &session->context->world.tuning;
    channel->session = session;
    channel->id = join->channel;
    channel->incarnation = join->incarnation;
    channel->kind = (enum wf_channel_kind)join->kind;
    channel->rail = join->rail;
    channel->fd = -1;
    channel->tx.detached = channel->rx.detached = true;
    init_links(channel);

    bool bulk = channel->kind == WF_CHANNEL_BULK;
    channel->tx.pad = bulk ? tuning->header_pad : WF_FRAME_BYTES;
    channel->tx.headers = calloc(WF_BATCH_FRAMES, channel->tx.pad + WF_PACKED_BYTES);
    channel->tx.ring = window_frames(channel);
    channel->tx.retained = calloc(channel->tx.ring, sizeof *channel->tx.retained);
    /* A bulk channel reads ahead exactly the next header: payload must go straight to its place. */
    channel->rx.room = bulk ? session->terms.limits.header_pad : WF_EXPRESS_READ;
    channel->rx.buffer = malloc(channel->rx.room);
    channel->rx.bounce = malloc(WF_BOUNCE_BYTES); /* pages that no list ever needs cost nothing */
    if (!channel->tx.headers || !channel->tx.retained || !channel->rx.buffer || !channel->rx.bounce)
        return -ENOMEM;
    uint64_t bytes;
    wf_channel_credit(channel, &channel->rx.granted_frames, &bytes);
    return 0;
}

void wf_channel_restart(struct wf_channel *channel, uint32_t incarnation)
{
    struct wf_tx *tx = &channel->tx;
    struct wf_rx *rx = &channel->rx;
    struct wf_rate rate = {.bytes_per_ns = tx->rate.bytes_per_ns,
                           .heard_ns = tx->rate.heard_ns,
                           .lag_ns = tx->rate.lag_ns,
                           .samples = tx->rate.samples};
    channel->incarnation = incarnation;
    channel->bye_seen = channel->kill = channel->gone = false;
    channel->retransmits = 0;
    atomic_store_explicit(&channel->heard, 0, memory_order_relaxed);
    atomic_store_explicit(&channel->kept, 0, memory_order_relaxed);
    channel->pulse = (struct wf_pulse){0};
    *tx = (struct wf_tx){.worker = tx->worker,
                         .headers = tx->headers,
                         .pad = tx->pad,
                         .retained = tx->retained,
                         .ring = tx->ring,
                         .rate = rate,
                         .detached = true};
    *rx = (struct wf_rx){
        .worker = rx->worker, .buffer = rx->buffer, .room = rx->room, .bounce = rx->bounce, .detached = true};
    init_links(channel);
    uint64_t bytes;
    wf_channel_credit(channel, &rx->granted_frames, &bytes);
}

void wf_channel_fini(struct wf_channel *channel)
{
    free(channel->tx.headers);
    free(channel->tx.retained);
    free(channel->rx.buffer);
    free(channel->rx.bounce);
}

void wf_channel_credit(const struct wf_channel *channel, uint64_t *frames, uint64_t *bytes)
{
    uint32_t window = window_frames(channel);
    *frames = channel->rx.disposed + window;
    *bytes = channel->rx.disposed_bytes + (uint64_t)window * channel->session->context->world.tuning.chunk;
}

bool wf_channel_open(const struct wf_channel *channel, uint64_t bytes)
{
    const struct wf_tx *tx = &channel->tx;
    return tx->window.spent_frames - tx->acknowledged < tx->ring && wf_window_open(&tx->window, bytes);
}

void wf_channel_retain(struct wf_channel *channel, const struct wf_frame *frame, struct wf_outbound *outbound)
{
    struct wf_tx *tx = &channel->tx;
    struct wf_retained *place = &tx->retained[tx->window.spent_frames % tx->ring];
    place->frame = *frame;
    place->outbound = outbound;
    wf_window_spend(&tx->window, frame->length);
    if (frame->length == 0 || channel->kind != WF_CHANNEL_BULK)
        return;
    if (wf_rate_busy(&tx->rate, wf_world_now(&channel->session->context->world)))
        atomic_store_explicit(&tx->began_ns, 0, memory_order_relaxed);
}

void wf_channel_retire(struct wf_session *session, const struct wf_retained *retained)
{
    session->life.retired += 1;
    wf_counter_add(&session->lines.moved, retained->frame.length);
    if (retained->outbound) {
        wf_outbound_retire(retained->outbound, retained->frame.offset, retained->frame.length);
    } else if (retained->frame.type == WF_OPEN) {
        struct weft_connection *connection = wf_connection_find(session, retained->frame.conn);
        if (connection)
            wf_connection_acknowledged(connection);
    }
}

int wf_channel_acknowledge(struct wf_channel *channel, uint64_t disposed)
{
    struct wf_tx *tx = &channel->tx;
    if (disposed > tx->window.spent_frames)
        return -EPROTO;
    if (tx->moved) {
        wf_resend_acknowledge(channel->session, channel->id, channel->incarnation, disposed);
        return 0;
    }
    uint64_t before = tx->acknowledged_bytes;
    while (tx->acknowledged < disposed) {
        /* A copy: retiring may end the message and look at the ring again. */
        struct wf_retained retained = tx->retained[tx->acknowledged % tx->ring];
        tx->acknowledged += 1;
        tx->acknowledged_bytes += retained.frame.length;
        wf_channel_retire(channel->session, &retained);
    }
    if (tx->acknowledged_bytes == before || channel->kind != WF_CHANNEL_BULK)
        return 0;
    wf_rate_began(&tx->rate, atomic_load_explicit(&tx->began_ns, memory_order_relaxed));
    wf_rate_acknowledged(&tx->rate, wf_world_now(&channel->session->context->world), tx->acknowledged_bytes - before,
                         tx->acknowledged_bytes != tx->window.spent_bytes);
    return 0;
}

/* True once nothing of the half is under way. */
static bool quiet(struct wf_worker *worker, struct wf_op *op)
{
    if (op->posted)
        worker->engine->ops->cancel(worker->engine, op);
    return !op->posted;
}

/* After the halves of `worker` are quiet: forgets the descriptor, closes it with the last half. */
static void detach(struct wf_channel *channel, struct wf_worker *worker, bool tx, bool rx)
{
    struct wf_session *session = channel->session;
    const struct wf_engine_ops *ops = worker->engine->ops;
    void *host = session->context->world.engine_host;
    if ((tx && channel->tx.started) || (rx && channel->rx.started))
        ops->detach(worker->engine, channel->fd);
    wf_session_lock(session);
    if (tx)
        wf_channel_release_batch(channel);
    if (rx)
        wf_channel_drop_claim(channel);
    if (rx && channel->kill)
        wf_channel_tell_down(channel);
    if (tx)
        channel->tx.detached = true;
    if (rx)
        channel->rx.detached = true;
    session->lines.up_count -= channel->up; /* after an orderly end; lost ones are not up any more */
    channel->up = false;
    bool last = channel->tx.detached && channel->rx.detached, killed = channel->kill;
    wf_session_unlock(session);
    if (last) {
        WF_REACHED_IF(killed, "channel DYING: both halves let go, no reference to user memory left");
        WF_REACHED("channel GONE: entry");
        wf_channel_note_retransmits(channel);
        if (killed) /* nothing of it is to arrive any more */
            ops->kill(host, channel->fd);
        ops->close_fd(host, channel->fd);
    }
    wf_session_lock(session);
    channel->gone |= last; /* from here on the channel may be joined again */
    for (int i = 0; i < tx + rx; i++)
        wf_session_half_gone(session);
    wf_session_unlock(session);
    if (last)
        wf_alarm_by(&session->context->world.alarm, 0);
}

void wf_channel_let_go(struct wf_channel *channel, struct wf_worker *worker)
{
    const struct weft_context *context = channel->session->context;
    bool tx = channel->tx.worker == worker && !channel->tx.detached;
    bool rx = channel->rx.worker == worker && !channel->rx.detached;
    if (!tx && !rx)
        return;
    bool tx_quiet = !tx || quiet(worker, &channel->tx.op), rx_quiet = !rx || quiet(worker, &channel->rx.op);
    if (!tx_quiet && channel->kill && context->world.tuning.zero_copy)
        worker->engine->ops->kill(context->world.engine_host,
                                  channel->fd); /* or it holds memory until the peer reads */
    if (!tx_quiet || !rx_quiet)
        return; /* the cancelled operations come back through poll, then this is called again */
    if (rx)
        wf_link_remove(&channel->rx.unacknowledged_link);
    detach(channel, worker, tx, rx);
}

void wf_channel_note_retransmits(struct wf_channel *channel)
{
    struct wf_session *session = channel->session;
    const struct wf_engine_ops *ops = session->context->world.engine_ops;
    uint64_t now = ops->retransmits(session->context->world.engine_host, channel->fd);
    uint64_t before = channel->retransmits;
    channel->retransmits = now;
    /* Not a counter with one writer: the rail's other channels let go on other threads. */
    atomic_fetch_add_explicit(&session->lines.rails[channel->rail].retransmits, now - before, memory_order_relaxed);
}
