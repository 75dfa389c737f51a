#include "core/session/leave.h"

#include "core/channel/batch.h"
#include "core/channel/channel.h"
#include "core/channel/half_state.h"
#include "core/channel/ops.h"
#include "core/channel/payload.h"
#include "core/channel/state.h"
#include "core/ground/holders.h"
#include "core/ground/reached.h"
#include "core/session/loss.h"
#include "core/session/session.h"

/* True if no operation of the half is under way; else cancels it. */
static bool quiet(struct wf_worker *worker, struct wf_op *op)
{
    if (op->posted)
        worker->engine->ops->cancel(worker->engine, op);
    return !op->posted;
}

/* Does one of these halves drive the payload stream? */
static bool drives_payload(const struct wf_channel *channel, bool tx, bool rx)
{
    return channel->payload && (channel->payload->incoming ? rx : tx);
}

/* The halves of `worker` are quiet: detaches the descriptor from the engine; closes it if both halves are detached. */
static void detach(struct wf_channel *channel, struct wf_worker *worker, bool tx, bool rx)
{
    struct wf_session *session = wf_session_of(channel);
    const struct wf_engine_ops *ops = worker->engine->ops;
    void *host = session->guard.world->engine_host;
    if ((tx && channel->tx.started) || (rx && channel->rx.started))
        ops->detach(worker->engine, channel->fd);
    if (drives_payload(channel, tx, rx) && channel->payload->started)
        ops->detach(worker->engine, channel->payload->fd);
    wf_session_lock(session);
    if (tx)
        wf_channel_release_batch(channel);
    if (rx)
        channel->ops->drop_claim(channel);
    if (rx && channel->kill)
        wf_channel_tell_down(channel);
    wf_channel_sink(channel); /* after an orderly end; a lost channel is not up any more */
    wf_spread_note(channel);
    bool last = wf_channel_detach(channel, tx, rx), killed = channel->kill;
    wf_session_unlock(session);
    if (last) {
        WF_REACHED_IF(killed, "channel DYING: both halves let go, no reference to user memory left");
        WF_REACHED("channel GONE: entry");
        wf_channel_note_retransmits(channel);
        if (killed) /* bytes in the kernel must not reach the peer any more */
            ops->kill(host, channel->fd);
        ops->close_fd(host, channel->fd);
        if (killed && channel->payload)
            ops->kill(host, channel->payload->fd);
    }
    wf_session_lock(session);
    if (last && channel->payload) {
        wf_payload_release(channel->payload);
        wf_channel_set_payload(channel, NULL);
    }
    if (last)
        wf_channel_gone(channel);
    for (int i = 0; i < tx + rx; i++)
        wf_guard_let_go(&session->guard);
    if (last)
        wf_guard_visit(&session->guard, 0);
    wf_session_unlock(session);
}

void wf_channel_let_go(struct wf_channel *channel, struct wf_worker *worker)
{
    const struct wf_world *world = channel->lines->guard->world;
    bool tx = channel->tx.worker == worker && !channel->tx.detached;
    bool rx = channel->rx.worker == worker && !channel->rx.detached;
    if (!tx && !rx)
        return;
    struct wf_payload *payload = drives_payload(channel, tx, false) ? channel->payload : NULL;
    bool tx_quiet = !tx || quiet(worker, &channel->tx.op), rx_quiet = !rx || quiet(worker, &channel->rx.op);
    bool payload_quiet = !payload || quiet(worker, &payload->op);
    if (!tx_quiet && channel->kill && world->tuning.zero_copy)
        worker->engine->ops->kill(world->engine_host, channel->fd); /* else it holds memory until the peer reads */
    if (!payload_quiet && channel->kill)
        worker->engine->ops->kill(world->engine_host, payload->fd);
    tx_quiet &= payload_quiet;
    if (!tx_quiet || !rx_quiet)
        return; /* the cancelled operations come back through poll, then this is called again */
    if (rx)
        wf_link_remove(&channel->rx.untold_link);
    detach(channel, worker, tx, rx);
}
