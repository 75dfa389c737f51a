#include "core/session/end.h"

#include <errno.h>
#include <stdio.h>

#include "core/channel/state.h"
#include "core/channel/work.h"
#include "core/ground/holders.h"
#include "core/ground/reached.h"
#include "core/message/connection.h"
#include "core/message/connection_close.h"
#include "core/message/match.h"
#include "core/message/outbound.h"
#include "core/message/served.h"
#include "core/message/stage.h"
#include "core/request/book.h"
#include "core/request/request.h"
#include "core/session/news.h"
#include "core/session/resend.h"
#include "core/session/session.h"

#define ANSWERS_NS (500 * WF_NS_PER_MS) /* half of what the end of a context takes at most */

/* Detaches connections that the user does not hold any more from their endpoints: the session is freed later, and until
 * then the endpoints would be busy. */
static void leave_endpoints(struct wf_session *session)
{
    WF_DESK_EACH_CONNECTION (connection, &session->desk) {
        bool opening =
            connection->waiting && connection->waiting->kind == WF_REQUEST_OPEN; /* the user gets no handle */
        bool closed = (!connection->held || opening) && !wf_link_in_list(&connection->accept_link);
        if (session->life.dismissed || closed)
            wf_connection_attach(connection, NULL);
    }
}

int wf_session_close_status(const struct wf_session *session)
{
    return session->guard.error.code == -ESHUTDOWN ? 0 : session->guard.error.code;
}

void wf_session_unheld(struct wf_session *session)
{
    int status = session->guard.state == WF_SESSION_FAILED ? session->guard.error.code : -ESHUTDOWN;
    bool clean = session->guard.state == WF_SESSION_CLOSING;
    WF_REACHED_IF(clean, "session CLOSING: every channel has ended");
    WF_REACHED_IF(!clean, "session FAILED: channels gone");
    if (session->guard.error.code == 0)
        wf_fail(&session->guard.error, -ESHUTDOWN, "the session with %s is closed", session->peer.name);
    wf_guard_enter(&session->guard, WF_SESSION_DEAD);
    leave_endpoints(session);
    wf_session_tell(session);
    wf_regions_release(&session->desk);
    wf_stage_out_forget(&session->desk);
    wf_shares_give_back(&session->shares);
    WF_LIST_EACH (link, following, &session->book.requests) {
        struct weft_request *request = WF_CONTAINER(link, struct weft_request, link);
        if (clean && wf_match_is_here(request))
            continue; /* its turn in a stream is still to come, and completes it */
        if (request->inbound)
            request->inbound->request = NULL;
        if (request->outbound)
            request->outbound->request = NULL;
        if (request->note)
            request->note->request = NULL;
        if (request->connection && request->connection->waiting == request)
            request->connection->waiting = NULL;
        int ended = request->kind == WF_REQUEST_CLOSE && clean ? 0 : status;
        if (request->kind == WF_REQUEST_PEER_CLOSE) {
            session->life.closing = NULL;
            ended = wf_session_close_status(session);
        }
        wf_request_complete(request, ended, 0);
    }
    wf_guard_visit(&session->guard, 0);
}

/* Sessions that the user never asked for are logged at a limited rate: strangers can make any number. */
static void tell_why(struct wf_session *session)
{
    struct wf_sessions *sessions = session->sessions;
    const struct wf_world *world = sessions->world;
    if (session->user.has_it) {
        wf_log(&world->log, WF_LOG_WARN, "%s", session->guard.error.text);
        return;
    }
    pthread_mutex_lock(&sessions->log_lock);
    wf_log_limited(&world->log, &sessions->unknown_log, wf_world_now(world), WF_LOG_WARN, "%s",
                   session->guard.error.text);
    pthread_mutex_unlock(&sessions->log_lock);
}

void wf_session_failed(struct wf_session *session)
{
    if (!session->life.dismissed)
        tell_why(session);
    wf_guard_enter(&session->guard, WF_SESSION_FAILED);
    WF_REACHED("session FAILED: entry");
    wf_session_tell(session);
    WF_LINES_EACH (channel, &session->lines) {
        wf_channel_doom(channel);
    }
    wf_kicks_all(&session->kicks, NULL);
    wf_guard_hold(&session->guard); /* so that a session without channels ends here too */
    wf_guard_let_go(&session->guard);
}

int wf_session_usable(const struct wf_session *session)
{
    if (session->guard.state == WF_SESSION_FAILED || session->guard.state == WF_SESSION_DEAD)
        return session->guard.error.code;
    if (session->guard.state != WF_SESSION_UP || session->guard.peer_closing || session->life.closing)
        return -ESHUTDOWN;
    return 0;
}

const char *wf_session_why_unusable(const struct wf_session *session)
{
    return session->guard.error.code ? session->guard.error.text : "the peer has closed the session";
}

/* Of a connection that this side closes the peer's CLOSED is awaited: the peer says it once its own sends are
 * acknowledged, also those that lost channels have delivered and not acknowledged. Not for ever: the peer may be
 * stopped, and is to find BYE when it goes on, or write for long into memory of this side. */
static bool answers_are_late(const struct wf_session *session)
{
    return session->desk.closes > 0 && wf_world_now(session->guard.world) >= session->life.answers_ns;
}

static bool everything_told(const struct wf_session *session)
{
    const struct wf_desk *desk = &session->desk;
    bool late = answers_are_late(session);
    uint64_t unacknowledged = 0;
    if (!wf_list_empty(&desk->todo_connections) || desk->outbound_pool.taken > 0 || (desk->closes > 0 && !late) ||
        session->loss.downs_due > 0 || !wf_resend_all_idle(session))
        return false;
    for (int traffic = 0; traffic < WF_CLASSES; traffic++)
        if (!wf_list_empty(&desk->todo_inbounds[traffic]) || !wf_list_empty(&desk->todo_outbounds[traffic]))
            return false;
    WF_LINES_EACH (channel, &session->lines) {
        unacknowledged += channel->tx.window.spent_frames - channel->tx.acknowledged;
    }
    return unacknowledged <= (late ? desk->closes : 0); /* no more than the CLOSE frames */
}

static void cancel_all(struct wf_session *session, bool here_too)
{
    WF_LIST_EACH (link, following, &session->book.requests) {
        struct weft_request *request = WF_CONTAINER(link, struct weft_request, link);
        if (request->kind != WF_REQUEST_PEER_CLOSE && (here_too || !wf_match_is_here(request)))
            wf_request_cancel(request, -ESHUTDOWN);
    }
}

/* The BYE on a channel acknowledges the frames sent on it. Only after the last BYE is it known which frames the peer
 * has taken. */
static bool goodbye_on_all(const struct wf_session *session)
{
    WF_LINES_EACH (channel, &session->lines) {
        if (channel->up && !channel->bye_seen)
            return false;
    }
    return true;
}

void wf_session_check_close(struct wf_session *session)
{
    if (session->guard.state != WF_SESSION_UP || !(session->guard.peer_closing || session->life.closing))
        return;
    if (session->guard.peer_closing && !goodbye_on_all(session))
        return;
    if (session->guard.peer_closing) {
        wf_match_notes(&session->desk); /* the last operation of the peer may have ended with its goodbye */
        if (session->guard.state != WF_SESSION_UP)
            return;
        cancel_all(session, false); /* the peer sends and takes no more; messages that are here still complete */
    } else if (!everything_told(session)) {
        return;
    }
    WF_REACHED_IF(session->guard.peer_closing, "session UP: BYE(done) of the peer on every channel");
    WF_REACHED_IF(!session->guard.peer_closing, "session UP: close by the user and everything acknowledged");
    wf_guard_enter(&session->guard, WF_SESSION_CLOSING);
    session->life.closing_ns = wf_world_now(session->guard.world);
    wf_guard_visit(&session->guard, 0);
    WF_LINES_EACH (channel, &session->lines) {
        wf_channel_say_bye(channel);
    }
    wf_kicks_all(&session->kicks, NULL);
    wf_guard_hold(&session->guard); /* so that a session without channels ends here too */
    wf_guard_let_go(&session->guard);
}

int64_t wf_session_check_answers(struct wf_session *session, int64_t now_ns)
{
    if (!session->life.closing || session->desk.closes == 0)
        return WF_NEVER;
    if (now_ns < session->life.answers_ns)
        return session->life.answers_ns;
    wf_session_check_close(session);
    return WF_NEVER;
}

void wf_session_peer_closed(struct wf_session *session)
{
    if (!session->life.closing) {
        wf_guard_fail(&session->guard, -ESHUTDOWN, "%s has closed the session", session->peer.name);
        return;
    }
    wf_guard_peer_closes(&session->guard); /* both sides close: no error */
    wf_session_tell(session);
    wf_session_check_close(session);
}

/* Those on which the peer has sent. Of the others it awaits nothing. */
static void close_connections(struct wf_session *session)
{
    WF_DESK_EACH_CONNECTION (connection, &session->desk) {
        if (connection->state == WF_CONNECTION_OPEN && connection->highest > 0)
            wf_connection_start_close(connection);
    }
}

void wf_session_start_close(struct wf_session *session)
{
    cancel_all(session, true);
    if (session->guard.state == WF_SESSION_UP) {
        WF_REACHED("session UP: close by the user");
        session->life.answers_ns = wf_world_now(session->guard.world) + ANSWERS_NS;
        wf_guard_visit(&session->guard, session->life.answers_ns);
        close_connections(session);
    }
    wf_session_check_close(session);
    wf_kicks_all(&session->kicks, NULL);
}

/* No answer, or the user does not wait for one: failing the session cuts its channels, and that ends the request. */
static void cancel(struct weft_request *request, int status)
{
    struct wf_session *session = WF_CONTAINER(request->book, struct wf_session, book);
    if (status == -ETIMEDOUT)
        wf_guard_fail(&session->guard, status, "%s did not answer while its session was closed", session->peer.name);
    else
        wf_guard_fail(&session->guard, status, "the session with %s was cut while it was closed: %s",
                      session->peer.name, wf_strerror(status));
}

static void describe(const struct weft_request *request, char *text, size_t room)
{
    snprintf(text, room, "%s", request->book->guard->error.text);
}

const struct wf_request_ops wf_closing_ops = {.cancel = cancel, .describe = describe};

void wf_session_dismiss(struct wf_session *session, struct weft_request *closing)
{
    session->life.dismissed = true;
    session->life.closing = closing;
    if (session->guard.state == WF_SESSION_DEAD)
        leave_endpoints(session);
}
