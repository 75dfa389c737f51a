/* The public calls that make peers: connecting and accepting, waiting or not. */
#include "core/calls/setup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/brackets.h"
#include "core/calls/context.h"
#include "core/ground/refusal.h"
#include "core/join/door.h"
#include "core/rail/address.h"
#include "core/request/book.h"
#include "core/request/lobby.h"
#include "core/request/queue.h"
#include "core/request/request.h"
#include "core/session/session.h"

int wf_setup_check(const struct weft_context *context, const struct weft_options *options, uint32_t allowed,
                   const char *call, struct weft_error *err)
{
    struct wf_status *status = wf_status_of(err);
    if (!options)
        return 0;
    if (options->flags & ~allowed)
        return wf_fail(status, -EINVAL, "%s() does not know the flags 0x%x: use 0x%x or 0", call,
                       options->flags & ~allowed, allowed);
    if (options->timeout_ms < 0)
        return wf_fail(status, -EINVAL, "%s() with timeout_ms = %d: use 0 for no deadline, or milliseconds", call,
                       options->timeout_ms);
    if (options->registration)
        return wf_fail(status, -EINVAL, "%s() moves no memory: leave registration NULL", call);
    if (options->queue && options->queue->waiting != &context->waiting)
        return wf_fail(status, -EINVAL, "%s() with a queue of another context", call);
    return 0;
}

/* A call with this address has failed. "::1:8555" is an address, and may not have been meant as one. Returns `code`. */
static int suspect_address(const char *address, int code, struct wf_status *status)
{
    char meant[128];
    if (status && wf_brackets_meant(address, meant, sizeof meant) && !strstr(status->text, meant))
        wf_fail(status, code, "%.180s (is %s meant?)", status->text, meant);
    return code;
}

int weft_listen(struct weft_context *context, const char *address, struct weft_error *err)
{
    if (WF_IS_NULL(wf_status_of(err), context) || WF_IS_NULL(wf_status_of(err), address))
        return -EINVAL;
    struct sockaddr_storage parsed;
    int result = wf_address_parse(address, context->world.tuning.port, true, &parsed, wf_status_of(err));
    if (result == 0)
        result = wf_door_listen(context->door, &parsed, wf_status_of(err));
    return result < 0 ? suspect_address(address, result, wf_status_of(err)) : 0;
}

int weft_listen_port(const struct weft_context *context)
{
    if (WF_IS_NULL(wf_refusal(), context))
        return -EINVAL;
    if (context->door->port)
        return context->door->port;
    wf_fail(wf_refusal(), -ENOTCONN, "the context does not listen: call weft_listen() first");
    return wf_refused(__func__, -ENOTCONN);
}

/* --- connecting --- */

/* What a CONNECT request has as its detail. Owner: the door until the dial has ended, then the request. */
struct connecting {
    struct wf_link link; /* wf_lobby.details */
    struct weft_context *context;
    struct weft_request *request;
    struct wf_dial dial;
    struct wf_status status; /* why it failed */
};

/* The dial has ended: so does its request. The door's thread. */
static void dial_ended(struct wf_dial *dial)
{
    struct connecting *connecting = WF_CONTAINER(dial, struct connecting, dial);
    struct weft_context *context = connecting->context;
    struct wf_lobby *lobby = &context->sessions.lobby;
    connecting->status = dial->status;
    if (dial->status.code < 0)
        suspect_address(dial->name_text, dial->status.code, &connecting->status);
    wf_lobby_lock(lobby);
    wf_door_forget_wish(context->door, dial);
    if (dial->status.code == 0)
        connecting->request->peer = &dial->session->peer;
    wf_request_complete(connecting->request, dial->status.code, 0);
    wf_lobby_unlock(lobby);
}

/* The request ends once the door has ended what the dial has begun. */
static void cancel_connect(struct weft_request *request, int status)
{
    struct connecting *connecting = request->detail;
    struct wf_status why = {0};
    wf_fail(&why, status, "the connect to %.200s was given up: %s", connecting->dial.name_text,
            status == -ESHUTDOWN ? "the context is being destroyed" : wf_strerror(status));
    wf_door_give_up(connecting->context->door, &connecting->dial, &why);
}

static void describe_connect(const struct weft_request *request, char *text, size_t room)
{
    const struct connecting *connecting = request->detail;
    snprintf(text, room, "%s", connecting->status.text);
}

/* The user has the peer. */
static void peer_collected(struct weft_request *request)
{
    wf_session_hand_over(request->peer->session);
}

static void connect_gone(struct weft_request *request)
{
    struct connecting *connecting = request->detail;
    wf_link_remove(&connecting->link);
    free(connecting);
}

static const struct wf_request_ops connect_ops = {
    .cancel = cancel_connect, .describe = describe_connect, .collected = peer_collected, .gone = connect_gone};

/* `timeout_ms` as in weft_connect(). */
static int start_connect(struct weft_context *context, const char *address, int timeout_ms,
                         const struct weft_options *options, struct weft_request **out, struct weft_error *err)
{
    struct wf_lobby *lobby = &context->sessions.lobby;
    struct connecting *connecting = calloc(1, sizeof *connecting);
    if (!connecting)
        return wf_fail(wf_status_of(err), -ENOMEM, "no memory to connect to %.200s", address);
    int result = wf_dial_init(&connecting->dial, &context->world, address, timeout_ms, wf_status_of(err));
    if (result < 0) {
        free(connecting);
        return result;
    }
    connecting->context = context;
    connecting->dial.ended = dial_ended;
    wf_lobby_lock(lobby);
    struct weft_request *request = wf_request_take(&lobby->book, WF_REQUEST_CONNECT, &connect_ops);
    if (request) {
        connecting->request = request;
        request->detail = connecting;
        wf_list_push_back(&lobby->details, &connecting->link);
        /* The dial has its own deadline, and says what it has met with until then. */
        if (options)
            request->user_data = options->user_data;
        if (options && options->queue)
            wf_queue_attach(options->queue, request);
        *out = request; /* before the dial begins: it may end, and another thread poll it, before this call returns */
        wf_door_dial(context->door, &connecting->dial);
    }
    wf_guard_unlock(&lobby->guard);
    if (request)
        return 0;
    free(connecting);
    return wf_fail(wf_status_of(err), -ENOMEM, "no memory to connect to %.200s", address);
}

int weft_connect_start(struct weft_context *context, const char *address, const struct weft_options *options,
                       struct weft_request **out, struct weft_error *err)
{
    if (WF_IS_NULL(wf_status_of(err), context) || WF_IS_NULL(wf_status_of(err), address) ||
        WF_IS_NULL(wf_status_of(err), out))
        return -EINVAL;
    int result = wf_setup_check(context, options, 0, "weft_connect_start", err);
    if (result < 0)
        return result;
    int timeout_ms = options && options->timeout_ms > 0 ? options->timeout_ms : -1;
    return start_connect(context, address, timeout_ms, options, out, err);
}

/* Gives the text of a request that has failed to the caller. */
static int report(const struct weft_completion *completion, struct weft_error *err)
{
    return wf_fail(wf_status_of(err), completion->status, "%s", completion->text);
}

int weft_connect(struct weft_context *context, const char *address, int timeout_ms, struct weft_peer **out,
                 struct weft_error *err)
{
    if (WF_IS_NULL(wf_status_of(err), context) || WF_IS_NULL(wf_status_of(err), address) ||
        WF_IS_NULL(wf_status_of(err), out))
        return -EINVAL;
    struct weft_request *request;
    struct weft_completion completion;
    int result = start_connect(context, address, timeout_ms, NULL, &request, err);
    if (result < 0)
        return result;
    weft_wait(request, -1, &completion); /* the dial ends at its deadline */
    if (completion.status < 0)
        return report(&completion, err);
    *out = completion.peer;
    return 0;
}

/* --- accepting --- */

static void cancel_accept(struct weft_request *request, int status)
{
    wf_request_complete(request, status, 0);
}

static void describe_accept(const struct weft_request *request, char *text, size_t room)
{
    if (request->status == -ETIMEDOUT)
        snprintf(text, room, "no peer connected before the deadline");
    else
        snprintf(text, room, "waiting for a peer to connect: %s", wf_strerror(request->status));
}

static const struct wf_request_ops accept_ops = {
    .cancel = cancel_accept, .describe = describe_accept, .collected = peer_collected};

static int start_accept(struct weft_context *context, const struct weft_options *options, struct weft_request **out,
                        struct weft_error *err)
{
    struct wf_lobby *lobby = &context->sessions.lobby;
    pthread_mutex_lock(&context->world.lock);
    wf_lobby_lock(lobby);
    struct weft_request *request = wf_request_take(&lobby->book, WF_REQUEST_PEER_ACCEPT, &accept_ops);
    wf_guard_unlock(&lobby->guard);
    struct wf_session *session = request ? wf_sessions_take(&context->sessions) : NULL;
    wf_lobby_lock(lobby);
    if (request)
        *out = request;
    if (request)
        wf_request_adopt(request, options);
    if (session) {
        request->peer = &session->peer;
        wf_request_complete(request, 0, 0);
    } else if (request) {
        wf_list_push_back(&lobby->acceptors, &request->match_link);
    }
    wf_guard_unlock(&lobby->guard);
    pthread_mutex_unlock(&context->world.lock);
    return request ? 0 : wf_fail(wf_status_of(err), -ENOMEM, "no memory to wait for a peer");
}

int weft_accept_start(struct weft_context *context, const struct weft_options *options, struct weft_request **out,
                      struct weft_error *err)
{
    if (WF_IS_NULL(wf_status_of(err), context) || WF_IS_NULL(wf_status_of(err), out))
        return -EINVAL;
    int result = wf_setup_check(context, options, 0, "weft_accept_start", err);
    return result < 0 ? result : start_accept(context, options, out, err);
}

int weft_accept(struct weft_context *context, int timeout_ms, struct weft_peer **out, struct weft_error *err)
{
    if (WF_IS_NULL(wf_status_of(err), context) || WF_IS_NULL(wf_status_of(err), out))
        return -EINVAL;
    struct weft_request *request;
    struct weft_completion completion;
    int result = start_accept(context, NULL, &request, err);
    if (result < 0)
        return result;
    result = wf_request_finish(request, timeout_ms, &completion);
    if (result == -ETIMEDOUT)
        return wf_fail(wf_status_of(err), result, "no peer connected within %.1f s", (double)timeout_ms / 1000);
    if (result < 0)
        return report(&completion, err);
    *out = completion.peer;
    return 0;
}
