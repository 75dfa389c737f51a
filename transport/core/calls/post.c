/* weft_send(), weft_recv(), weft_notify() and weft_recv_notification(). */
#include "core/calls/post.h"

#include <errno.h>

#include "core/calls/context.h"
#include "core/device/registration.h"
#include "core/device/turn.h"
#include "core/ground/refusal.h"
#include "core/message/connection.h"
#include "core/message/desk.h"
#include "core/message/match.h"
#include "core/message/outbound.h"
#include "core/message/ready.h"
#include "core/message/turn_go.h"
#include "core/request/book.h"
#include "core/request/pieces.h"
#include "core/request/request.h"
#include "core/session/session.h"

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
        if (options->flags & WEFT_TAG_MASK)
            request->tag_mask = options->tag_mask;
        if (options->flags & WEFT_WATCH)
            request->watcher = options->watcher;
    }
    wf_request_adopt(request, options);
    return request;
}

int wf_message_usable(const struct weft_connection *connection, bool sending)
{
    const struct wf_session *session = wf_session_at(connection->desk);
    int result = wf_session_usable(session);
    if (result < 0)
        return wf_fail(wf_refusal(), result, "%s",
                       session->guard.error.code ? session->guard.error.text : "the peer has closed the session");
    if (connection->state != WF_CONNECTION_OPEN || (sending && connection->close_seen))
        return wf_fail(wf_refusal(), -ESHUTDOWN, "%s has closed the connection with its endpoint %u",
                       connection->state != WF_CONNECTION_OPEN ? "this side" : session->peer.name,
                       connection->remote_endpoint);
    return 0;
}

int wf_message_too_many(const struct wf_book *book)
{
    return wf_fail(wf_refusal(), -EAGAIN,
                   "%llu operations are under way, and the setting requests allows %llu: test, wait for or poll some",
                   (unsigned long long)atomic_load(&book->waiting->requests_out),
                   (unsigned long long)book->guard->world->tuning.requests);
}

static struct weft_request *prepare(const struct wf_posting *posting, enum wf_request_kind kind)
{
    struct weft_request *request = wf_message_prepare(posting->connection, kind, posting->buffer, posting->length,
                                                      posting->tag, posting->options, &posting->memory);
    if (request && posting->pieces) {
        request->pieces = posting->pieces;
        wf_pieces_hold(posting->pieces);
        wf_desk_keep(posting->connection->desk, posting->pieces);
    }
    return request;
}

/* Operations that an older version of Weft does not know. */
static bool peer_knows(const struct wf_posting *posting, enum wf_request_kind kind)
{
    bool wants = kind == WF_REQUEST_NOTIFY || (posting->options && posting->options->flags & WEFT_SYNC);
    return !wants || posting->connection->desk->terms->features & WF_FEATURE_MATCHING;
}

/* SEND or NOTIFY. */
static int post_outgoing(struct wf_posting *posting, enum wf_request_kind kind)
{
    int result = wf_message_usable(posting->connection, true);
    if (result == 0 && !peer_knows(posting, kind))
        result =
            wf_fail(wf_refusal(), -ENOTSUP,
                    "the peer runs an older version of Weft, which does not know %s: install the same on both sides",
                    kind == WF_REQUEST_NOTIFY ? "weft_notify()" : "WEFT_SYNC");
    if (result < 0)
        return result;
    struct weft_request *request = posting->request = prepare(posting, kind);
    if (!request)
        return wf_message_too_many(posting->connection->desk->book);
    struct wf_outbound *outbound = wf_outbound_begin(posting->connection, request);
    if (!outbound) {
        request->registration = NULL;
        wf_request_drop(request);
        return -ENOMEM;
    }
    if (request->done_early || wf_ready_is_brief(outbound))
        posting->fresh = outbound;
    else
        wf_outbound_queue(outbound);
    return 0;
}

static int post_send(struct wf_posting *posting)
{
    return post_outgoing(posting, WF_REQUEST_SEND);
}

static int post_notify(struct wf_posting *posting)
{
    if (posting->memory.device)
        return wf_fail(wf_refusal(), -EINVAL, "the notification is in the memory of GPU %d: it must be in host memory",
                       posting->memory.device->index);
    return post_outgoing(posting, WF_REQUEST_NOTIFY);
}

/* Has the peer closed the session or been lost, while messages of it lie here that no receive has taken? Those that are
 * whole can still be received: the peer's process may have ended by itself once its sends were complete. */
static bool only_leftovers(const struct weft_connection *connection)
{
    const struct wf_session *session = wf_session_at(connection->desk);
    return wf_guard_over(&session->guard) < 0 && !session->life.closing && connection->state == WF_CONNECTION_OPEN &&
           (!wf_list_empty(&connection->unexpected) || !wf_list_empty(&connection->notes));
}

int wf_message_receivable(const struct weft_connection *connection)
{
    return only_leftovers(connection) ? 0 : wf_message_usable(connection, false);
}

static int post_a_receive(struct wf_posting *posting, enum wf_request_kind kind)
{
    int result = wf_message_receivable(posting->connection);
    if (result < 0)
        return result;
    posting->request = prepare(posting, kind);
    if (!posting->request)
        return wf_message_too_many(posting->connection->desk->book);
    wf_match_receive(posting->request);
    return 0;
}

static int post_receive(struct wf_posting *posting)
{
    return post_a_receive(posting, WF_REQUEST_RECV);
}

static int post_note_receive(struct wf_posting *posting)
{
    return post_a_receive(posting, WF_REQUEST_NOTE);
}

static int check(struct weft_context *context, struct wf_posting *posting, uint32_t allowed)
{
    if (!posting->options && posting->buffer && posting->length <= INT64_MAX && !wf_devices_any(&context->devices) &&
        !posting->pieces)
        return 0; /* host memory, and nothing that could be wrong with it */
    if (!posting->pieces)
        return wf_message_check(context, posting->buffer, posting->length, posting->options, allowed, &posting->memory);
    int result =
        wf_message_check(context, posting->span, posting->span_bytes, posting->options, allowed, &posting->memory);
    if (result < 0 && result != -EFAULT)
        return result;
    int scattered = wf_vector_check(context, posting);
    return scattered < 0 ? scattered : result;
}

static int post_message(int (*function)(struct wf_posting *posting), struct wf_posting *posting, uint32_t allowed,
                        struct weft_request **out)
{
    struct wf_session *session = wf_session_at(posting->connection->desk);
    struct wf_message_memory *memory = &posting->memory;
    int result = check(wf_context_of(session), posting, allowed);
    if (result < 0) {
        wf_pieces_release(posting->pieces);
        return result;
    }
    wf_session_lock(session);
    result = wf_message_turn(memory);
    if (result == 0)
        result = function(posting);
    if (result == 0)
        *out = posting->request;
    if (posting->pieces) /* the request has its own hold */
        wf_pieces_release(posting->pieces);
    wf_message_posted(session, result, memory, posting->fresh);
    return result;
}

void wf_message_posted(struct wf_session *session, int result, const struct wf_message_memory *memory,
                       struct wf_outbound *fresh)
{
    struct wf_crew *crew = session->sessions->crew;
    if (result < 0 && memory->turn)
        wf_turn_drop(memory->turn, &session->shares);
    if (fresh && (!wf_list_empty(&fresh->connection->pending) ||
                  !wf_session_has_idle_express(session, fresh->connection->traffic))) {
        wf_outbound_queue(fresh);
        fresh = NULL;
    }
    if (fresh || wf_session_has_work(session))
        wf_session_unlock_and_push(session, fresh);
    else
        wf_session_unlock(session);
    if (result < 0 && memory->registration)
        wf_registration_release(memory->registration);
    if (session->guard.world->shared && atomic_load_explicit(&crew->large_out, memory_order_relaxed) > 0)
        wf_worker_stay_near(crew->workers[0]);
}

int wf_post_send(struct wf_posting *posting, struct weft_request **out)
{
    return post_message(post_send, posting, WEFT_ON_STREAM | WEFT_WATCH | WEFT_SYNC, out);
}

int wf_post_receive(struct wf_posting *posting, struct weft_request **out)
{
    int result = wf_message_check_tags(posting->options);
    if (result < 0)
        wf_pieces_release(posting->pieces);
    return result < 0 ? result : post_message(post_receive, posting, WF_TAG_FLAGS | WEFT_ON_STREAM | WEFT_WATCH, out);
}

int weft_send(struct weft_connection *connection, const void *buffer, uint64_t length, uint64_t tag,
              const struct weft_options *options, struct weft_request **out)
{
    if (WF_IS_NULL(wf_refusal(), connection) || WF_IS_NULL(wf_refusal(), out))
        return -EINVAL;
    struct wf_posting posting = {.connection = connection,
                                 .buffer = (void *)(uintptr_t)buffer,
                                 .length = length,
                                 .tag = tag,
                                 .options = options};
    int result = wf_post_send(&posting, out);
    return result < 0 ? wf_refused(__func__, result) : 0;
}

int weft_notify(struct weft_connection *connection, const void *data, uint64_t length, uint64_t tag,
                const struct weft_options *options, struct weft_request **out)
{
    if (WF_IS_NULL(wf_refusal(), connection) || WF_IS_NULL(wf_refusal(), out))
        return -EINVAL;
    struct wf_posting posting = {
        .connection = connection, .buffer = (void *)(uintptr_t)data, .length = length, .tag = tag, .options = options};
    int result = length > WEFT_NOTIFICATION_MAX
                     ? wf_fail(wf_refusal(), -EMSGSIZE, "the notification has %llu bytes: the most is %d",
                               (unsigned long long)length, WEFT_NOTIFICATION_MAX)
                     : post_message(post_notify, &posting, 0, out);
    return result < 0 ? wf_refused(__func__, result) : 0;
}

int weft_recv(struct weft_connection *connection, void *buffer, uint64_t capacity, uint64_t tag,
              const struct weft_options *options, struct weft_request **out)
{
    if (WF_IS_NULL(wf_refusal(), connection) || WF_IS_NULL(wf_refusal(), out))
        return -EINVAL;
    struct wf_posting posting = {
        .connection = connection, .buffer = buffer, .length = capacity, .tag = tag, .options = options};
    int result = wf_post_receive(&posting, out);
    return result < 0 ? wf_refused(__func__, result) : 0;
}

int weft_recv_notification(struct weft_connection *connection, void *buffer, uint64_t capacity,
                           const struct weft_options *options, struct weft_request **out)
{
    if (WF_IS_NULL(wf_refusal(), connection) || WF_IS_NULL(wf_refusal(), out))
        return -EINVAL;
    struct wf_posting posting = {.connection = connection, .buffer = buffer, .length = capacity, .options = options};
    int result = post_message(post_note_receive, &posting, 0, out);
    return result < 0 ? wf_refused(__func__, result) : 0;
}
