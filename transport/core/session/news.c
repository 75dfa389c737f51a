#include "core/session/news.h"

#include <stdio.h>
#include <string.h>

#include "core/message/connection.h"
#include "core/message/match.h"
#include "core/request/tray.h"
#include "core/session/end.h"
#include "core/session/session.h"

/* Can the user be told of this session's connections, and of its end? */
static bool is_users(const struct wf_session *session)
{
    return session->user.handed_over && !session->life.dismissed;
}

static bool is_lost(const struct wf_session *session)
{
    return is_users(session) && !session->user.lost_told && wf_session_usable(session) < 0;
}

static bool has_news(const struct wf_session *session)
{
    return session->user.offered || (is_users(session) && !wf_list_empty(&session->desk.backlog)) || is_lost(session);
}

void wf_session_tell(struct wf_session *session)
{
    if (has_news(session))
        wf_guard_wake(&session->guard, wf_tray_put(session->sessions->news, &session->user.news_link));
}

void wf_session_hand_over(struct wf_session *session)
{
    wf_session_lock(session);
    wf_user_hand_over(&session->user);
    wf_session_tell(session);
    wf_session_unlock(session);
}

static struct weft_event *begin(struct wf_session *session, struct weft_event *event, enum weft_event_kind kind)
{
    memset(event, 0, sizeof *event);
    event->kind = kind;
    event->peer = &session->peer;
    return event;
}

/* The user gets the peer. world.lock held. */
static void tell_peer(struct wf_session *session, struct weft_event *event)
{
    begin(session, event, WEFT_EVENT_PEER);
    wf_user_withdraw(&session->user);
    wf_user_hand_over(&session->user);
}

/* The user gets the connection that has waited longest. */
static void tell_connection(struct wf_session *session, struct weft_event *event)
{
    struct weft_connection *connection = wf_connection_from_backlog(&session->desk, NULL, WEFT_ANY_ENDPOINT);
    begin(session, event, WEFT_EVENT_CONNECTION);
    event->connection = connection;
    event->endpoint = connection->endpoint;
    wf_match_offer_all(connection); /* receives of the endpoint may have waited for it; drops the session's lock */
    wf_kicks_all(&session->kicks, NULL);
}

static void tell_lost(struct wf_session *session, struct weft_event *event)
{
    begin(session, event, WEFT_EVENT_LOST);
    event->status = wf_session_usable(session);
    snprintf(event->text, sizeof event->text, "%s", wf_session_why_unusable(session));
    wf_user_told_lost(&session->user);
}

/* Fills up to `max` events of one session, in an order that the user can follow. Both locks held. */
static int tell_all(struct wf_session *session, struct weft_event *events, int max)
{
    int count = 0;
    if (count < max && session->user.offered)
        tell_peer(session, &events[count++]);
    while (count < max && is_users(session) && !wf_list_empty(&session->desk.backlog))
        tell_connection(session, &events[count++]);
    if (count < max && is_lost(session))
        tell_lost(session, &events[count++]);
    return count;
}

int wf_sessions_news(struct wf_sessions *sessions, struct weft_event *events, int max, bool *watched)
{
    struct wf_link *link;
    int count = 0;
    *watched = false;
    pthread_mutex_lock(&sessions->world->lock); /* no session is freed meanwhile */
    while (count < max && (link = wf_tray_pop(sessions->news, watched))) {
        struct wf_session *session = WF_CONTAINER(link, struct wf_session, user.news_link);
        wf_session_lock(session);
        count += tell_all(session, events + count, max - count);
        wf_session_tell(session); /* what there was no room for */
        wf_session_unlock(session);
    }
    pthread_mutex_unlock(&sessions->world->lock);
    return count;
}
