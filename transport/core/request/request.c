#include "core/request/request.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/device/registration.h"
#include "core/device/turn.h"
#include "core/ground/reached.h"
#include "core/join/door.h"
#include "core/message/connection.h"
#include "core/message/inbound.h"
#include "core/message/match.h"
#include "core/message/outbound.h"
#include "core/request/queue.h"
#include "core/request/wait.h"
#include "core/session/session.h"
#include "core/calls/context.h"

struct weft_request *wf_request_take(struct wf_session *session, enum wf_request_kind kind)
{
    struct weft_context *context = session->context;
    uint64_t before = atomic_fetch_add_explicit(&context->waiting.requests_out, 1, memory_order_relaxed);
    bool users = kind <= WF_REQUEST_NOTE;
    struct weft_request *request = NULL;
    if (!users || before < context->world.tuning.requests)
        request = wf_pool_take(&session->book.pool);
    if (!request) {
        atomic_fetch_sub_explicit(&context->waiting.requests_out, 1, memory_order_relaxed);
        return NULL;
    }
    memset(request, 0, sizeof *request);
    wf_link_init(&request->match_link);
    wf_link_init(&request->deadline_link);
    request->session = session;
    request->kind = kind;
    request->mishap.device = WF_NO_DEVICE;
    request->deadline_ns = WF_NEVER;
    wf_list_push_back(&session->book.requests, &request->link);
    session->guard.references += 1;
    return request;
}

void wf_request_count_large(struct weft_request *request)
{
    request->large = request->length > request->session->terms.eager;
    if (request->large)
        atomic_fetch_add(&request->session->context->waiting.large_out, 1);
}

static void uncount_large(struct weft_request *request)
{
    if (request->large)
        atomic_fetch_sub_explicit(&request->session->context->waiting.large_out, 1, memory_order_relaxed);
    request->large = false;
}

void wf_request_drop(struct weft_request *request)
{
    struct wf_session *session = request->session;
    uncount_large(request);
    wf_link_remove(&request->link);
    wf_link_remove(&request->deadline_link);
    wf_link_remove(&request->match_link);
    if (request->turn)
        wf_turn_end(request->turn);
    if (request->queue)
        wf_queue_detach(request);
    wf_pool_give(&session->book.pool, request);
    atomic_fetch_sub_explicit(&session->context->waiting.requests_out, 1, memory_order_relaxed);
    session->guard.references -= 1; /* never the last: the caller's handle holds the session */
}

void wf_request_arm(struct weft_request *request, int timeout_ms)
{
    struct wf_session *session = request->session;
    if (timeout_ms <= 0)
        return;
    request->deadline_ns = wf_deadline_after_ms(wf_world_now(&session->context->world), timeout_ms);
    wf_list_push_back(&session->book.deadlines, &request->deadline_link);
    wf_alarm_by(&session->context->world.alarm, request->deadline_ns);
}

void wf_request_complete(struct weft_request *request, int status, uint64_t bytes)
{
    wf_link_remove(&request->link);
    wf_link_remove(&request->match_link);
    wf_link_remove(&request->deadline_link);
    uncount_large(request);
    request->status = status;
    request->bytes = bytes;
    /* A queue, which may be of several sessions, hands out in the order of these times. */
    int64_t batch_ns = request->queue ? 0 : request->session->guard.batch_ns;
    if (!request->copied || request->queue)
        request->completed_ns = batch_ns ? batch_ns : wf_world_now(&request->session->context->world);
    if (request->registration)
        wf_registration_release(request->registration);
    request->registration = NULL;
    if (request->turn)
        wf_turn_end(request->turn);
    request->turn = NULL;
    struct wf_session *session = request->session;
    struct weft_queue *queue = request->queue;
    /* From here on who waits may collect the request: nothing of it is read below, unless its queue has it. */
    atomic_store_explicit(&request->done, 1, memory_order_seq_cst);
    session->guard.wake_due |= queue ? wf_queue_push(request) : wf_wait_completed(session->context, request);
}

bool wf_request_is_here(const struct weft_request *request)
{
    const struct wf_inbound *inbound = request->inbound;
    return inbound && inbound->state == WF_INBOUND_MATCHED && inbound->arrived.covered == inbound->total;
}

void wf_request_part_done(struct weft_request *request, int status, uint64_t bytes)
{
    if (request->parts > 1 && status < 0 && request->part_status == 0)
        request->part_status = status;
    if (request->parts > 1) {
        request->parts -= 1;
        return;
    }
    if (request->part_status < 0)
        status = request->part_status;
    wf_request_complete(request, status, wf_request_one_sided(request) ? request->length : bytes);
}

void wf_request_note_mishap(struct weft_request *request, const struct wf_transit *transit)
{
    const struct wf_devices *devices = &request->session->context->devices;
    request->mishap = (struct wf_mishap){
        .device = transit->device->index,
        .way = transit->copy.way,
        .start = transit->start,
        .end = transit->end,
        .why = devices->ops->why(atomic_load(&devices->memory), transit->device->index),
    };
}

static void cancel_receive(struct weft_request *request, int status)
{
    struct wf_inbound *inbound = request->inbound;
    if (!inbound) {
        wf_match_withdraw(request);
        wf_request_complete(request, status, 0);
        return;
    }
    WF_REACHED_IF(status == -ECANCELED, "incoming message MATCHED: cancelled");
    WF_REACHED_IF(status == -ETIMEDOUT, "incoming message MATCHED: deadline");
    wf_inbound_refuse(inbound, status);
    wf_inbound_check(inbound);
}

/* OPEN and CLOSE. Where the session itself ends and nothing was left to send, a close has what it wanted. */
static void cancel_connection(struct weft_request *request, int status)
{
    struct weft_connection *connection = request->connection;
    connection->waiting = NULL;
    if (request->kind == WF_REQUEST_CLOSE && status == -ESHUTDOWN && connection->outbounds == 0)
        status = 0;
    wf_request_complete(request, status, 0);
}

void wf_request_cancel(struct weft_request *request, int status)
{
    if (atomic_load_explicit(&request->done, memory_order_relaxed))
        return;
    wf_link_remove(&request->deadline_link);
    switch (request->kind) {
    case WF_REQUEST_RECV:
    case WF_REQUEST_NOTE:
        cancel_receive(request, status);
        break;
    case WF_REQUEST_SEND:
    case WF_REQUEST_WRITE:
    case WF_REQUEST_READ:
        /* With the operation done, what is left is its notification. */
        wf_outbound_refuse(request->outbound ? request->outbound : request->note, status);
        break;
    case WF_REQUEST_OPEN:
    case WF_REQUEST_CLOSE:
        cancel_connection(request, status);
        break;
    case WF_REQUEST_ACCEPT:
        wf_request_complete(request, status, 0);
        break;
    case WF_REQUEST_PEER_CLOSE:
        request->session->life.closing = NULL;
        wf_request_complete(request, status, 0);
        break;
    }
}

int64_t wf_requests_expire(struct wf_session *session, int64_t now_ns, bool *expired)
{
    *expired = false;
    int64_t next = WF_NEVER;
    WF_LIST_EACH (link, following, &session->book.deadlines) {
        struct weft_request *request = WF_CONTAINER(link, struct weft_request, deadline_link);
        if (request->deadline_ns <= now_ns) {
            *expired = true;
            wf_request_cancel(request, -ETIMEDOUT);
        } else if (request->deadline_ns < next) {
            next = request->deadline_ns;
        }
    }
    return next;
}

static const char *kind_name(const struct weft_request *request)
{
    static const char *const names[] = {"send", "receive", "write", "read",      "receive of a notification",
                                        "open", "accept",  "close", "peer close"};
    return names[request->kind];
}

static const char *describe_mishap(const struct wf_mishap *mishap, char *text, size_t room)
{
    if (mishap->way == WF_COPY_MARK) {
        snprintf(text, room, "GPU %d failed before its stream came to this: %s", mishap->device, mishap->why);
        return text;
    }
    snprintf(text, room, "GPU %d failed to copy bytes %llu to %llu %s: %s", mishap->device,
             (unsigned long long)mishap->start, (unsigned long long)mishap->end,
             mishap->way == WF_COPY_OUT ? "out of its memory" : "into its memory", mishap->why);
    return text;
}

/* One line about a failed operation: what, to whom, how far, why. */
static void describe(const struct weft_request *request, char *text, size_t room)
{
    const struct wf_session *session = request->session;
    const char *reason = wf_strerror(request->status);
    if (session->guard.error.code < 0 && request->status == session->guard.error.code)
        reason = session->guard.error.text;
    bool receiving = request->kind == WF_REQUEST_RECV || request->kind == WF_REQUEST_NOTE;
    if (wf_request_one_sided(request) && request->status == -EACCES)
        reason = "the peer knows no registration with this key, has ended it, or does not allow this";
    else if (wf_request_one_sided(request) && request->status == -ERANGE)
        reason = "some of it lies outside the peer's registration";
    char failure[160];
    bool of_device =
        (request->status == -EIO || request->status == -ENODEV) && request->status != session->guard.error.code;
    if (of_device && request->mishap.device == WF_NO_DEVICE)
        reason = "a GPU failed at the peer, whose own messages name it and the bytes";
    if (request->mishap.device != WF_NO_DEVICE && (request->status == -EIO || request->status == -ENODEV))
        reason = describe_mishap(&request->mishap, failure, sizeof failure);
    if (request->status == -EMSGSIZE && receiving)
        snprintf(text, room, "receive with tag %llu: the message has %llu bytes, the buffer %llu; post a larger one",
                 (unsigned long long)request->tag, (unsigned long long)request->bytes,
                 (unsigned long long)request->length);
    else
        snprintf(text, room, "%s of %llu bytes, tag %llu, endpoint %u of %s: %s", kind_name(request),
                 (unsigned long long)request->length, (unsigned long long)request->tag, request->remote_endpoint,
                 session->peer.name, reason);
}

static void fill_completion(const struct weft_request *request, struct weft_completion *completion)
{
    completion->status = request->status;
    completion->reserved = 0;
    completion->bytes = request->status ? 0 : request->bytes;
    completion->tag = request->tag;
    int64_t completed_ns = request->completed_ns;
    completion->completed_ns = completed_ns ? completed_ns : wf_world_now(&request->session->context->world);
    completion->user_data = request->user_data;
    completion->text[0] = '\0';
    if (request->status)
        describe(request, completion->text, sizeof completion->text);
}

bool wf_request_collect(struct weft_request *request, struct weft_completion *completion)
{
    if (!atomic_load_explicit(&request->done, memory_order_acquire))
        return false;
    struct wf_session *session = request->session;
    wf_session_lock(session);
    if (completion)
        fill_completion(request, completion);
    wf_pool_give(&session->book.pool, request);
    atomic_fetch_sub_explicit(&session->context->waiting.requests_out, 1, memory_order_relaxed);
    wf_session_unlock_and_release(session);
    return true;
}

int wf_request_finish(struct weft_request *request, int timeout_ms, struct weft_completion *completion)
{
    struct weft_completion local;
    struct weft_completion *result = completion ? completion : &local;
    struct wf_session *session = request->session;
    if (weft_wait(request, timeout_ms, result) == 0)
        return result->status;
    wf_session_lock(session);
    wf_request_cancel(request, -ETIMEDOUT);
    wf_session_unlock(session);
    wf_session_push(session);
    weft_wait(request, -1, result);
    return result->status;
}
