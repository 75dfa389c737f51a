/*
 * A lost channel does not end the session: its frames move to other channels, DOWN tells the peer, and the channel is
 * dialled again.
 *
 * A channel is lost on an error of its socket, on bytes that make no sense, when the peer says so (DOWN) or joins it
 * again, and when its rail is down or silent. A rail is silent when bytes wait on it but none has moved for the setting
 * rail_timeout_ms, while another rail of the session answered. When no rail answers, no rail is to blame: then the
 * peer is given up, after the setting timeout.
 */
#include "core/session/loss.h"

#include <errno.h>

#include "core/channel/state.h"
#include "core/channel/work.h"
#include "core/ground/counter.h"
#include "core/ground/reached.h"
#include "core/message/connection.h"
#include "core/message/detach.h"
#include "core/session/resend.h"
#include "core/session/session.h"
#include "core/session/traffic.h"

#define PAUSE_MIN_NS (20 * WF_NS_PER_MS)
#define PAUSE_MAX_NS (1000 * WF_NS_PER_MS)
#define USEFUL_BYTES (64 * 1024) /* a channel that has moved so many bytes, */
#define USEFUL_NS WF_NS_PER_S    /* or has lasted so long, is dialled again without a pause */

/* The next pause. */
static void slow_down(struct wf_route *route)
{
    struct wf_redial *redial = &route->redial;
    int64_t most_ns = route->channel.lines->guard->world->tuning.rail_timeout_ns / 4;
    int64_t pause = redial->pause_ns ? 2 * redial->pause_ns : PAUSE_MIN_NS;
    most_ns = most_ns < PAUSE_MAX_NS ? most_ns : PAUSE_MAX_NS;
    redial->pause_ns = pause < most_ns ? pause : most_ns;
}

void wf_route_failed(struct wf_route *route, bool refused)
{
    route->redial.refused = refused ? route->redial.refused + 1 : 0;
    route->redial.at_ns = wf_world_now(route->channel.lines->guard->world) + route->redial.pause_ns;
    slow_down(route);
}

void wf_loss_init(struct wf_loss *loss)
{
    loss->lost_log.interval_ns = WF_NS_PER_S;
}

void wf_loss_fini(struct wf_loss *loss)
{
    for (int group = 0; group < WF_GROUPS; group++)
        wf_strays_fini(&loss->strays[group]);
    for (int traffic = 0; traffic < WF_CLASSES; traffic++)
        wf_spread_destroy(loss->spreads[traffic]);
}

int wf_loss_expect(struct wf_loss *loss, unsigned traffic, int count)
{
    if (!loss->spreads[traffic])
        loss->spreads[traffic] = wf_spread_create(count);
    return loss->spreads[traffic] ? 0 : -ENOMEM;
}

void wf_loss_forget(struct wf_loss *loss, unsigned traffic)
{
    wf_spread_destroy(loss->spreads[traffic]);
    loss->spreads[traffic] = NULL;
}

static bool carries(const struct wf_session *session)
{
    return session->guard.state == WF_SESSION_UP || session->guard.state == WF_SESSION_JOINING;
}

/* --- losing --- */

void wf_session_repeat_totals(struct wf_session *session)
{
    wf_desk_repeat_credit(&session->desk);
    WF_LINES_EACH (channel, &session->lines) {
        if (channel->up)
            wf_channel_tell_state(channel);
    }
    WF_DESK_EACH_CONNECTION (connection, &session->desk) {
        connection->credit_due |= connection->finished_count > 0;
        if (connection->credit_due)
            wf_connection_todo(connection);
    }
}

/* A channel that lasted or moved bytes is dialled again at once. A channel that is lost as soon as it is joined waits
 * longer each time. */
static void plan_redial(struct wf_channel *channel, int64_t now_ns)
{
    struct wf_redial *redial = &wf_route_of(channel)->redial;
    uint64_t moved = channel->tx.acknowledged_bytes + atomic_load_explicit(&channel->heard, memory_order_relaxed);
    if (moved >= USEFUL_BYTES || now_ns - redial->joined_ns >= USEFUL_NS)
        redial->pause_ns = 0;
    redial->at_ns = now_ns + redial->pause_ns;
    redial->refused = 0;
    slow_down(wf_route_of(channel));
}

static void check_damage(struct wf_session *session, int rail, int code);

static void move_on(struct wf_session *session, struct wf_channel *channel, int code, const char *doing)
{
    const struct wf_world *world = session->guard.world;
    struct wf_session_rail *rail = &session->lines.rails[channel->rail];
    int64_t now = wf_world_now(world);
    uint64_t frames = channel->tx.window.spent_frames - channel->tx.acknowledged;
    wf_counter_add(&rail->failures, 1);
    rail->last_code = code;
    session->loss.downs_due -= wf_route_of(channel)->down.due; /* of an older incarnation: the new DOWN covers it */
    wf_route_of(channel)->down = (struct wf_down){.incarnation = channel->incarnation, .reason = code, .lost_ns = now};
    wf_log_limited(&world->log, &session->loss.lost_log, now, session->user.has_it ? WF_LOG_WARN : WF_LOG_DEBUG,
                   "lost a channel to %s on rail %s: %s: %s; what was under way (%llu frames) is sent again",
                   session->peer.name, rail->name, doing, wf_strerror(code), (unsigned long long)frames);
    WF_REACHED_IF(session->lines.up_count == 0 && session->guard.state == WF_SESSION_UP,
                  "session UP: no channel is left");
    if (session->lines.up_count == 0)
        session->life.alone_ns = now;
    plan_redial(channel, now);
    if (code == -EOPNOTSUPP && channel->strand >= 0) /* no inlet any more */
        wf_route_given_up(wf_route_of(channel));
    if (wf_resend_take_over(channel) < 0)
        wf_guard_fail(&session->guard, -ENOMEM, "no memory to send again what was lost with rail %s", rail->name);
    wf_session_repeat_totals(session);
    check_damage(session, channel->rail, code);
}

void wf_channel_lost(struct wf_channel *channel, int code, const char *doing)
{
    struct wf_session *session = wf_session_of(channel);
    if (channel->kill || channel->gone)
        return;
    WF_REACHED("channel DYING: entry");
    WF_REACHED_IF(session->guard.state == WF_SESSION_UP, "session UP: a channel is lost");
    WF_REACHED_IF(session->guard.state == WF_SESSION_CLOSING, "channel CLOSING: error");
    wf_channel_doom(channel);
    wf_channel_sink(channel);
    if (channel->strand >= 0)
        wf_detached_review(&session->desk, channel->strand);
    wf_spread_note(channel);
    wf_session_pace(session, channel->traffic);
    if (carries(session))
        move_on(session, channel, code, doing);
    wf_kicks_all(&session->kicks, NULL);
    wf_guard_visit(&session->guard, 0);
}

void wf_channel_missed(struct wf_channel *channel, int code)
{
    struct wf_session *session = wf_session_of(channel);
    struct wf_session_rail *rail = &session->lines.rails[channel->rail];
    int64_t now = wf_world_now(session->guard.world);
    WF_REACHED("channel GONE: it was never joined");
    wf_channel_never_joined(channel);
    wf_route_of(channel)->down =
        (struct wf_down){.due = true, .incarnation = channel->incarnation, .reason = code, .lost_ns = now};
    session->loss.downs_due += 1;
    wf_counter_add(&rail->failures, 1);
    rail->last_code = code;
    wf_route_of(channel)->redial.joined_ns = now;
    plan_redial(channel, now);
    wf_kicks_all(&session->kicks, NULL);
}

void wf_channel_tell_down(struct wf_channel *channel)
{
    struct wf_session *session = wf_session_of(channel);
    if (!carries(session))
        return;
    WF_REACHED("channel DYING: receive half let go");
    session->loss.downs_due += !wf_route_of(channel)->down.due;
    wf_route_of(channel)->down.due = true;
    wf_route_of(channel)->down.disposed = channel->rx.disposed;
    wf_kicks_all(&session->kicks, NULL);
}

void wf_session_place_free(struct wf_session *session)
{
    if (!session->loss.place_wanted)
        return;
    session->loss.place_wanted = false;
    wf_kicks_all(&session->kicks, NULL); /* workers look at every half that is held */
}

bool wf_rail_is_up(const struct wf_session *session, int rail)
{
    WF_LINES_EACH (channel, &session->lines) {
        if (channel->up && channel->rail == rail && channel->strand < 0)
            return true;
    }
    return false;
}

static bool other_rail_up(const struct wf_session *session, int rail)
{
    WF_LINES_EACH (channel, &session->lines) {
        if (channel->up && channel->rail != rail && channel->strand < 0)
            return true;
    }
    return false;
}

void wf_rail_lose(struct wf_session *session, int rail, int code, const char *why)
{
    WF_LINES_EACH (channel, &session->lines) {
        if (channel->up && channel->rail == rail)
            wf_channel_lost(channel, code, why);
    }
}

void wf_rail_retire(struct wf_session *session, int rail)
{
    struct wf_session_rail *pair = &session->lines.rails[rail];
    if (pair->retired)
        return;
    pair->retired = true;
    wf_log(&session->guard.world->log, WF_LOG_WARN,
           "rail %s to %s is retired: it has damaged too much (setting crc_limit)", pair->name, session->peer.name);
    wf_rail_lose(session, rail, -EBADMSG, "the rail is retired");
}

/* A rail that damages frames is retired, if another rail is up. */
static void check_damage(struct wf_session *session, int rail, int code)
{
    uint32_t limit = session->guard.world->tuning.crc_limit;
    bool bad = code == -EBADMSG && limit > 0 && atomic_load(&session->lines.rails[rail].damaged) >= limit;
    if (bad && other_rail_up(session, rail))
        wf_rail_retire(session, rail);
}

void wf_session_rail_changed(struct wf_session *session, int local, bool down, bool gone)
{
    wf_session_lock(session);
    for (int rail = 0; rail < session->lines.rail_count && carries(session); rail++) {
        if (session->lines.rails[rail].local != local)
            continue;
        /* The channels of the last rail that is up stay: the rail may be back before the peer is given up. */
        bool lost = down && (gone || other_rail_up(session, rail));
        WF_REACHED_IF(lost, "channel UP: its rail is down");
        if (lost)
            wf_rail_lose(session, rail, -ENETDOWN, "the rail is down");
        for (int i = 0; i < session->lines.channel_count && !down; i++)
            if (session->lines.channels[i] && session->lines.channels[i]->rail == rail)
                wf_route_of(session->lines.channels[i])->redial.at_ns =
                    wf_route_of(session->lines.channels[i])->redial.pause_ns = 0;
    }
    wf_session_unlock(session);
}
