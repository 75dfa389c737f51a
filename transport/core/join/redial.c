#include "core/join/redial.h"

#include <errno.h>

#include "core/channel/payload.h"
#include "core/ground/reached.h"
#include "core/join/talk_parts.h"
#include "core/session/entry.h"
#include "core/session/loss.h"
#include "core/session/session.h"
#include "core/session/traffic.h"

/* May the channel be dialled once its time has come? Session lock held. */
static bool is_lost(const struct wf_session *session, const struct wf_channel *channel)
{
    if (!channel || !channel->gone || !channel->kill || wf_route_of(channel)->redial.talking)
        return false;
    const struct wf_session_rail *rail = &session->lines.rails[channel->rail];
    bool down = rail->local >= 0 && wf_rail_is_down(&session->sessions->rails->each[rail->local]);
    bool spared = rail->retired && session->lines.up_count > 0; /* with no channel up, a bad rail is better than none */
    return !spared && !down;
}

/* The lost channel that has waited longest, or NULL. Session lock held. */
static struct wf_channel *longest_lost(const struct wf_session *session)
{
    struct wf_channel *longest = NULL;
    WF_LINES_EACH (channel, &session->lines) {
        if (is_lost(session, channel) &&
            (!longest || wf_route_of(channel)->redial.at_ns < wf_route_of(longest)->redial.at_ns))
            longest = channel;
    }
    return longest;
}

/* Is a lost channel due? Then `join` is for its next incarnation, if there is room to dial it. Else `next_ns` is when
 * the next one is due. */
static bool next_due(struct wf_session *session, int64_t now_ns, bool room, int64_t *next_ns, struct wf_join *join)
{
    wf_session_lock(session);
    bool carries = session->guard.state == WF_SESSION_UP || session->guard.state == WF_SESSION_JOINING;
    struct wf_channel *channel = carries ? longest_lost(session) : NULL;
    bool due = channel && wf_route_of(channel)->redial.at_ns <= now_ns;
    *next_ns = channel && !due ? wf_route_of(channel)->redial.at_ns : WF_NEVER;
    if (due && room) {
        *join = (struct wf_join){.channel = channel->id,
                                 .incarnation = wf_route_dial(wf_route_of(channel)),
                                 .channels = (uint16_t)session->lines.per_class,
                                 .kind = (uint8_t)channel->kind,
                                 .rail = (uint8_t)channel->rail,
                                 .domain = (uint16_t)(channel->strand + 1)};
        if (channel->strand >= 0) /* its payload stream comes first */
            join->kind = WF_CHANNEL_PAYLOAD;
    }
    wf_session_unlock(session);
    return due;
}

/* The session that has waited longest may dial. */
static void wake_next(struct wf_door *door)
{
    struct wf_link *waits = wf_list_pop_front(&door->redials_wait);
    if (waits)
        wf_guard_visit(&WF_CONTAINER(waits, struct wf_session, redial_link)->guard, 0);
}

void wf_redial_pass_on(struct wf_door *door)
{
    if (door->redials < WF_DIALS_AT_ONCE)
        wake_next(door);
}

int64_t wf_redial_tick(struct wf_door *door, struct wf_session *session, int64_t now_ns)
{
    struct wf_join join;
    int64_t next_ns = WF_NEVER;
    if (!session->terms.dialer)
        return WF_NEVER;
    int64_t planned_ns = wf_session_plan_classes(session, now_ns);
    bool due, room;
    do {
        room = door->redials < WF_DIALS_AT_ONCE;
        due = next_due(session, now_ns, room, &next_ns, &join);
        if (due && room)
            wf_talk_redial(door, session, &join);
    } while (due && room);
    if (room)
        wake_next(door); /* this one does not need it */
    else if (due && !wf_link_in_list(&session->redial_link))
        wf_list_push_back(&door->redials_wait, &session->redial_link);
    return planned_ns < next_ns ? planned_ns : next_ns;
}

static bool refused(int code)
{
    return code == -ECONNREFUSED;
}

static uint16_t *payload_port(struct wf_session *session, const struct wf_join *join)
{
    return &session->lines.rails[join->rail].payload_ports[wf_strand_domain(join->domain - 1)];
}

void wf_redial_sent_on(struct wf_talk *talk, uint16_t port)
{
    WF_REACHED("channel PROVING: DENY, another port");
    wf_session_lock(talk->session);
    *payload_port(talk->session, &talk->join) = port;
    wf_session_unlock(talk->session);
    talk->sent_on = true;
    wf_talk_end(talk);
}

/* The peer may have another port now: it is asked again. */
static void forget_port(struct wf_talk *talk, const char *why)
{
    struct wf_session *session = talk->session;
    uint16_t *port = payload_port(session, &talk->join);
    if (*port > 0)
        wf_world_fallback(session->guard.world,
                          "devmem: %s to GPU %u of %s is staged while port %u there cannot be reached: %s; let it "
                          "through the firewall",
                          session->lines.rails[talk->join.rail].name, wf_strand_domain(talk->join.domain - 1),
                          session->peer.name, *port, why);
    *port = 0;
}

void wf_redial_failed(struct wf_talk *talk, int code, int reason, const char *text)
{
    struct wf_session *session = talk->session;
    wf_session_lock(session);
    struct wf_channel *channel = session->lines.channels[talk->join.channel];
    struct wf_session_rail *rail = &session->lines.rails[talk->join.rail];
    if (talk->mute && talk->state == WF_TALK_CONNECTING && code != -ENETDOWN)
        forget_port(talk, wf_strerror(code));
    wf_route_failed(wf_route_of(channel), refused(code) && reason == 0);
    wf_log(&session->guard.world->log, WF_LOG_DEBUG, "rail %s to %s: channel %u cannot be joined again yet: %s",
           rail->name, session->peer.name, channel->id, text);
    bool alone = session->guard.state != WF_SESSION_CLOSING &&
                 session->lines.up_count == 0; /* else a channel that is up will show it */
    WF_REACHED_IF(reason == WF_DENY_SESSION && alone, "session UP: DENY, the session is unknown");
    WF_REACHED_IF(reason == WF_DENY_CLOSING && alone, "session UP: DENY, the session is closing");
    if (reason == WF_DENY_SESSION && alone)
        wf_guard_fail(&session->guard, -ECONNRESET, "%s has restarted, or ended the session", session->peer.name);
    else if (reason == WF_DENY_CLOSING && alone)
        wf_session_peer_closed(session);
    else if (reason == WF_DENY_RETIRED)
        wf_rail_retire(session, talk->join.rail);
    else if ((reason == WF_DENY_LIMIT || code == -EOPNOTSUPP) && channel->strand >= 0)
        wf_route_given_up(wf_route_of(channel));
    wf_session_unlock(session);
}

void wf_redial_over(struct wf_talk *talk)
{
    struct wf_session *session = talk->session;
    struct wf_door *door = talk->door;
    door->redials -= 1;
    wake_next(door);
    if (!session)
        return;
    if (talk->sent_on) {
        wf_talk_redial(door, session, &talk->join);
        return;
    }
    if (talk->parked && wf_session_may_park(session) == 0) { /* the channel itself is next */
        struct wf_join join = talk->join;
        join.kind = WF_CHANNEL_DEVICE;
        wf_talk_redial(door, session, &join);
        return;
    }
    wf_session_lock(session);
    wf_payload_unclaimed(&session->lines, talk->join.channel,
                         talk->join.incarnation); /* the next attempt has its own */
    wf_route_dialled(wf_route_of(session->lines.channels[talk->join.channel]));
    wf_session_unlock(session);
    wf_guard_visit(&session->guard, 0);
}
