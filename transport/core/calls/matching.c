/* weft_probe(): which message a receive would take; and receives from any connection of an endpoint. */
#include <errno.h>

#include "core/calls/context.h"
#include "core/calls/post.h"
#include "core/device/registration.h"
#include "core/ground/refusal.h"
#include "core/message/any.h"
#include "core/message/connection.h"
#include "core/message/inbound.h"
#include "core/message/match.h"
#include "core/request/book.h"
#include "core/request/lobby.h"
#include "core/request/wait.h"
#include "core/session/session.h"

/* A mask is there only with its flag: the options may be of a program that knows no such field. */
static uint64_t mask_of(const struct weft_options *options)
{
    return wf_match_mask(options->flags, options->flags & WEFT_TAG_MASK ? options->tag_mask : 0);
}

/* The tags that a caller asks for. -EINVAL: the options ask for something else, too. */
static int read_tags(const struct weft_options *options, uint64_t *mask)
{
    *mask = options ? mask_of(options) : WF_MASK_EXACT;
    if (options && (options->flags & ~WF_TAG_FLAGS))
        return wf_fail(wf_refusal(), -EINVAL,
                       "options.flags is 0x%x: a probe takes WEFT_ANY_TAG or WEFT_TAG_MASK alone", options->flags);
    return wf_message_check_tags(options);
}

/* 1 and the message that a receive would take; 0: none yet; or why none will come. */
static int look(struct weft_connection *connection, uint64_t tag, uint64_t mask, struct weft_message *out)
{
    struct wf_session *session = wf_session_at(connection->desk);
    wf_session_lock(session);
    int result = wf_message_receivable(connection);
    const struct wf_inbound *inbound = result == 0 ? wf_match_waiting(connection, tag, mask) : NULL;
    if (inbound && wf_match_can_come(inbound)) {
        *out = (struct weft_message){.connection = connection, .tag = inbound->tag, .bytes = inbound->total};
        result = 1;
    } else if (result == 0) {
        result = wf_match_over(connection);
        if (session->guard.error.code < 0)
            wf_fail(wf_refusal(), result, "%s", session->guard.error.text);
    }
    wf_session_unlock(session);
    return result;
}

int weft_probe(struct weft_connection *connection, uint64_t tag, const struct weft_options *options,
               struct weft_message *out)
{
    uint64_t mask;
    if (WF_IS_NULL(wf_refusal(), connection) || WF_IS_NULL(wf_refusal(), out))
        return -EINVAL;
    int result = read_tags(options, &mask);
    if (result == 0)
        result = look(connection, tag, mask, out);
    if (result == 0) {
        wf_wait_progress(&wf_context_of(wf_session_at(connection->desk))->waiting);
        result = look(connection, tag, mask, out);
    }
    return result < 0 ? wf_refused(__func__, result) : result;
}

/* --- any connection of an endpoint --- */

/* From the first call on, connections of the endpoint stand in its line while messages wait on them. */
static void begin_line(struct weft_endpoint *endpoint)
{
    struct weft_context *context = endpoint->context;
    if (atomic_load(&endpoint->complete))
        return;
    pthread_mutex_lock(&context->world.lock); /* of two threads one waits until the line is complete */
    atomic_store(&endpoint->lined, true);
    WF_LIST_EACH (link, following, &context->sessions.all) {
        struct wf_session *session = WF_CONTAINER(link, struct wf_session, link);
        wf_session_lock(session);
        WF_DESK_EACH_CONNECTION (connection, &session->desk) {
            if (connection->endpoint == endpoint)
                wf_any_join_line(connection);
        }
        wf_session_unlock(session);
    }
    atomic_store(&endpoint->complete, true);
    pthread_mutex_unlock(&context->world.lock);
}

/* Messages that wait go to the receive, or to one that was posted before it. */
static void offer(struct weft_endpoint *endpoint, const struct wf_any_wish *wish)
{
    struct weft_connection *connection;
    struct wf_inbound *inbound;
    bool taken = true;
    while (taken && (connection = wf_any_find(endpoint, wish, &inbound))) {
        struct wf_guard *guard = connection->desk->guard;
        taken = wf_match_offer(inbound);
        guard->ops->kick(guard, NULL);
        wf_guard_unlock(guard);
    }
    /* A receive of another thread, which sleeps in the engine, may have ended. */
    wf_wait_ring(&endpoint->context->waiting);
}

/* Fills a request of the lobby. Its lock held. */
static void fill(struct weft_request *request, const struct weft_endpoint *endpoint, const struct weft_options *options,
                 const struct wf_message_memory *memory)
{
    request->remote_endpoint = endpoint->id;
    request->registration = memory->registration;
    request->device = memory->device;
    if (options)
        request->flags = options->flags;
    if (options && options->flags & WEFT_TAG_MASK)
        request->tag_mask = options->tag_mask;
    wf_request_adopt(request, options);
}

int weft_endpoint_recv(struct weft_endpoint *endpoint, void *buffer, uint64_t capacity, uint64_t tag,
                       const struct weft_options *options, struct weft_request **out)
{
    struct wf_message_memory memory;
    if (WF_IS_NULL(wf_refusal(), endpoint) || WF_IS_NULL(wf_refusal(), out))
        return -EINVAL;
    struct wf_lobby *lobby = endpoint->lobby;
    int result = wf_message_check_tags(options);
    if (result == 0)
        result = wf_message_check(endpoint->context, buffer, capacity, options, WF_TAG_FLAGS, &memory);
    if (result < 0)
        return wf_refused(__func__, result);
    begin_line(endpoint);
    wf_lobby_lock(lobby);
    struct weft_request *request = wf_request_take(&lobby->book, WF_REQUEST_RECV, &wf_any_ops);
    if (!request) {
        wf_lobby_unlock(lobby);
        if (memory.registration)
            wf_registration_release(memory.registration);
        wf_message_too_many(&lobby->book);
        return wf_refused(__func__, -EAGAIN);
    }
    request->buffer = buffer;
    request->length = capacity;
    request->tag = tag;
    fill(request, endpoint, options, &memory);
    bool offers = wf_any_post(endpoint, request);
    struct wf_any_wish wish = {.tag = tag,
                               .mask = wf_match_mask(request->flags, request->tag_mask),
                               .receive = request,
                               .order = request->order};
    *out = request;
    wf_lobby_unlock(lobby);
    if (offers)
        offer(endpoint, &wish);
    return 0;
}

static int look_in_line(struct weft_endpoint *endpoint, const struct wf_any_wish *wish, struct weft_message *out)
{
    struct wf_inbound *inbound;
    struct weft_connection *connection = wf_any_find(endpoint, wish, &inbound);
    if (!connection)
        return 0;
    *out = (struct weft_message){.connection = connection, .tag = inbound->tag, .bytes = inbound->total};
    wf_guard_unlock(connection->desk->guard);
    return 1;
}

int weft_endpoint_probe(struct weft_endpoint *endpoint, uint64_t tag, const struct weft_options *options,
                        struct weft_message *out)
{
    struct wf_any_wish wish = {.tag = tag};
    if (WF_IS_NULL(wf_refusal(), endpoint) || WF_IS_NULL(wf_refusal(), out))
        return -EINVAL;
    int result = read_tags(options, &wish.mask);
    if (result < 0)
        return wf_refused(__func__, result);
    begin_line(endpoint);
    if (look_in_line(endpoint, &wish, out) == 1)
        return 1;
    wf_wait_progress(&endpoint->context->waiting);
    return look_in_line(endpoint, &wish, out);
}
