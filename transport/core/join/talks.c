/* All conversations of a door: their deadlines, and their ends. */
#include <errno.h>
#include <stdlib.h>

#include "core/ground/reached.h"
#include "core/join/redial.h"
#include "core/join/talk_parts.h"
#include "core/session/session.h"

static void destroy(struct wf_talk *talk)
{
    wf_link_remove(&talk->link);
    wf_link_remove(&talk->dial_link);
    wf_link_remove(&talk->wait_link);
    wf_alarm_leave(&talk->door->talk_times, &talk->visit);
    if (talk->dial)
        wf_alarm_again(&talk->door->dial_times, &talk->dial->visit, 0);
    if (!talk->handed_over) {
        talk->door->engine->ops->detach(talk->door->engine, talk->fd);
        wf_talk_ops_of(talk)->close_fd(talk->door->sessions->world->engine_host, talk->fd);
    }
    if (talk->role == WF_TALK_VISITOR)
        talk->door->visitors -= 1;
    if (talk->role == WF_TALK_CONTROL && talk->dial)
        talk->dial->talking = false;
    if (talk->role == WF_TALK_REDIAL)
        wf_redial_over(talk);
    if (talk->role == WF_TALK_CHANNEL && talk->dial) {
        talk->dial->joining -= 1;
        wf_dial_channels(talk->dial, talk->door);
    }
    wf_talk_tls_end(talk);
    free(talk);
}

static void time_out(struct wf_talk *talk)
{
    bool dialing = talk->state == WF_TALK_CONNECTING;
    WF_REACHED_IF(talk->session && dialing, "channel DIALING: deadline");
    WF_REACHED_IF(talk->session && !dialing, "channel PROVING: deadline");
    if (talk->session && dialing)
        wf_talk_cannot_reach(talk, -ETIMEDOUT, "no answer");
    else if (talk->role == WF_TALK_CONTROL)
        wf_talk_fail(talk, -ETIMEDOUT, "took the connection and %s for %.1f s: is that a weft server?",
                     talk->heard ? "went on no further" : "said nothing",
                     (double)(wf_world_now(talk->door->sessions->world) - talk->begun_ns) / WF_NS_PER_S);
    else if (talk->state == WF_TALK_MUTE)
        wf_talk_fail(talk, -ETIMEDOUT, "came to a port for payload, and no channel has claimed it");
    else
        wf_talk_fail(talk, -ETIMEDOUT, "said nothing for too long");
}

/* The conversation may be destroyed; else returns when to look at it again. */
static void visit(struct wf_talk *talk, int64_t now_ns)
{
    struct wf_door *door = talk->door;
    if (talk->state == WF_TALK_CONNECTING && talk->role == WF_TALK_CONTROL && now_ns >= talk->deadline_ns) {
        talk->dial->last_error = -ETIMEDOUT; /* the dial tries again until its own deadline */
        wf_talk_end(talk);
    }
    if (talk->state != WF_TALK_OVER && now_ns >= talk->deadline_ns)
        time_out(talk);
    if (talk->state == WF_TALK_OVER && !talk->op.posted)
        destroy(talk);
    else if (talk->state != WF_TALK_OVER) /* else its operation, which was cancelled, brings the door here again */
        wf_alarm_again(&door->talk_times, &talk->visit, talk->deadline_ns);
}

int64_t wf_talks_tick(struct wf_door *door, int64_t now_ns)
{
    struct wf_visit *due;
    WF_LIST_EACH (link, following, &door->talks_wait) {
        wf_talk_try_to_hand_over(WF_CONTAINER(link, struct wf_talk, wait_link));
    }
    while ((due = wf_alarm_next(&door->talk_times, now_ns)))
        visit(WF_CONTAINER(due, struct wf_talk, visit), now_ns);
    return atomic_load(&door->talk_times.due_ns);
}

void wf_talks_time_out(const struct wf_dial *dial, int64_t begun_ns)
{
    WF_LIST_EACH (link, following, &dial->talks) {
        struct wf_talk *talk = WF_CONTAINER(link, struct wf_talk, dial_link);
        bool unanswered = talk->role == WF_TALK_CHANNEL && talk->state != WF_TALK_OVER && !talk->heard;
        /* Somebody took the connection, and has not come to the end: another reason than that nobody answers. */
        bool stuck = talk->role == WF_TALK_CONTROL && talk->state != WF_TALK_OVER && talk->state != WF_TALK_CONNECTING;
        if ((unanswered || stuck) && talk->begun_ns <= begun_ns)
            time_out(talk);
    }
}

void wf_talks_forget(struct wf_door *door, const struct wf_session *session)
{
    WF_LIST_EACH (link, following, &door->talks) {
        struct wf_talk *talk = WF_CONTAINER(link, struct wf_talk, link);
        if (talk->session != session)
            continue;
        talk->session = NULL;
        wf_talk_end(talk);
    }
}

void wf_talks_rail_down(struct wf_door *door, int rail)
{
    WF_LIST_EACH (link, following, &door->talks) {
        struct wf_talk *talk = WF_CONTAINER(link, struct wf_talk, link);
        bool redials = talk->role == WF_TALK_REDIAL && talk->state != WF_TALK_OVER && talk->session;
        if (redials && talk->session->lines.rails[talk->join.rail].local == rail)
            wf_talk_fail(talk, -ENETDOWN, "the rail is down");
    }
}

static void abandon(struct wf_talk *talk)
{
    wf_link_remove(&talk->dial_link);
    talk->dial = NULL;
    talk->session = NULL;
    wf_talk_end(talk);
}

void wf_talks_end(struct wf_dial *dial)
{
    WF_LIST_EACH (link, following, &dial->talks) {
        abandon(WF_CONTAINER(link, struct wf_talk, dial_link));
    }
}

void wf_talks_end_all(struct wf_door *door)
{
    WF_LIST_EACH (link, following, &door->talks) {
        abandon(WF_CONTAINER(link, struct wf_talk, link));
    }
}
