/* How a session ends: closed by one of the two, or failed; and what becomes of the requests that it finds. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "core/ground/reached.h"
#include "core/join/door.h"
#include "core/message/connection.h"
#include "core/message/outbound.h"
#include "core/message/served.h"
#include "core/request/request.h"
#include "core/session/session.h"
#include "core/calls/context.h"

/* Nothing can touch any request's memory any more: every one that is left ends now. Session lock held. */
static void bury(struct wf_session *session)
{
    int status = session->guard.state == WF_SESSION_FAILED ? session->guard.error.code : -ESHUTDOWN;
    bool clean = session->guard.state == WF_SESSION_CLOSING;
    WF_REACHED_IF(clean, "session CLOSING: every channel has ended");
    WF_REACHED_IF(!clean, "session FAILED: channels gone");
    if (session->guard.error.code == 0)
        wf_fail(&session->guard.error, -ESHUTDOWN, "the session with %s is closed", session->peer.name);
    session->guard.state = WF_SESSION_DEAD;
    wf_regions_release(session);
    wf_device_shares_fini(session);
    WF_LIST_EACH (link, following, &session->book.requests) {
        struct weft_request *request = WF_CONTAINER(link, struct weft_request, link);
        if (clean && wf_request_is_here(request))
            continue; /* its turn in a stream is still to come, and ends it */
        if (request->inbound)
            request->inbound->request = NULL;
        if (request->outbound)
            request->outbound->request = NULL;
        if (request->note)
            request->note->request = NULL;
        if (request->connection && request->connection->waiting == request)
            request->connection->waiting = NULL;
        if (request->kind == WF_REQUEST_PEER_CLOSE)
            session->life.closing = NULL;
        bool wished = request->kind == WF_REQUEST_PEER_CLOSE || request->kind == WF_REQUEST_CLOSE;
        wf_request_complete(request, wished && clean ? 0 : status, 0);
    }
    wf_alarm_by(&session->context->world.alarm, 0);
}

void wf_session_half_gone(struct wf_session *session)
{
    session->guard.holders -= 1;
    bool ending = session->guard.state == WF_SESSION_FAILED || session->guard.state == WF_SESSION_CLOSING;
    if (session->guard.holders == 0 && ending)
        bury(session);
}

/* Of those that nobody knows there may be as many as strangers like to make. */
static void tell_why(struct wf_session *session)
{
    struct weft_context *context = session->context;
    if (session->known) {
        wf_log(&context->world.log, WF_LOG_WARN, "%s", session->guard.error.text);
        return;
    }
    pthread_mutex_lock(&context->sessions.log_lock);
    wf_log_limited(&context->world.log, &context->sessions.unknown_log, wf_world_now(&context->world), WF_LOG_WARN,
                   "%s", session->guard.error.text);
    pthread_mutex_unlock(&context->sessions.log_lock);
}

static void start_failing(struct wf_session *session)
{
    if (!session->life.dismissed)
        tell_why(session);
    session->guard.state = WF_SESSION_FAILED;
    WF_REACHED("session FAILED: entry");
    for (int i = 0; i < session->lines.channel_count; i++)
        if (session->lines.channels[i])
            session->lines.channels[i]->kill = true;
    wf_session_kick_all(session, NULL);
    session->guard.holders += 1; /* so that a session without channels ends here too */
    wf_session_half_gone(session);
}

void wf_session_fail(struct wf_session *session, int code, const char *format, ...)
{
    if (session->guard.state == WF_SESSION_FAILED || session->guard.state == WF_SESSION_DEAD)
        return;
    va_list arguments;
    va_start(arguments, format);
    session->guard.error.code = code;
    vsnprintf(session->guard.error.text, sizeof session->guard.error.text, format, arguments);
    va_end(arguments);
    start_failing(session);
}

int wf_session_usable(const struct wf_session *session)
{
    if (session->guard.state == WF_SESSION_FAILED || session->guard.state == WF_SESSION_DEAD)
        return session->guard.error.code;
    if (session->guard.state != WF_SESSION_UP || session->guard.peer_closing || session->life.closing)
        return -ESHUTDOWN;
    return 0;
}

static bool everything_told(const struct wf_session *session)
{
    if (!wf_list_empty(&session->desk.todo_connections) || !wf_list_empty(&session->desk.todo_inbounds) ||
        !wf_list_empty(&session->desk.todo_outbounds) || session->desk.outbound_pool.taken > 0 ||
        session->loss.downs_due > 0 || !wf_resend_idle(session, WF_CHANNEL_EXPRESS) ||
        !wf_resend_idle(session, WF_CHANNEL_BULK))
        return false;
    for (int i = 0; i < session->lines.channel_count; i++) {
        if (!session->lines.channels[i])
            continue;
        const struct wf_tx *tx = &session->lines.channels[i]->tx;
        if (tx->acknowledged != tx->window.spent_frames)
            return false;
    }
    return true;
}

static void cancel_all(struct wf_session *session, bool here_too)
{
    WF_LIST_EACH (link, following, &session->book.requests) {
        struct weft_request *request = WF_CONTAINER(link, struct weft_request, link);
        if (request->kind != WF_REQUEST_PEER_CLOSE && (here_too || !wf_request_is_here(request)))
            wf_request_cancel(request, -ESHUTDOWN);
    }
}

/* Each channel's BYE acknowledges what came on it: only after the last is it certain what the peer has taken. */
static bool goodbye_on_all(const struct wf_session *session)
{
    for (int i = 0; i < session->lines.channel_count; i++)
        if (session->lines.channels[i] && session->lines.channels[i]->up && !session->lines.channels[i]->bye_seen)
            return false;
    return true;
}

void wf_session_check_close(struct wf_session *session)
{
    if (session->guard.state != WF_SESSION_UP || !(session->guard.peer_closing || session->life.closing))
        return;
    if (session->guard.peer_closing && !goodbye_on_all(session))
        return;
    if (session->guard.peer_closing)
        cancel_all(session, false); /* the peer has nothing to say any more and takes nothing; it did send these */
    else if (!everything_told(session))
        return;
    WF_REACHED_IF(session->guard.peer_closing, "session UP: BYE(done) of the peer on every channel");
    WF_REACHED_IF(!session->guard.peer_closing, "session UP: close by the user and everything acknowledged");
    session->guard.state = WF_SESSION_CLOSING;
    session->life.closing_ns = wf_world_now(&session->context->world);
    wf_alarm_by(&session->context->world.alarm, 0);
    for (int i = 0; i < session->lines.channel_count; i++)
        if (session->lines.channels[i])
            session->lines.channels[i]->tx.bye_due = session->lines.channels[i]->up;
    wf_session_kick_all(session, NULL);
    session->guard.holders += 1; /* so that a session without channels ends here too */
    wf_session_half_gone(session);
}

void wf_session_peer_closed(struct wf_session *session)
{
    if (!session->life.closing) {
        wf_session_fail(session, -ESHUTDOWN, "%s has closed the session", session->peer.name);
        return;
    }
    session->guard.peer_closing = true; /* so have we */
    wf_session_check_close(session);
}

void wf_session_start_close(struct wf_session *session)
{
    cancel_all(session, true);
    wf_session_check_close(session);
    wf_session_kick_all(session, NULL);
}
