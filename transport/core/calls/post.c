/* weft_send(), weft_recv() and weft_recv_notification(). */
#include "core/calls/post.h"

#include <errno.h>

#include "core/calls/context.h"
#include "core/device/registration.h"
#include "core/device/turn.h"
#include "core/message/connection.h"
#include "core/message/match.h"
#include "core/message/outbound.h"
#include "core/message/turn_go.h"
#include "core/request/queue.h"
#include "core/request/request.h"
#include "core/session/session.h"

/* Finds the registration of device memory, for options that name none. -EFAULT: device memory without a registration.
 * The CPU must not touch it, and the user could free it during the operation. */
static int find_registration(struct weft_context *context, const void *buffer, uint64_t length,
                             struct wf_message_memory *memory)
{
    memory->registration = wf_registration_covering(&context->registry, buffer, length);
    if (!memory->registration && wf_devices_own(&context->devices, buffer))
        return -EFAULT;
    return 0;
}

int wf_message_check(struct weft_context *context, const void *buffer, uint64_t length,
                     const struct weft_options *options, uint32_t allowed, struct wf_message_memory *memory)
{
    int result = 0;
    *memory = (struct wf_message_memory){0};
    if (options && options->queue && options->queue->waiting != &context->waiting)
        return -EINVAL;
    if (options && options->registration && options->registration->context != context)
        return -EINVAL;
    if ((!buffer && length > 0) || length > INT64_MAX)
        return -EINVAL;
    if (options && ((options->flags & ~allowed) || options->timeout_ms < 0 || options->reserved != 0))
        return -EINVAL;
    if (options && options->registration) {
        memory->registration = options->registration;
        result = wf_registration_hold(options->registration, buffer, length);
        if (result < 0)
            return result;
    } else if (length > 0 && wf_devices_any(&context->devices)) {
        result = find_registration(context, buffer, length, memory);
    }
    if (result == 0 && memory->registration && length > 0)
        memory->device = memory->registration->device;
    if (result == 0 && memory->device && atomic_load(&memory->device->lost)) {
        wf_registration_release(memory->registration);
        return -ENODEV;
    }
    if (result == 0 && options && (options->flags & WEFT_ON_STREAM))
        result = wf_turn_take(memory->device, options->stream, &memory->turn);
    if (result < 0 && memory->registration)
        wf_registration_release(memory->registration);
    return result;
}

static const struct wf_request_ops *ops_of(enum wf_request_kind kind)
{
    return kind == WF_REQUEST_RECV || kind == WF_REQUEST_NOTE ? &wf_receive_ops : &wf_outgoing_ops;
}

static void begin_turn(struct weft_connection *connection, struct wf_turn *turn, struct weft_request *request)
{
    request->turn = turn;
    wf_turn_begin(turn, connection->desk->shares, request, wf_turn_go);
}

struct weft_request *wf_message_prepare(struct weft_connection *connection, enum wf_request_kind kind, void *buffer,
                                        uint64_t length, uint64_t tag, const struct weft_options *options,
                                        const struct wf_message_memory *memory)
{
    struct weft_request *request = wf_request_take(connection->desk->book, kind, ops_of(kind));
    if (!request)
        return NULL;
    request->connection = connection;
    request->remote_endpoint = connection->remote_endpoint;
    request->buffer = buffer;
    request->length = length;
    wf_request_count_large(request);
    request->tag = tag;
    request->registration = memory->registration;
    request->device = memory->device;
    if (memory->turn)
        begin_turn(connection, memory->turn, request);
    if (options) {
        request->flags = options->flags;
        request->user_data = options->user_data;
        if (options->queue)
            wf_queue_attach(options->queue, request);
        wf_request_arm(request, options->timeout_ms);
    }
    return request;
}

int wf_message_usable(const struct weft_connection *connection, bool sending)
{
    int result = wf_session_usable(wf_session_at(connection->desk));
    if (result < 0)
        return result;
    if (connection->state != WF_CONNECTION_OPEN || (sending && connection->close_seen))
        return -ESHUTDOWN;
    return 0;
}

/* A call of the user that posts an operation, and its result. */
struct posting {
    struct weft_connection *connection;
    void *buffer;
    uint64_t length, tag;
    const struct weft_options *options;
    struct wf_message_memory memory;
    struct weft_request *request;
    struct wf_outbound *copied; /* a small message that is in no queue yet, or NULL */
};

static struct weft_request *prepare(const struct posting *posting, enum wf_request_kind kind)
{
    return wf_message_prepare(posting->connection, kind, posting->buffer, posting->length, posting->tag,
                              posting->options, &posting->memory);
}

static int post_send(struct posting *posting)
{
    int result = wf_message_usable(posting->connection, true);
    if (result < 0)
        return result;
    struct weft_request *request = posting->request = prepare(posting, WF_REQUEST_SEND);
    if (!request)
        return -EAGAIN;
    struct wf_outbound *outbound = wf_outbound_begin(posting->connection, request);
    if (!outbound) {
        request->registration = NULL;
        wf_request_drop(request);
        return -ENOMEM;
    }
    if (request->done_early)
        posting->copied = outbound;
    else
        wf_outbound_queue(outbound);
    return 0;
}

/* Has the peer closed the session, while messages of it lie here unreceived? They can still be received: the peer says
 * goodbye only after all it sent has arrived. */
static bool only_leftovers(const struct weft_connection *connection)
{
    const struct wf_session *session = wf_session_at(connection->desk);
    return session->guard.peer_closing && !session->life.closing && session->guard.state != WF_SESSION_FAILED &&
           connection->state == WF_CONNECTION_OPEN &&
           (!wf_list_empty(&connection->unexpected) || !wf_list_empty(&connection->notes));
}

static int post_a_receive(struct posting *posting, enum wf_request_kind kind)
{
    int result = wf_message_usable(posting->connection, false);
    if (result < 0 && !only_leftovers(posting->connection))
        return result;
    posting->request = prepare(posting, kind);
    if (!posting->request)
        return -EAGAIN;
    wf_match_receive(posting->request);
    return 0;
}

static int post_receive(struct posting *posting)
{
    return post_a_receive(posting, WF_REQUEST_RECV);
}

static int post_note_receive(struct posting *posting)
{
    return post_a_receive(posting, WF_REQUEST_NOTE);
}

static int post_message(int (*function)(struct posting *posting), struct posting *posting, uint32_t allowed,
                        struct weft_request **out)
{
    struct wf_session *session = wf_session_at(posting->connection->desk);
    struct wf_message_memory *memory = &posting->memory;
    int result =
        wf_message_check(wf_context_of(session), posting->buffer, posting->length, posting->options, allowed, memory);
    if (result < 0)
        return result;
    wf_session_lock(session);
    result = memory->turn ? memory->turn->refusal : 0;
    if (result == 0)
        result = function(posting);
    if (result == 0)
        *out = posting->request;
    wf_message_posted(session, result, memory, posting->copied);
    return result;
}

void wf_message_posted(struct wf_session *session, int result, const struct wf_message_memory *memory,
                       struct wf_outbound *copied)
{
    struct wf_crew *crew = session->sessions->crew;
    if (result < 0 && memory->turn)
        wf_turn_drop(memory->turn, &session->shares);
    if (copied && (!wf_list_empty(&copied->connection->pending) ||
                   !wf_session_has_idle_express(session, copied->connection->traffic))) {
        wf_outbound_queue(copied);
        copied = NULL;
    }
    if (copied || wf_session_has_work(session))
        wf_session_unlock_and_push(session, copied);
    else
        wf_session_unlock(session);
    if (result < 0 && memory->registration)
        wf_registration_release(memory->registration);
    if (atomic_load_explicit(&crew->large_out, memory_order_relaxed) > 0)
        wf_worker_stay_near(crew->workers[0]);
}

int weft_send(struct weft_connection *connection, const void *buffer, uint64_t length, uint64_t tag,
              const struct weft_options *options, struct weft_request **out)
{
    struct posting posting = {.connection = connection,
                              .buffer = (void *)(uintptr_t)buffer,
                              .length = length,
                              .tag = tag,
                              .options = options};
    return post_message(post_send, &posting, WEFT_ON_STREAM, out);
}

int weft_recv(struct weft_connection *connection, void *buffer, uint64_t capacity, uint64_t tag,
              const struct weft_options *options, struct weft_request **out)
{
    struct posting posting = {
        .connection = connection, .buffer = buffer, .length = capacity, .tag = tag, .options = options};
    return post_message(post_receive, &posting, WEFT_ANY_TAG | WEFT_ON_STREAM, out);
}

int weft_recv_notification(struct weft_connection *connection, void *buffer, uint64_t capacity,
                           const struct weft_options *options, struct weft_request **out)
{
    struct posting posting = {.connection = connection, .buffer = buffer, .length = capacity, .options = options};
    return post_message(post_note_receive, &posting, 0, out);
}
