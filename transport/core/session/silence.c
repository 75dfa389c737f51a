#include "core/session/silence.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/channel/payload.h"
#include "core/channel/work.h"
#include "core/ground/reached.h"
#include "core/session/loss.h"
#include "core/session/session.h"

#define REFUSALS 2 /* in a row: the peer may just be listening anew, on an interface that was made anew */
#define LOOKS 8    /* at a rail, in the time rail_timeout_ms after which a silent rail is lost */

/* Does the code mean that the peer closed the channel? When the peer's process ends, its kernel closes all channels. */
static bool closed_by_peer(int code)
{
    return code == -ECONNRESET || code == -EPIPE;
}

/* Did the peer close every channel that was lost in the last rail_timeout_ms before none was left? */
static bool all_closed(const struct wf_session *session)
{
    int64_t recently = session->life.alone_ns - session->guard.world->tuning.rail_timeout_ns;
    WF_LINES_EACH (channel, &session->lines) {
        if (wf_route_of(channel)->down.lost_ns >= recently && !closed_by_peer(wf_route_of(channel)->down.reason))
            return false;
    }
    return true;
}

/* Bytes received, also those of a record that is not whole yet: a slow rail may need long for a record, so an answer in
 * or behind the record comes late. */
static uint64_t bytes_come(const struct wf_channel *channel)
{
    return atomic_load_explicit(&channel->heard, memory_order_relaxed) +
           atomic_load_explicit(&channel->kept, memory_order_relaxed);
}

bool wf_channel_is_unproven(const struct wf_channel *channel)
{
    return channel->incarnation > 1 && bytes_come(channel) == 0;
}

/* Of the stream, or of both where payload goes out on a second one. */
static bool read_progress(const struct wf_channel *channel, const struct wf_world *world, struct wf_progress *progress)
{
    struct wf_progress payload;
    if (world->engine_ops->progress(world->engine_host, channel->fd, progress) < 0)
        return false;
    if (!channel->payload || channel->payload->incoming ||
        world->engine_ops->progress(world->engine_host, channel->payload->fd, &payload) < 0)
        return true;
    progress->acknowledged += payload.acknowledged;
    progress->pending += payload.pending;
    progress->unsent += payload.unsent;
    return true;
}

void wf_channel_stands_still(struct wf_channel *channel)
{
    struct wf_progress here;
    char bytes[32] = "?", what[160];
    if (read_progress(channel, channel->lines->guard->world, &here))
        snprintf(bytes, sizeof bytes, "%llu", (unsigned long long)here.pending);
    snprintf(
        what, sizeof what,
        "nothing is acknowledged on it (setting timeout; channel %u, %s, %s bytes on their way to the peer's kernel)",
        channel->id, channel->tx.idle ? "idle" : "sending", bytes);
    wf_channel_lost(channel, -ETIMEDOUT, what);
}

/* Looks at the bytes that a channel has moved since the last look. Returns whether bytes of the peer have come. */
static bool take_pulse(struct wf_channel *channel)
{
    const struct wf_world *world = channel->lines->guard->world;
    struct wf_pulse *pulse = &wf_route_of(channel)->pulse;
    struct wf_tx *tx = &channel->tx;
    uint64_t heard = bytes_come(channel);
    bool came = heard != pulse->heard, moved = came, waits = pulse->asked, sent = false;
    pulse->heard = heard;
    if (pulse->asked || tx->acknowledged != tx->window.spent_frames || !tx->idle) {
        struct wf_progress progress;
        bool known = read_progress(channel, world, &progress);
        waits |= known && progress.pending > 0;
        sent = known && progress.pending > progress.unsent;
        moved |= known && progress.acknowledged != pulse->acknowledged;
        pulse->acknowledged = known ? progress.acknowledged : 0;
    }
    pulse->still = moved || !waits ? 0 : pulse->still + 1;
    pulse->silent = moved || !(sent || pulse->asked) ? 0 : pulse->silent + 1;
    pulse->stuck = moved || !sent ? 0 : pulse->stuck + 1;
    pulse->quiet = came ? 0 : pulse->quiet + 1;
    return came;
}

/* Is it the channel that speaks for its rail? The others speak for themselves: a network may drop what has the mark of
 * a class above 0, and nothing else. */
static bool speaks_for_rail(const struct wf_channel *channel)
{
    return channel->kind == WF_CHANNEL_EXPRESS && channel->traffic == 0;
}

/* Takes the pulse of every channel, and ends questions that are answered. Bytes on any channel of a rail answer for the
 * channel that speaks for the rail. Returns the rails on which bytes have come, as bits. */
static uint64_t listen_to_rails(struct wf_session *session)
{
    uint64_t heard = 0;
    WF_LINES_EACH (channel, &session->lines) {
        if (channel->up && take_pulse(channel))
            heard |= UINT64_C(1) << channel->rail;
    }
    WF_LINES_EACH (channel, &session->lines) {
        if (!channel->up || !wf_route_of(channel)->pulse.asked)
            continue;
        bool answered = speaks_for_rail(channel) ? (heard & UINT64_C(1) << channel->rail) != 0
                                                 : wf_route_of(channel)->pulse.quiet == 0;
        if (!answered)
            continue;
        wf_route_of(channel)->pulse.asked = false;
        wf_route_of(channel)->pulse.still = wf_route_of(channel)->pulse.silent = 0;
    }
    return heard;
}

void wf_session_ask_all(struct wf_session *session)
{
    session->life.ping_number += 1;
    WF_LINES_EACH (channel, &session->lines) {
        if (!channel->up || channel->kind != WF_CHANNEL_EXPRESS)
            continue;
        wf_channel_ask(channel, true);
        wf_route_of(channel)->pulse.asked = true;
    }
    wf_kicks_all(&session->kicks, NULL);
}

/*
 * An express channel may be dead at the peer only, with the news of it lost, while its rail carries bulk or the frames
 * of other classes. It is asked after a third of `timeout` without bytes, and lost after another third without an
 * answer, if the peer was heard in the last two looks: elsewhere, for this channel was quiet in both. True: ask it.
 */
static bool judge_quiet(struct wf_session *session, struct wf_channel *channel)
{
    const struct wf_tuning *tuning = &session->guard.world->tuning;
    uint32_t third = (uint32_t)(tuning->timeout_ns / 3 / (tuning->rail_timeout_ns / LOOKS)) + 2;
    if (channel->kind != WF_CHANNEL_EXPRESS || wf_route_of(channel)->pulse.quiet < third)
        return false;
    if (wf_route_of(channel)->pulse.quiet >= 2 * third)
        wf_channel_lost(channel, -ETIMEDOUT, "no answer comes on it");
    return channel->up;
}

/*
 * Something on the way may have forgotten this one stream while its rail answers on others, at every look. What it
 * carries goes on another channel then, and may meet the same there, all within `timeout`. It gets twice the time of a
 * rail, because it may stand behind what the others sent.
 */
static void judge_stuck(struct wf_channel *channel, bool rail_answers)
{
    struct wf_pulse *pulse = &wf_route_of(channel)->pulse;
    if (!rail_answers)
        pulse->stuck = 0;
    if (!channel->up || pulse->stuck < 2 * LOOKS)
        return;
    WF_REACHED("channel UP: stuck, its rail answers");
    wf_channel_lost(channel, -ETIMEDOUT, "nothing moves on it, though its rail answers (setting rail_timeout_ms)");
}

/*
 * Loses rails and channels that have been silent for LOOKS looks. Returns whether a channel is suspected. A peer
 * whose device is slow may read nothing for long, and closes the stream's window: bytes that cannot be sent yet prove
 * nothing against the rail. But the rail may have died meanwhile, so the channel is suspected, and asked.
 */
static bool judge(struct wf_session *session, uint64_t heard)
{
    bool suspects = false;
    heard |= session->life.heard_before;
    WF_LINES_EACH (channel, &session->lines) {
        if (!channel->up)
            continue;
        suspects |= wf_route_of(channel)->pulse.still >= LOOKS / 4;
        suspects |= heard && judge_quiet(session, channel);
        judge_stuck(channel, (heard & UINT64_C(1) << channel->rail) != 0);
        bool others = (heard & ~(UINT64_C(1) << channel->rail)) != 0;
        if (!others || wf_route_of(channel)->pulse.silent < LOOKS || !channel->up)
            continue;
        WF_REACHED("channel UP: silent");
        if (speaks_for_rail(channel))
            wf_rail_lose(session, channel->rail, -ETIMEDOUT, "the rail is silent (setting rail_timeout_ms)");
        else
            wf_channel_lost(channel, -ETIMEDOUT, "nothing moves on it (setting rail_timeout_ms)");
    }
    return suspects;
}

int64_t wf_session_survey(struct wf_session *session, int64_t now_ns)
{
    bool alone = session->lines.rail_count < 2 && session->lines.classes == 1; /* one rail, one express channel */
    if (session->guard.state != WF_SESSION_UP || alone)
        return WF_NEVER;
    int64_t step = session->guard.world->tuning.rail_timeout_ns / LOOKS;
    if (now_ns < session->life.survey_ns)
        return session->life.survey_ns;
    uint64_t heard = listen_to_rails(session);
    bool suspects = judge(session, heard);
    session->life.heard_before = heard;
    if (suspects && session->guard.state == WF_SESSION_UP)
        wf_session_ask_all(session);
    session->life.survey_ns = now_ns + step;
    return session->life.survey_ns;
}

/* UP: has the peer's BYE not come on this channel? CLOSING: has one direction of this channel not ended? */
static bool straggles(const struct wf_session *session, const struct wf_channel *channel)
{
    if (channel->kill || channel->gone)
        return false;
    return session->guard.state == WF_SESSION_CLOSING ? !channel->rx.ended || !channel->tx.shut : !channel->bye_seen;
}

int64_t wf_session_check_stragglers(struct wf_session *session, int64_t now_ns)
{
    bool ends = session->guard.state == WF_SESSION_CLOSING ||
                (session->guard.state == WF_SESSION_UP && session->guard.peer_closing);
    if (!ends || session->life.goodbye_ns == 0)
        return WF_NEVER;
    bool any = false;
    /* A session that became CLOSING after that BYE sends its own BYE only now: the channels get new time for it. */
    int64_t closing_ns = session->guard.state == WF_SESSION_CLOSING ? session->life.closing_ns : 0;
    int64_t since = closing_ns > session->life.goodbye_ns ? closing_ns : session->life.goodbye_ns;
    int64_t due = since + session->guard.world->tuning.rail_timeout_ns;
    WF_LINES_EACH (channel, &session->lines) {
        if (!straggles(session, channel))
            continue;
        any = true;
        WF_REACHED_IF(now_ns >= due && session->guard.state == WF_SESSION_UP, "channel UP: BYE comes on others only");
        WF_REACHED_IF(now_ns >= due && session->guard.state == WF_SESSION_CLOSING,
                      "channel CLOSING: others have ended");
        if (now_ns >= due)
            wf_channel_lost(channel, -ETIMEDOUT, "the goodbyes do not pass it");
    }
    return any && now_ns < due ? due : WF_NEVER;
}

/* --- no channel left --- */

static void describe_rails(const struct wf_session *session, char *text, size_t room)
{
    size_t used = 0;
    text[0] = '\0';
    for (int rail = 0; rail < session->lines.rail_count && used < room; rail++) {
        const struct wf_session_rail *the = &session->lines.rails[rail];
        bool up = wf_rail_is_up(session, rail);
        used += (size_t)snprintf(text + used, room - used, "%s%s %s", rail ? ", " : "", the->name,
                                 the->retired     ? "retired"
                                 : up             ? "up"
                                 : the->last_code ? wf_strerror(the->last_code)
                                                  : "not met");
    }
}

void wf_session_give_up(struct wf_session *session, int64_t now_ns, int code, const char *what)
{
    char rails[100];
    describe_rails(session, rails, sizeof rails);
    int64_t heard = atomic_load_explicit(&session->lines.heard_ns, memory_order_relaxed);
    wf_guard_fail(&session->guard, code, "%s %s; rails: %s; %llu payload bytes moved, last heard %.1f s ago",
                  session->peer.name, what, rails, (unsigned long long)atomic_load(&session->lines.moved),
                  (double)(now_ns - heard) / (double)WF_NS_PER_S);
}

/* Have the last attempts on every rail found that no process listens there? The port for payload is no matter of it. */
static bool refused_everywhere(const struct wf_session *session)
{
    for (int rail = 0; rail < session->lines.rail_count; rail++) {
        bool refused = false;
        WF_LINES_EACH (channel, &session->lines) {
            refused |= channel->rail == rail && channel->strand < 0 && wf_route_of(channel)->redial.refused >= REFUSALS;
        }
        if (!refused)
            return false;
    }
    return session->lines.rail_count > 0;
}

int64_t wf_session_check_alone(struct wf_session *session, int64_t now_ns)
{
    if (session->guard.state != WF_SESSION_UP || session->lines.up_count > 0)
        return WF_NEVER;
    const struct wf_tuning *tuning = &session->guard.world->tuning;
    bool closed = all_closed(session),
         soon = closed && !session->terms.dialer && tuning->rail_timeout_ns < tuning->timeout_ns;
    int64_t called =
        session->life.called_ns > session->life.alone_ns ? session->life.called_ns : session->life.alone_ns;
    int64_t until = session->life.alone_ns + tuning->timeout_ns;
    if (soon && called + tuning->rail_timeout_ns < until)
        until = called + tuning->rail_timeout_ns;
    bool refused = session->terms.dialer && refused_everywhere(session);
    if (!refused && now_ns < until)
        return until;
    WF_REACHED("session UP: no channel is left, and the peer is gone or does not come back");
    if (refused)
        wf_session_give_up(session, now_ns, -ECONNRESET, "is gone: nobody listens there any more");
    else if (closed)
        wf_session_give_up(session, now_ns, -ECONNRESET, "is gone: it has closed every channel and not come back");
    else
        wf_session_give_up(session, now_ns, -ETIMEDOUT, "is out of reach: no channel is left (setting timeout)");
    return WF_NEVER;
}
