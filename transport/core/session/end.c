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

/* Nothing can touch any request's memory any more: every one that is left ends now. Session lock held. */
static void bury(struct wf_session *session)
{
    int status = session->state == WF_SESSION_FAILED ? session->error.code : -ESHUTDOWN;
    bool clean = session->state == WF_SESSION_CLOSING;
    WF_REACHED_IF(clean, "session CLOSING: every channel has ended");
    WF_REACHED_IF(!clean, "session FAILED: channels gone");
    if (session->error.code == 0)
        wf_fail(&session->error, -ESHUTDOWN, "the session with %s is closed", session->peer.name);
    session->state = WF_SESSION_DEAD;
    wf_regions_release(session);
    wf_device_shares_fini(session);
    WF_LIST_EACH (link, following, &session->requests) {
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
            session->closing = NULL;
        bool wished = request->kind == WF_REQUEST_PEER_CLOSE || request->kind == WF_REQUEST_CLOSE;
        wf_request_complete(request, wished && clean ? 0 : status, 0);
    }
    wf_door_visit_by(session->context->door, 0);
}

void wf_session_half_gone(struct wf_session *session)
{
    session->halves -= 1;
    bool ending = session->state == WF_SESSION_FAILED || session->state == WF_SESSION_CLOSING;
    if (session->halves == 0 && ending)
        bury(session);
}

/* Of those that nobody knows there may be as many as strangers like to make. */
static void tell_why(struct wf_session *session)
{
    struct weft_context *context = session->context;
    if (session->known) {
        wf_log(&context->log, WF_LOG_WARN, "%s", session->error.text);
        return;
    }
    pthread_mutex_lock(&context->log_lock);
    wf_log_limited(&context->log, &context->unknown_log, wf_context_now(context), WF_LOG_WARN, "%s",
                   session->error.text);
    pthread_mutex_unlock(&context->log_lock);
}

static void start_failing(struct wf_session *session)
{
    if (!session->dismissed)
        tell_why(session);
    session->state = WF_SESSION_FAILED;
    WF_REACHED("session FAILED: entry");
    for (int i = 0; i < session->channel_count; i++)
        if (session->channels[i])
            session->channels[i]->kill = true;
    wf_session_kick_all(session, NULL);
    session->halves += 1; /* so that a session without channels ends here too */
    wf_session_half_gone(session);
}

void wf_session_fail(struct wf_session *session, int code, const char *format, ...)
{
    if (session->state == WF_SESSION_FAILED || session->state == WF_SESSION_DEAD)
        return;
    va_list arguments;
    va_start(arguments, format);
    session->error.code = code;
    vsnprintf(session->error.text, sizeof session->error.text, format, arguments);
    va_end(arguments);
    start_failing(session);
}

int wf_session_usable(const struct wf_session *session)
{
    if (session->state == WF_SESSION_FAILED || session->state == WF_SESSION_DEAD)
        return session->error.code;
    if (session->state != WF_SESSION_UP || session->peer_closing || session->closing)
        return -ESHUTDOWN;
    return 0;
}

static bool everything_told(const struct wf_session *session)
{
    if (!wf_list_empty(&session->todo_connections) || !wf_list_empty(&session->todo_inbounds) ||
        !wf_list_empty(&session->todo_outbounds) || session->outbound_pool.taken > 0 || session->downs_due > 0 ||
        !wf_resend_idle(session, WF_CHANNEL_EXPRESS) || !wf_resend_idle(session, WF_CHANNEL_BULK))
        return false;
    for (int i = 0; i < session->channel_count; i++) {
        if (!session->channels[i])
            continue;
        const struct wf_tx *tx = &session->channels[i]->tx;
        if (tx->acknowledged != tx->window.spent_frames)
            return false;
    }
    return true;
}

static void cancel_all(struct wf_session *session, bool here_too)
{
    WF_LIST_EACH (link, following, &session->requests) {
        struct weft_request *request = WF_CONTAINER(link, struct weft_request, link);
        if (request->kind != WF_REQUEST_PEER_CLOSE && (here_too || !wf_request_is_here(request)))
            wf_request_cancel(request, -ESHUTDOWN);
    }
}

/* Each channel's BYE acknowledges what came on it: only after the last is it certain what the peer has taken. */
static bool goodbye_on_all(const struct wf_session *session)
{
    for (int i = 0; i < session->channel_count; i++)
        if (session->channels[i] && session->channels[i]->up && !session->channels[i]->bye_seen)
            return false;
    return true;
}

void wf_session_check_close(struct wf_session *session)
{
    if (session->state != WF_SESSION_UP || !(session->peer_closing || session->closing))
        return;
    if (session->peer_closing && !goodbye_on_all(session))
        return;
    if (session->peer_closing)
        cancel_all(session, false); /* the peer has nothing to say any more and takes nothing; it did send these */
    else if (!everything_told(session))
        return;
    WF_REACHED_IF(session->peer_closing, "session UP: BYE(done) of the peer on every channel");
    WF_REACHED_IF(!session->peer_closing, "session UP: close by the user and everything acknowledged");
    session->state = WF_SESSION_CLOSING;
    session->closing_ns = wf_context_now(session->context);
    wf_door_visit_by(session->context->door, 0);
    for (int i = 0; i < session->channel_count; i++)
        if (session->channels[i])
            session->channels[i]->tx.bye_due = session->channels[i]->up;
    wf_session_kick_all(session, NULL);
    session->halves += 1; /* so that a session without channels ends here too */
    wf_session_half_gone(session);
}

void wf_session_peer_closed(struct wf_session *session)
{
    if (!session->closing) {
        wf_session_fail(session, -ESHUTDOWN, "%s has closed the session", session->peer.name);
        return;
    }
    session->peer_closing = true; /* so have we */
    wf_session_check_close(session);
}

void wf_session_start_close(struct wf_session *session)
{
    cancel_all(session, true);
    wf_session_check_close(session);
    wf_session_kick_all(session, NULL);
}
