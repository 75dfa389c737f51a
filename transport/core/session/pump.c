/* The work that a worker does for a session after each notice. Only here do channels start, send and let go. */
#include <errno.h>

#include "core/channel/batch.h"
#include "core/channel/half_state.h"
#include "core/channel/state.h"
#include "core/ground/reached.h"
#include "core/message/connection.h"
#include "core/message/match.h"
#include "core/message/outbound.h"
#include "core/message/stage.h"
#include "core/request/request.h"
#include "core/session/fill.h"
#include "core/session/leave.h"
#include "core/session/loss.h"
#include "core/session/resend.h"
#include "core/session/session.h"
#include "core/session/silence.h"

void wf_session_kick(struct wf_session *session, struct wf_worker *self)
{
    WF_LINES_EACH (channel, &session->lines) {
        if (channel->up && channel->tx.idle && wf_channel_wants(channel))
            wf_kicks_one(&session->kicks, channel->tx.worker->index, self);
    }
    wf_devices_kick(&session->shares, self);
}

bool wf_session_has_work(const struct wf_session *session)
{
    bool bulk = wf_session_wants(session, WF_CHANNEL_BULK), express = wf_session_wants(session, WF_CHANNEL_EXPRESS);
    if (session->shares.bells != 0)
        return true;
    if (!bulk && !express)
        return false;
    WF_LINES_EACH (channel, &session->lines) {
        if (channel->up && channel->tx.idle && (channel->kind == WF_CHANNEL_BULK ? bulk : express))
            return true;
    }
    return false;
}

static bool is_idle_express(const struct wf_channel *channel)
{
    return channel->kind == WF_CHANNEL_EXPRESS && channel->up && channel->tx.idle;
}

bool wf_session_has_idle_express(const struct wf_session *session)
{
    WF_LINES_EACH (channel, &session->lines) {
        if (is_idle_express(channel))
            return true;
    }
    return false;
}

/* An orderly end: both directions of the stream have ended. */
static bool finished(const struct wf_channel *channel)
{
    return channel->rx.ended && channel->tx.shut;
}

enum action { ACT_START = 1, ACT_SEND = 2, ACT_SHUT = 4, ACT_REDIRECT = 8, ACT_LEAVE = 16, ACT_RESUME = 32 };

static unsigned decide_tx(struct wf_channel *channel)
{
    struct wf_tx *tx = &channel->tx;
    unsigned actions = tx->started ? 0 : ACT_START;
    if (tx->op.posted || tx->shut)
        return actions;
    if (wf_channel_wants(channel) ? wf_channel_fill(channel) : wf_channel_rest(channel))
        return actions | ACT_SEND;
    return tx->bye_sent ? actions | ACT_SHUT : actions;
}

/* The actions for the halves of a channel that this worker drives. Session lock held. */
static unsigned decide(struct wf_channel *channel, struct wf_worker *worker)
{
    bool tx = channel->tx.worker == worker && !channel->tx.detached;
    bool rx = channel->rx.worker == worker && !channel->rx.detached;
    if (!tx && !rx)
        return 0;
    if (channel->kill || finished(channel))
        return ACT_LEAVE;
    unsigned actions = 0;
    if (rx && !channel->rx.started)
        actions |= ACT_START;
    if (rx && channel->rx.redirect)
        actions |= ACT_REDIRECT;
    if (rx && channel->rx.held)
        actions |= ACT_RESUME;
    return tx ? actions | decide_tx(channel) : actions;
}

/* Makes the descriptor known to the worker's engine and posts the first receive. */
static int start(struct wf_channel *channel, struct wf_worker *worker)
{
    bool tx = channel->tx.worker == worker, rx = channel->rx.worker == worker;
    int result = worker->engine->ops->attach(worker->engine, channel->fd);
    if (tx)
        wf_tx_started(&channel->tx, result == 0);
    if (result < 0) {
        wf_session_lock(wf_session_of(channel));
        wf_channel_lost(channel, result, "attaching the channel");
        wf_session_unlock(wf_session_of(channel));
    } else if (rx) {
        wf_channel_start_rx(channel);
    }
    return result;
}

static void act(struct wf_channel *channel, struct wf_worker *worker, unsigned actions)
{
    if ((actions & ACT_START) && start(channel, worker) < 0)
        return; /* the channel is lost; its batch is released when it lets go */
    if (actions & ACT_REDIRECT)
        wf_channel_redirect(channel);
    if (actions & ACT_RESUME)
        wf_channel_resume(channel);
    if (actions & ACT_SEND)
        wf_channel_post_send(channel);
    if (actions & ACT_SHUT) {
        worker->engine->ops->shutdown(channel->lines->guard->world->engine_host, channel->fd);
        wf_session_lock(wf_session_of(channel));
        wf_tx_shut(&channel->tx);
        wf_kicks_all(&wf_session_of(channel)->kicks, worker);
        wf_session_unlock(wf_session_of(channel));
    }
    if (actions & ACT_LEAVE)
        wf_channel_let_go(channel, worker);
}

/* Bulk channels choose first, so that an express channel knows what they cannot take. Express channels send first. */
static const enum wf_channel_kind choosing[] = {WF_CHANNEL_BULK, WF_CHANNEL_EXPRESS};
static const enum wf_channel_kind acting[] = {WF_CHANNEL_EXPRESS, WF_CHANNEL_BULK};

/* Releases the batches of finished send operations before any decision: a message that ends by that may let another
 * message go, on a channel of any worker. Session lock held. */
static void release(struct wf_session *session, struct wf_worker *worker)
{
    WF_LINES_EACH (channel, &session->lines) {
        if (channel->tx.worker == worker && channel->tx.batch_count > 0 && !channel->tx.op.posted)
            wf_channel_release_batch(channel);
    }
    wf_match_notes(&session->desk);
    if (wf_guard_take_stir(&session->guard))
        wf_session_kick(session, worker);
}

/* Called with the session's lock held; releases it. */
static void pump(struct wf_session *session, struct wf_worker *worker)
{
    unsigned char actions[WF_CHANNELS_MAX];
    release(session, worker);
    wf_stage_out_retry(&session->desk);
    wf_session_check_close(session);
    wf_spread_begin(session);
    int count = session->lines.channel_count;
    for (int kind = 0; kind < 2; kind++)
        for (int i = 0; i < count; i++)
            if (session->lines.channels[i] && session->lines.channels[i]->kind == choosing[kind])
                actions[i] = (unsigned char)decide(session->lines.channels[i], worker);
            else if (!session->lines.channels[i])
                actions[i] = 0;
    wf_devices_kick(&session->shares, worker);
    wf_session_unlock(session);
    for (int kind = 0; kind < 2; kind++)
        for (int i = 0; i < count; i++)
            if (actions[i] && session->lines.channels[i]->kind == acting[kind])
                act(session->lines.channels[i], worker, actions[i]);
}

void wf_session_pump(struct wf_session *session, struct wf_worker *worker)
{
    wf_session_lock(session);
    pump(session, worker);
}

/* An idle express channel for the posted message, if the pump has nothing else to do. NULL: it has, or none is idle. */
static struct wf_channel *taker(const struct wf_session *session)
{
    if (wf_session_wants(session, WF_CHANNEL_BULK) || session->guard.work_came || session->shares.bells != 0)
        return NULL;
    WF_LINES_EACH (channel, &session->lines) {
        if (is_idle_express(channel) && channel->tx.started && !channel->tx.op.posted && channel->rx.started)
            return channel;
    }
    return NULL;
}

/* As pump(), for one channel. `copied`: the message just posted, if it is small and in no queue; or NULL. */
static void pump_one(struct wf_channel *channel, struct wf_outbound *copied)
{
    bool filled = copied && wf_channel_take_copied(channel, copied);
    if (copied && !filled)
        wf_outbound_queue(copied);
    filled = filled || wf_channel_fill(channel);
    wf_session_unlock(wf_session_of(channel));
    if (filled)
        wf_channel_post_send(channel);
}

void wf_session_unlock_and_push(struct wf_session *session, struct wf_outbound *copied)
{
    const struct wf_sessions *sessions = session->sessions;
    const struct wf_world *world = sessions->world;
    struct wf_worker *worker = sessions->crew->workers[0];
    /* Only tries for the token: the thread that has it may be waiting for the session's lock. */
    bool token = world->shared && !world->manual && wf_worker_try(worker);
    struct wf_channel *channel = token ? taker(session) : NULL;
    if (copied && !channel)
        wf_outbound_queue(copied);
    if (channel)
        pump_one(channel, copied);
    else if (token)
        pump(session, worker);
    else
        wf_session_unlock(session);
    if (token) {
        wf_devices_drive(sessions->devices, worker);
        wf_worker_leave(worker);
    } else {
        wf_kicks_all(&session->kicks, NULL); /* without the lock: the woken workers would have to wait for it */
    }
}

void wf_session_push(struct wf_session *session)
{
    wf_session_lock(session);
    wf_session_unlock_and_push(session, NULL);
}

/* --- time --- */

/* CLOSING: fails the session if the close takes longer than the setting timeout. Session lock held. */
static int64_t check_goodbye(struct wf_session *session, int64_t now_ns, int64_t heard)
{
    int64_t stragglers = wf_session_check_stragglers(session, now_ns);
    if (session->guard.state != WF_SESSION_CLOSING)
        return WF_NEVER;
    int64_t since = heard > session->life.closing_ns ? heard : session->life.closing_ns;
    int64_t due = since + session->guard.world->tuning.timeout_ns;
    if (now_ns < due)
        return stragglers < due ? stragglers : due;
    WF_REACHED("session CLOSING: deadline");
    wf_guard_fail(&session->guard, -ETIMEDOUT, "%s did not finish closing its session (setting timeout)",
                  session->peer.name);
    return WF_NEVER;
}

/* Does this channel wait for an acknowledgement? Sets route->progress_ns to the start of the wait: now, if it did not
 * wait at the last look or an acknowledgement came since. Session lock held. */
static bool waits_since(struct wf_route *route, int64_t now_ns, bool paused)
{
    const struct wf_tx *tx = &route->channel.tx;
    bool waits = tx->acknowledged != tx->window.spent_frames;
    if (!waits || !route->waited || paused || tx->acknowledged != route->progress) {
        route->progress = tx->acknowledged;
        route->progress_ns = now_ns;
    }
    route->waited = waits;
    return waits;
}

/*
 * A peer that lives acknowledges every frame soon. So a channel on which frames wait but none is acknowledged is lost,
 * even if other channels answer. If none is acknowledged in the whole session, the peer is given up. Session lock held.
 */
static int64_t check_progress(struct wf_session *session, int64_t now_ns, bool paused)
{
    int64_t timeout = session->guard.world->tuning.timeout_ns, next = WF_NEVER;
    bool waits = !wf_resend_idle(session, WF_CHANNEL_EXPRESS) || !wf_resend_idle(session, WF_CHANNEL_BULK);
    WF_LINES_EACH (channel, &session->lines) {
        if (!channel->up || !waits_since(wf_route_of(channel), now_ns, paused))
            continue;
        waits = true;
        int64_t due = wf_route_of(channel)->progress_ns +
                      timeout * 2 / 3; /* sooner than the session: its frames may get through on another channel */
        WF_REACHED_IF(now_ns >= due, "channel UP: nothing acknowledged for two thirds of timeout");
        if (now_ns >= due)
            wf_channel_lost(channel, -ETIMEDOUT, "nothing is acknowledged on it (setting timeout)");
        else if (due < next)
            next = due;
    }
    if (!waits || !session->life.waited || paused || session->life.retired != session->life.retired_before) {
        session->life.retired_before = session->life.retired;
        session->life.progress_ns = now_ns;
    }
    session->life.waited = waits;
    WF_REACHED_IF(now_ns - session->life.progress_ns >= timeout, "session UP: nothing acknowledged for timeout");
    if (now_ns - session->life.progress_ns >= timeout)
        wf_session_give_up(session, now_ns, -ETIMEDOUT, "acknowledges nothing any more (setting timeout)");
    return waits && session->life.progress_ns + timeout < next ? session->life.progress_ns + timeout : next;
}

/* Is this look very late? Then this process was stopped, and bytes that came meanwhile are not read yet. */
static bool stood_still(const struct wf_session *session, int64_t now_ns)
{
    return session->life.due_ns != 0 && now_ns - session->life.due_ns > session->guard.world->tuning.timeout_ns / 2;
}

/* Fails the session if the peer has not answered for the setting timeout: its process is stopped or gone. Returns when
 * to look again. Session lock held. */
static int64_t check_life(struct wf_session *session, int64_t now_ns)
{
    int64_t timeout = session->guard.world->tuning.timeout_ns;
    int64_t heard = atomic_load_explicit(&session->lines.heard_ns, memory_order_relaxed);
    if (session->guard.state == WF_SESSION_JOINING && !session->terms.dialer) {
        if (now_ns < session->life.join_by_ns)
            return session->life.join_by_ns;
        WF_REACHED("session JOINING: deadline");
        wf_guard_fail(&session->guard, -ETIMEDOUT, "%s joined %d of %d channels before the deadline",
                      session->peer.name, session->lines.joined, session->lines.channel_count);
    }
    if (session->guard.state == WF_SESSION_CLOSING)
        return check_goodbye(session, now_ns, heard);
    if (session->guard.state != WF_SESSION_UP)
        return WF_NEVER;
    bool paused = stood_still(session, now_ns);
    if (session->life.ping_ns != 0 && (heard >= session->life.ping_ns || paused))
        session->life.ping_ns = 0;
    if (paused)
        session->life.alone_ns = now_ns;
    if (session->life.ping_ns == 0 && now_ns - heard >= timeout / 3) {
        session->life.ping_ns = now_ns;
        wf_session_ask_all(session);
    }
    if (session->life.ping_ns != 0 && now_ns - session->life.ping_ns >= timeout * 2 / 3) {
        WF_REACHED("session UP: nothing heard for timeout");
        wf_session_give_up(session, now_ns, -ETIMEDOUT, "does not answer (setting timeout)");
        return WF_NEVER;
    }
    int64_t due = session->life.ping_ns != 0 ? session->life.ping_ns + timeout * 2 / 3 : heard + timeout / 3;
    int64_t others[] = {check_progress(session, now_ns, paused), wf_session_survey(session, now_ns),
                        wf_session_check_alone(session, now_ns), wf_session_check_stragglers(session, now_ns)};
    for (int i = 0; i < 4; i++)
        due = others[i] < due ? others[i] : due;
    return due;
}

int64_t wf_session_tick(struct wf_session *session, int64_t now_ns)
{
    wf_session_lock(session);
    int64_t life = session->life.due_ns = check_life(session, now_ns);
    bool expired;
    int64_t requests = wf_requests_expire(&session->book, now_ns, &expired);
    if (expired) /* also wakes a thread of the user that sleeps in the engine */
        wf_kicks_all(&session->kicks, NULL);
    wf_session_unlock(session);
    return life < requests ? life : requests;
}
