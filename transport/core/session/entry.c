#include "core/session/entry.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/cards/cards.h"
#include "core/channel/payload.h"
#include "core/channel/state.h"
#include "core/channel/work.h"
#include "core/ground/holders.h"
#include "core/ground/reached.h"
#include "core/session/arrive.h"
#include "core/session/loss.h"
#include "core/session/session.h"
#include "core/session/traffic.h"

/* Starts a new incarnation of the channel. Keeps `redial` and `down`, which is about the incarnation before. */
static void restart(struct wf_route *route, uint32_t incarnation)
{
    route->pulse = (struct wf_pulse){0};
    route->progress = 0;
    route->waited = false;
    wf_channel_restart(&route->channel, incarnation);
}

/* One worker for all halves; or one for those of express channels, and for others a pair for each rail: the worker with
 * the even index sends, the odd one receives. */
static void assign_workers(struct wf_session *session, struct wf_channel *channel)
{
    const struct wf_crew *crew = session->sessions->crew;
    struct wf_worker *own = wf_crew_callers_own(crew);
    if (own && (session->guard.world->shared || channel->kind == WF_CHANNEL_EXPRESS)) {
        wf_channel_assign(channel, own, own);
        return;
    }
    int pair = wf_lines_workers(&session->lines, channel->rail);
    wf_channel_assign(channel, crew->workers[2 * pair], crew->workers[2 * pair + 1]);
}

static void discard(struct wf_channel *channel)
{
    wf_channel_fini(channel);
    free(channel);
}

/* A new channel, in no list yet. NULL: no memory. */
static struct wf_channel *first_incarnation(struct wf_session *session, const struct wf_join *join)
{
    struct wf_route *route = calloc(1, sizeof *route);
    struct wf_channel *channel = route ? &route->channel : NULL;
    if (!channel || wf_channel_init(channel, &session->lines, &wf_session_channel_ops, join) == 0)
        return channel;
    discard(channel);
    return NULL;
}

int wf_session_take_greeting(struct wf_session *session, const struct wf_greeting *greeting)
{
    uint8_t *bytes = malloc((size_t)greeting->length + 1);
    if (!bytes)
        return -ENOMEM;
    memcpy(bytes, greeting->bytes, greeting->length);
    bytes[greeting->length] = 0;
    session->peer.greeting = bytes;
    session->peer.greeting_length = greeting->length;
    return 0;
}

bool wf_session_awaits_greeting(const struct wf_session *session)
{
    return session->terms.greets && !session->peer.greeting;
}

int wf_session_expect(struct wf_session *session, int count)
{
    if (wf_loss_expect(&session->loss, 0, count) < 0)
        return -ENOMEM;
    int result = wf_lines_expect(&session->lines, count);
    if (result < 0)
        wf_loss_forget(&session->loss, 0); /* the next one to join may say another number */
    return result;
}

void wf_session_called(struct wf_session *session)
{
    session->life.called_ns = wf_world_now(session->guard.world);
}

int wf_session_may_join(struct wf_session *session, const struct wf_join *join)
{
    wf_session_lock(session);
    struct wf_channel *channel = session->lines.channels[join->channel];
    bool open = session->guard.state == WF_SESSION_JOINING || session->guard.state == WF_SESSION_UP;
    int result = open && (!channel || channel->incarnation < join->incarnation) ? 0 : -EALREADY;
    if (result == 0 && channel && !channel->gone) {
        WF_REACHED("channel PROVING: an older incarnation is up");
        WF_REACHED_IF(!channel->kill, "channel UP: superseded");
        wf_channel_lost(channel, -ECONNRESET, "the peer has joined it anew");
        result = -EAGAIN;
    }
    wf_session_unlock(session);
    return result;
}

/* If no other channel is up, gives the peer new time to answer: restarts the wait for progress. Does so only once until
 * bytes of the peer come again. Session lock held. */
static void greet(struct wf_session *session, int64_t now_ns)
{
    bool heard = atomic_load_explicit(&session->lines.heard_ns, memory_order_relaxed) >= session->life.greeted_ns;
    if (session->lines.up_count > 0 || !heard)
        return;
    session->life.greeted_ns = session->life.progress_ns = now_ns;
    session->life.ping_ns = 0;
}

void wf_session_check_joined(struct wf_session *session)
{
    bool all = session->lines.joined + session->lines.missed == session->lines.per_class;
    if (session->guard.state != WF_SESSION_JOINING || !all || session->lines.up_count == 0)
        return;
    int64_t now = wf_world_now(session->guard.world);
    WF_REACHED("session JOINING: every channel has proved itself or was missed, and one is up");
    wf_guard_enter(&session->guard, WF_SESSION_UP);
    session->life.progress_ns = now; /* the wait for progress begins now */
    wf_lines_heard(&session->lines, now);
    wf_guard_visit(&session->guard, 0);
}

/* The channel works on `fd` from now on. Session lock held. */
static void channel_up(struct wf_session *session, struct wf_channel *channel, int fd)
{
    assign_workers(session, channel);
    wf_route_of(channel)->redial.refused = 0;
    int64_t now = wf_world_now(session->guard.world);
    wf_route_of(channel)->progress_ns = wf_route_of(channel)->redial.joined_ns = now;
    greet(session, now);
    wf_route_of(channel)->pulse.asked = channel->incarnation > 1; /* the proof may not have reached the peer */
    wf_channel_ask(channel, channel->incarnation > 1);
    wf_guard_hold(&session->guard);
    wf_guard_hold(&session->guard);
    wf_channel_rise(channel, fd);
    wf_spread_note(channel);
    wf_session_pace(session, channel->traffic);
    wf_session_check_joined(session);
    wf_session_repeat_totals(session);
    if (session->lines.lost_by_peer[channel->id] >= channel->incarnation)
        wf_channel_lost(channel, -ECONNRESET, "the peer has lost it");
    else /* a retired rail is dialled only if no other is left; the next damage retires it again */
        wf_lines_rail(&session->lines, channel->rail)->retired = false;
    wf_kicks_all(&session->kicks, NULL);
}

/* Puts a new channel into the session. Session lock held. */
static void enter(struct wf_session *session, struct wf_channel *channel)
{
    wf_lines_enter(&session->lines, channel, !session->terms.dialer && session->lines.lost_by_peer[channel->id] > 0);
    /* A hole between arrived bytes is a chunk under way, or a stray; no new chunk is sent before the strays. So holes
     * are limited by the frames that may be under way. */
    wf_desk_expect_frames(&session->desk, channel->tx.ring);
}

int wf_session_miss(struct wf_session *session, const struct wf_join *join, int code)
{
    struct wf_channel *channel = first_incarnation(session, join);
    if (!channel)
        return -ENOMEM;
    wf_session_lock(session);
    bool joins = session->guard.state == WF_SESSION_JOINING;
    if (joins) {
        enter(session, channel);
        assign_workers(session, channel);
        wf_channel_missed(channel, code);
        wf_session_check_joined(session);
    }
    wf_session_unlock(session);
    if (!joins)
        discard(channel);
    return 0;
}

int wf_session_plan(struct wf_session *session, const struct wf_join *join)
{
    struct wf_channel *channel = first_incarnation(session, join);
    if (!channel)
        return -ENOMEM;
    wf_session_lock(session);
    bool open = session->guard.state == WF_SESSION_JOINING || session->guard.state == WF_SESSION_UP;
    if (open) {
        WF_REACHED("channel PLANNED: its traffic class is in use");
        enter(session, channel);
        assign_workers(session, channel);
        wf_channel_never_joined(channel);
    }
    wf_session_unlock(session);
    if (!open)
        discard(channel);
    return 0;
}

int wf_session_join(struct wf_session *session, const struct wf_join *join, uint64_t granted_frames,
                    uint64_t granted_bytes, int fd)
{
    /* Only the door joins, so wf_session_may_join() is still right, except that the session may have ended. */
    struct wf_channel *channel = session->lines.channels[join->channel], *fresh = NULL;
    if (!channel)
        fresh = channel = first_incarnation(session, join);
    if (!channel)
        return -ENOMEM;
    wf_session_lock(session);
    bool open = session->guard.state == WF_SESSION_JOINING || session->guard.state == WF_SESSION_UP;
    struct wf_payload *payload = NULL;
    if (open && join->kind == WF_CHANNEL_DEVICE) {
        payload = wf_payload_unpark(&session->lines, join->channel, join->incarnation);
        open = payload != NULL;
    }
    if (open && fresh) {
        enter(session, fresh);
    } else if (open) {
        restart(wf_route_of(channel), join->incarnation);
        bool planned = channel->traffic > 0 || channel->strand >= 0; /* before it was joined for the first time */
        bool again = !planned || join->incarnation > 2;
        wf_log(&session->guard.world->log, WF_LOG_INFO, "rail %s to %s: channel %u is joined%s",
               session->lines.rails[channel->rail].name, session->peer.name, channel->id, again ? " again" : "");
    }
    if (open) {
        wf_channel_set_payload(channel, payload);
        wf_window_grant(&channel->tx.window, granted_frames, granted_bytes);
        channel_up(session, channel, fd);
    }
    wf_session_unlock(session);
    if (!open && fresh)
        discard(fresh);
    return open ? 0 : -EALREADY;
}

int wf_session_may_park(struct wf_session *session)
{
    wf_session_lock(session);
    bool open = session->guard.state == WF_SESSION_JOINING || session->guard.state == WF_SESSION_UP;
    wf_session_unlock(session);
    return open ? 0 : -EALREADY;
}

static bool comes_here(const struct wf_session *session, const struct wf_join *join)
{
    return wf_strand_to_acceptor(join->domain - 1) != session->terms.dialer;
}

/* The inlet that payload of the strand comes to on the rail; NULL: it goes out, or there is none any more. */
static struct wf_inlet *inlet_of(const struct wf_session *session, const struct wf_join *join)
{
    int local = session->lines.rails[join->rail].local, device = (int)wf_strand_domain(join->domain - 1);
    return comes_here(session, join) ? wf_cards_inlet(session->sessions->cards, local, device) : NULL;
}

int wf_session_park(struct wf_session *session, const struct wf_join *join, int fd, struct wf_status *status)
{
    struct wf_cards *cards = session->sessions->cards;
    struct wf_inlet *inlet = inlet_of(session, join);
    void *rule = NULL;
    if (!inlet && comes_here(session, join))
        return wf_fail(status, -EOPNOTSUPP, "the inlet was left");
    int result = inlet ? wf_cards_steer(cards, inlet, fd, &rule, status) : 0;
    if (result < 0)
        return result;
    struct wf_payload *payload = wf_payload_create(&session->lines, cards, join, fd, inlet, rule);
    if (!payload) {
        if (inlet)
            wf_cards_unsteer(cards, inlet, rule);
        return wf_fail(status, -ENOMEM, "no memory");
    }
    wf_session_lock(session);
    wf_payload_park(payload);
    wf_guard_visit(&session->guard, 0); /* it may have ended while the card was asked */
    wf_session_unlock(session);
    return 0;
}
