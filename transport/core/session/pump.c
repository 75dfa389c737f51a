/* The work that a worker does for a session after each notice. Only here do channels start, send and let go. */
#include "core/channel/batch.h"
#include "core/channel/carry.h"
#include "core/channel/half_state.h"
#include "core/channel/payload.h"
#include "core/channel/state.h"
#include "core/channel/work.h"
#include "core/message/connection.h"
#include "core/message/match.h"
#include "core/message/outbound.h"
#include "core/message/ready.h"
#include "core/message/stage.h"
#include "core/session/fill.h"
#include "core/session/leave.h"
#include "core/session/loss.h"
#include "core/session/resend.h"
#include "core/session/session.h"
#include "core/session/spread_plan.h"

#define BRIEF_BEHIND (128u * 1024)   /* a brief message goes behind so many unacknowledged bytes at most */
#define BRIEF_NS (50 * WF_NS_PER_US) /* what it saves: two threads that are not woken */

/* The pairs of rails that have work of this group and an idle half to offer it to. While all are busy nobody asks for
 * work. */
static uint64_t offered_pairs(const struct wf_session *session, int group)
{
    uint64_t offers = session->lines.offers[group];
    return offers != 0 ? offers & wf_session_pairs(session, group) : 0;
}

void wf_session_kick(struct wf_session *session, struct wf_worker *self)
{
    struct wf_lines *lines = &session->lines;
    wf_lines_tell(lines, self);
    WF_CLASSES_EACH (traffic, lines->classes) {
        int express = wf_group(traffic, WF_CHANNEL_EXPRESS), bulk = wf_group(traffic, WF_CHANNEL_BULK);
        wf_lines_offer(lines, express, offered_pairs(session, express), self);
        wf_lines_offer(lines, bulk, offered_pairs(session, bulk), self);
    }
    if (session->life.closing || session->guard.peer_closing) /* the next step of the close needs no idle half */
        wf_kicks_one(&session->kicks, 0, self);
    wf_devices_kick(&session->shares, self);
}

bool wf_session_has_idle_express(const struct wf_session *session, unsigned traffic)
{
    return session->lines.offers[wf_lines_carrier(&session->lines, traffic, WF_CHANNEL_EXPRESS)] != 0;
}

/* An orderly end: both directions of the stream have ended. */
static bool finished(const struct wf_channel *channel)
{
    return channel->rx.ended && channel->tx.shut;
}

enum action { ACT_START = 1, ACT_SEND = 2, ACT_SHUT = 4, ACT_REDIRECT = 8, ACT_LEAVE = 16, ACT_RESUME = 32 };

/* One look of a worker at a session. What is decided under the lock is done without it, by the lists: only this worker
 * puts its halves on them. */
struct round {
    struct wf_session *session;
    struct wf_worker *worker;
    struct wf_roster *roster;
    struct wf_list senders[WF_KINDS]; /* by kind */
    struct wf_list receivers;
};

/* --- decisions, session lock held --- */

static unsigned decide_tx(struct wf_channel *channel)
{
    struct wf_tx *tx = &channel->tx;
    if (channel->kill || finished(channel))
        return ACT_LEAVE;
    unsigned actions = tx->started ? 0 : ACT_START;
    if (wf_tx_is_busy(tx) || tx->shut)
        return actions;
    if (wf_channel_wants(channel) ? wf_channel_fill(channel) : wf_channel_rest(channel))
        return actions | ACT_SEND;
    return tx->bye_sent ? actions | ACT_SHUT : actions;
}

static unsigned decide_rx(const struct wf_channel *channel)
{
    const struct wf_rx *rx = &channel->rx;
    if (channel->kill || finished(channel))
        return ACT_LEAVE;
    return (rx->started ? 0 : ACT_START) | (rx->redirect ? ACT_REDIRECT : 0) | (rx->held ? ACT_RESUME : 0);
}

/* Looks at a send half. Returns whether it has taken something. */
static bool look_at_sender(struct round *round, struct wf_channel *channel)
{
    struct wf_tx *tx = &channel->tx;
    unsigned actions = decide_tx(channel);
    wf_tx_decide(tx, actions);
    if (tx->actions && !wf_link_in_list(&tx->round_link))
        wf_list_push_back(&round->senders[channel->kind], &tx->round_link);
    struct wf_channel *better = channel->kind == WF_CHANNEL_BULK ? wf_spread_take_better(channel) : NULL;
    if (better) /* it got nothing because of another one, which must be asked */
        wf_channel_tx_due(better);
    return actions & ACT_SEND;
}

static void look_at_receiver(struct round *round, struct wf_channel *channel)
{
    struct wf_rx *rx = &channel->rx;
    wf_rx_decide(rx, decide_rx(channel));
    if (rx->actions && !wf_link_in_list(&rx->round_link))
        wf_list_push_back(&round->receivers, &rx->round_link);
}

static void look_at_due(struct round *round, enum wf_channel_kind kind)
{
    struct wf_link *link;
    while ((link = wf_list_pop_front(&round->roster->due[kind])))
        look_at_sender(round, WF_CONTAINER(link, struct wf_channel, tx.due_link));
}

/* Offers what any channel may send to idle send halves, until some have declined. */
static void offer(struct round *round, int group)
{
    struct wf_lines *lines = &round->session->lines;
    uint64_t asked = 0; /* pairs of rails of which every idle half was asked */
    uint64_t own = round->roster->pairs[wf_group_kind(group)];
    int declined = 0;
    wf_lines_begin_round(lines);
    while (declined < WF_OFFERS_AT_ONCE && (lines->offers[group] & own)) {
        uint64_t pairs = offered_pairs(round->session, group) & own & ~asked;
        struct wf_channel *channel = wf_lines_next_offer(lines, group, pairs);
        if (!channel)
            break;
        if (!wf_channel_ask_once(channel)) {
            asked |= UINT64_C(1) << channel->rail;
            continue;
        }
        declined += !look_at_sender(round, channel);
        look_at_due(round, channel->kind);
    }
}

static void look_at_receivers(struct round *round)
{
    struct wf_link *first;
    while ((first = wf_list_pop_front(&round->roster->receivers)))
        look_at_receiver(round, WF_CONTAINER(first, struct wf_channel, rx.due_link));
    WF_LIST_EACH (link, following, &round->roster->held) {
        look_at_receiver(round, WF_CONTAINER(link, struct wf_channel, rx.held_link));
    }
}

/* --- actions, no lock held --- */

static int attach_payload(struct wf_channel *channel, struct wf_worker *worker)
{
    int result = worker->engine->ops->attach(worker->engine, channel->payload->fd);
    if (result < 0)
        worker->engine->ops->detach(worker->engine, channel->fd);
    else
        wf_payload_started(channel->payload);
    return result;
}

/* Makes the descriptor known to the worker's engine, and posts the first receive, for the halves of this worker that
 * have not started. */
static int start(struct wf_channel *channel, struct wf_worker *worker)
{
    bool tx = channel->tx.worker == worker && !channel->tx.started;
    bool rx = channel->rx.worker == worker && !channel->rx.started;
    if (!tx && !rx) /* the other half's turn was first */
        return 0;
    int result = worker->engine->ops->attach(worker->engine, channel->fd);
    if (result == 0 && channel->payload && (channel->payload->incoming ? rx : tx))
        result = attach_payload(channel, worker);
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

static void act_as_sender(struct wf_channel *channel, struct wf_worker *worker)
{
    unsigned actions = wf_tx_take_actions(&channel->tx);
    if ((actions & ACT_START) && start(channel, worker) < 0)
        return; /* the channel is lost; its batch is released when it lets go */
    if (actions & ACT_SEND)
        wf_channel_post_send(channel);
    if (actions & ACT_SHUT) {
        worker->engine->ops->shutdown(channel->lines->guard->world->engine_host, channel->fd);
        wf_session_lock(wf_session_of(channel));
        wf_channel_shut(channel);
        wf_kicks_all(&wf_session_of(channel)->kicks, worker);
        wf_session_unlock(wf_session_of(channel));
    }
    if (actions & ACT_LEAVE)
        wf_channel_let_go(channel, worker);
}

static void act_as_receiver(struct wf_channel *channel, struct wf_worker *worker)
{
    unsigned actions = wf_rx_take_actions(&channel->rx);
    if ((actions & ACT_START) && start(channel, worker) < 0)
        return;
    if (actions & ACT_REDIRECT)
        wf_channel_redirect(channel);
    if (actions & ACT_RESUME)
        wf_channel_resume(channel);
    if (actions & ACT_LEAVE)
        wf_channel_let_go(channel, worker);
}

static void act(struct round *round, enum wf_channel_kind kind)
{
    struct wf_link *link;
    while ((link = wf_list_pop_front(&round->senders[kind])))
        act_as_sender(WF_CONTAINER(link, struct wf_channel, tx.round_link), round->worker);
}

/* --- the round --- */

/* Releases the batches of finished send operations before any decision: a message that ends by that may let another
 * message go, on a channel of any worker. Session lock held. */
static void release(struct round *round)
{
    struct wf_session *session = round->session;
    struct wf_link *link;
    while ((link = wf_list_pop_front(&round->roster->ended))) {
        struct wf_channel *channel = WF_CONTAINER(link, struct wf_channel, tx.ended_link);
        wf_channel_release_batch(channel);
        wf_channel_tx_due(channel);
    }
    wf_match_notes(&session->desk);
    if (wf_guard_take_stir(&session->guard))
        wf_session_kick(session, round->worker);
}

/* Bulk channels choose first, so that an express channel knows what they cannot take. Session lock held. */
static void choose(struct round *round)
{
    unsigned classes = round->session->lines.classes;
    look_at_due(round, WF_CHANNEL_DEVICE);
    look_at_due(round, WF_CHANNEL_BULK);
    WF_CLASSES_EACH (traffic, classes) {
        offer(round, wf_group(traffic, WF_CHANNEL_BULK));
    }
    look_at_due(round, WF_CHANNEL_EXPRESS);
    WF_CLASSES_EACH (traffic, classes) {
        offer(round, wf_group(traffic, WF_CHANNEL_EXPRESS));
    }
    look_at_receivers(round);
}

/* Called with the session's lock held; releases it. */
static void pump(struct wf_session *session, struct wf_worker *worker)
{
    struct round round = {.session = session, .worker = worker, .roster = wf_lines_roster(&session->lines, worker)};
    for (int kind = 0; kind < WF_KINDS; kind++)
        wf_list_init(&round.senders[kind]);
    wf_list_init(&round.receivers);
    release(&round);
    wf_resend_stage(session);
    wf_stage_out_retry(&session->desk);
    wf_session_check_close(session);
    wf_spread_begin(session);
    choose(&round);
    wf_roster_seen(round.roster);
    wf_lines_tell(&session->lines, worker);
    wf_devices_kick(&session->shares, worker);
    wf_session_unlock(session);
    act(&round, WF_CHANNEL_EXPRESS); /* these send first */
    act(&round, WF_CHANNEL_BULK);
    act(&round, WF_CHANNEL_DEVICE);
    struct wf_link *link;
    while ((link = wf_list_pop_front(&round.receivers)))
        act_as_receiver(WF_CONTAINER(link, struct wf_channel, rx.round_link), worker);
}

void wf_session_pump(struct wf_session *session, struct wf_worker *worker)
{
    wf_session_lock(session);
    pump(session, worker);
}

/* Kicks the workers that may send what was posted, after the unlock: once woken, they would wait for the lock. `self`:
 * the worker whose token the caller holds, or NULL. */
static void unlock_and_kick(struct wf_session *session, struct wf_worker *self)
{
    struct wf_lines *lines = &session->lines;
    int workers[WF_GROUPS * WF_OFFERS_AT_ONCE], count = 0;
    WF_CLASSES_EACH (traffic, lines->classes) {
        int express = wf_group(traffic, WF_CHANNEL_EXPRESS), bulk = wf_group(traffic, WF_CHANNEL_BULK);
        count += wf_lines_choose(lines, express, offered_pairs(session, express), workers + count);
        count += wf_lines_choose(lines, bulk, offered_pairs(session, bulk), workers + count);
    }
    wf_lines_tell(lines, self);
    wf_devices_kick(&session->shares, self);
    wf_session_unlock(session);
    for (int i = 0; i < count; i++)
        wf_kicks_one(&session->kicks, workers[i], self);
    if (self)
        wf_worker_ring_bells(self);
}

/* May the express channel take the whole brief message? Small messages must not wait long behind it, and what a pair of
 * rails alone would take long for is spread over all of them. */
static bool suits_brief(const struct wf_channel *channel, const struct wf_outbound *brief)
{
    const struct wf_tx *tx = &channel->tx;
    return tx->window.spent_bytes - tx->acknowledged_bytes <= BRIEF_BEHIND &&
           !wf_spread_is_slow(wf_session_of(channel), channel->traffic, channel->rail, brief->total, BRIEF_NS);
}

static struct wf_channel *taker_of_brief(struct wf_session *session, const struct wf_outbound *brief, int group)
{
    const struct weft_connection *connection = brief->connection;
    uint64_t pairs = wf_spread_pairs(session, connection->traffic, connection->ring);
    struct wf_channel *channel;
    if (session->lines.rate[wf_group_class(group)] != 0) /* express channels have a small part of it */
        return NULL;
    while ((channel = wf_lines_first_idle(&session->lines, group, pairs)) && !suits_brief(channel, brief))
        pairs &= ~(UINT64_C(1) << channel->rail);
    return channel;
}

/* An idle express channel for what was posted, if the pump has nothing else to do. NULL: it has, or none is idle. What
 * other classes have to send was told to their channels when it was posted. */
static struct wf_channel *taker(struct wf_session *session, const struct wf_outbound *fresh)
{
    struct wf_lines *lines = &session->lines;
    unsigned traffic = fresh ? fresh->connection->traffic : 0;
    if (!fresh && lines->classes != 1)
        return NULL;
    if (wf_session_wants(session, wf_lines_carrier(lines, traffic, WF_CHANNEL_BULK)) || session->guard.work_came ||
        wf_bells_any(&session->shares.bells))
        return NULL;
    int group = wf_lines_carrier(lines, traffic, WF_CHANNEL_EXPRESS);
    struct wf_channel *channel = fresh && wf_ready_is_brief(fresh) ? taker_of_brief(session, fresh, group)
                                                                   : wf_lines_first_idle(lines, group, UINT64_MAX);
    return channel && channel->tx.started && channel->rx.started ? channel : NULL;
}

/* As pump(), for one channel. `fresh`: the message just posted, if it is small or brief and in no queue; or NULL. True:
 * not all of a brief message is with the kernel, so somebody must poll. */
static bool pump_one(struct wf_channel *channel, struct wf_outbound *fresh, struct wf_worker *worker)
{
    struct wf_session *session = wf_session_of(channel);
    bool brief = fresh && wf_ready_is_brief(fresh), filled = fresh && wf_channel_take_fresh(channel, fresh);
    if (fresh && !filled)
        wf_outbound_queue(fresh);
    if (brief && !filled) { /* bulk channels may take it */
        unlock_and_kick(session, worker);
        return false;
    }
    filled = filled || wf_channel_fill(channel);
    if (!filled && wf_session_wants(session, channel->group)) { /* its window is too small: another one's may do */
        pump(session, worker);
        return false;
    }
    wf_lines_tell(&session->lines, worker); /* of what the channel has left to others */
    wf_session_unlock(session);
    if (filled)
        wf_channel_post_send(channel);
    return brief && !channel->tx.op.finished;
}

void wf_session_unlock_and_push(struct wf_session *session, struct wf_outbound *fresh)
{
    const struct wf_sessions *sessions = session->sessions;
    const struct wf_world *world = sessions->world;
    struct wf_worker *worker = wf_crew_callers_own(sessions->crew);
    /* Only tries for the token: the thread that has it may be waiting for the session's lock. */
    bool token = worker && !world->manual && wf_worker_try(worker), unfinished = false;
    struct wf_channel *channel = token ? taker(session, fresh) : NULL;
    if (fresh && !channel)
        wf_outbound_queue(fresh);
    if (channel)
        unfinished = pump_one(channel, fresh, worker);
    else if (token && world->shared)
        pump(session, worker);
    else /* of the workers of rails it holds no token; its own serves its kick as the caller leaves */
        unlock_and_kick(session, token ? worker : NULL);
    if (token) {
        wf_devices_drive(sessions->devices, worker);
        wf_worker_ring_bells(worker);
        wf_worker_leave(worker);
    }
    if (unfinished)
        wf_worker_recall(worker);
}

void wf_session_push(struct wf_session *session)
{
    wf_session_lock(session);
    wf_session_unlock_and_push(session, NULL);
}
