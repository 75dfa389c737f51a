/* What a session does as time passes: signs of life and progress of the peer, and the deadlines of its requests. */
#include <errno.h>

#include "core/ground/reached.h"
#include "core/request/book.h"
#include "core/request/request.h"
#include "core/session/end.h"
#include "core/session/loss.h"
#include "core/session/resend.h"
#include "core/session/session.h"
#include "core/session/silence.h"

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

static bool has_unacknowledged(const struct wf_channel *channel)
{
    return channel->tx.acknowledged != channel->tx.window.spent_frames;
}

/* Does this channel wait for an acknowledgement, or for the first byte after it was dialled again? Sets
 * route->progress_ns to the start of the wait: now, if it did not wait at the last look or an acknowledgement came
 * since. Session lock held. */
static bool waits_since(struct wf_route *route, int64_t now_ns, bool paused)
{
    const struct wf_tx *tx = &route->channel.tx;
    bool waits = has_unacknowledged(&route->channel) || wf_channel_is_unproven(&route->channel);
    if (!waits || !route->waited || paused || tx->acknowledged != route->progress) {
        route->progress = tx->acknowledged;
        route->progress_ns = now_ns;
    }
    route->waited = waits;
    return waits;
}

/*
 * A peer that lives acknowledges every frame soon. So a channel on which frames wait but none is acknowledged is lost,
 * even if other channels answer; and so is one of which the peer may know nothing. If no frame is acknowledged in the
 * whole session, the peer is given up. Session lock held.
 */
static int64_t check_progress(struct wf_session *session, int64_t now_ns, bool paused)
{
    int64_t timeout = session->guard.world->tuning.timeout_ns, next = WF_NEVER;
    bool waits = !wf_resend_all_idle(session);
    WF_LINES_EACH (channel, &session->lines) {
        if (!channel->up || !waits_since(wf_route_of(channel), now_ns, paused))
            continue;
        waits |= has_unacknowledged(channel);
        int64_t due = wf_route_of(channel)->progress_ns +
                      timeout * 2 / 3; /* sooner than the session: its frames may get through on another channel */
        WF_REACHED_IF(now_ns >= due, "channel UP: nothing acknowledged for two thirds of timeout");
        if (now_ns >= due)
            wf_channel_stands_still(channel);
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

/* When a peer that was last heard then is asked: after a third of the timeout, a little earlier, so that the door and
 * the workers wake up once for all idle sessions whose time comes within a 48th of the timeout. */
static int64_t ask_at(int64_t heard_ns, int64_t timeout_ns)
{
    int64_t at = heard_ns + timeout_ns / 3, grid = timeout_ns / 48;
    return grid > 0 ? at - at % grid : at;
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
                      session->peer.name, session->lines.joined, session->lines.per_class);
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
    if (session->life.ping_ns == 0 && now_ns >= ask_at(heard, timeout)) {
        session->life.ping_ns = now_ns;
        wf_session_ask_all(session);
    }
    if (session->life.ping_ns != 0 && now_ns - session->life.ping_ns >= timeout * 2 / 3) {
        WF_REACHED("session UP: nothing heard for timeout");
        wf_session_give_up(session, now_ns, -ETIMEDOUT, "does not answer (setting timeout)");
        return WF_NEVER;
    }
    int64_t due = session->life.ping_ns != 0 ? session->life.ping_ns + timeout * 2 / 3 : ask_at(heard, timeout);
    int64_t others[] = {check_progress(session, now_ns, paused), wf_session_survey(session, now_ns),
                        wf_session_check_alone(session, now_ns), wf_session_check_stragglers(session, now_ns),
                        wf_session_check_answers(session, now_ns)};
    for (int i = 0; i < 5; i++)
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
