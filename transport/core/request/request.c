#include "core/request/request.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/device/registration.h"
#include "core/device/turn.h"
#include "core/ground/holders.h"
#include "core/ground/refusal.h"
#include "core/request/book.h"
#include "core/request/lobby.h"
#include "core/request/pieces.h"
#include "core/request/queue.h"
#include "core/request/wait.h"

static void cancel_plain(struct weft_request *request, int status)
{
    wf_request_complete(request, status, 0);
}

const struct wf_request_ops wf_request_plain_ops = {.cancel = cancel_plain};

void wf_book_init(struct wf_book *book, struct wf_guard *guard, const struct wf_terms *terms,
                  struct wf_waiting *waiting)
{
    book->guard = guard;
    book->terms = terms;
    book->waiting = waiting;
    wf_list_init(&book->requests);
    wf_list_init(&book->deadlines);
    wf_pool_init(&book->pool, sizeof(struct weft_request), 64, 0);
}

void wf_book_fini(struct wf_book *book)
{
    wf_pool_fini(&book->pool);
}

/* Fills in a request that is all zero. */
static void begin(struct weft_request *request, struct wf_book *book, enum wf_request_kind kind,
                  const struct wf_request_ops *ops)
{
    wf_link_init(&request->match_link);
    wf_link_init(&request->deadline_link);
    request->book = book;
    request->ops = ops;
    request->kind = kind;
    request->mishap.device = WF_NO_DEVICE;
    request->deadline_ns = WF_NEVER;
    wf_list_push_back(&book->requests, &request->link);
    wf_guard_refer(book->guard);
}

struct weft_request *wf_request_take(struct wf_book *book, enum wf_request_kind kind, const struct wf_request_ops *ops)
{
    struct wf_waiting *waiting = book->waiting;
    uint64_t before = atomic_fetch_add_explicit(&waiting->requests_out, 1, memory_order_relaxed);
    bool users = kind <= WF_REQUEST_NOTE;
    struct weft_request *request = NULL;
    if (!users || before < waiting->world->tuning.requests)
        request = wf_pool_take_clear(&book->pool);
    if (!request) {
        atomic_fetch_sub_explicit(&waiting->requests_out, 1, memory_order_relaxed);
        return NULL;
    }
    begin(request, book, kind, ops);
    return request;
}

struct weft_request *wf_request_take_inner(struct wf_book *book, struct weft_request *outer,
                                           const struct wf_request_ops *ops)
{
    struct weft_request *request = wf_pool_take_clear(&book->pool);
    if (!request)
        return NULL;
    begin(request, book, outer->kind, ops);
    request->outer = outer;
    outer->inner = request;
    request->flags = outer->flags;
    request->buffer = outer->buffer;
    request->length = outer->length;
    request->tag = outer->tag;
    request->tag_mask = outer->tag_mask;
    request->device = outer->device; /* `outer` holds the registration */
    wf_request_count_large(request);
    return request;
}

void wf_request_count_large(struct weft_request *request)
{
    request->large = request->length > request->book->terms->eager;
    if (request->large)
        wf_crew_count_large(request->book->waiting->crew, true);
}

static void uncount_large(struct weft_request *request)
{
    if (request->large)
        wf_crew_count_large(request->book->waiting->crew, false);
    request->large = false;
}

static void give(struct weft_request *request)
{
    struct wf_book *book = request->book;
    if (request->ops && request->ops->gone)
        request->ops->gone(request);
    wf_pool_give(&book->pool, request);
    atomic_fetch_sub_explicit(&book->waiting->requests_out, 1, memory_order_relaxed);
}

void wf_request_drop(struct weft_request *request)
{
    struct wf_guard *guard = request->book->guard;
    uncount_large(request);
    wf_link_remove(&request->link);
    wf_link_remove(&request->deadline_link);
    wf_link_remove(&request->match_link);
    if (request->turn)
        wf_turn_end(request->turn);
    wf_pieces_release(request->pieces);
    if (request->queue)
        wf_queue_detach(request);
    give(request);
    wf_guard_unrefer(guard);
}

void wf_request_adopt(struct weft_request *request, const struct weft_options *options)
{
    if (!options)
        return;
    request->user_data = options->user_data;
    if (options->queue)
        wf_queue_attach(options->queue, request);
    wf_request_arm(request, options->timeout_ms);
}

void wf_request_arm(struct weft_request *request, int timeout_ms)
{
    struct wf_world *world = request->book->guard->world;
    if (timeout_ms <= 0)
        return;
    request->deadline_ns = wf_deadline_after_ms(wf_world_now(world), timeout_ms);
    wf_list_push_back(&request->book->deadlines, &request->deadline_link);
    wf_guard_visit(request->book->guard, request->deadline_ns);
}

/* The request of a session has ended: with it ends that of the lobby. The request is gone afterwards. */
static void hand_over(struct weft_request *request)
{
    struct wf_book *book = request->book;
    struct weft_request *outer = request->outer;
    struct wf_lobby *lobby = wf_lobby_of(outer);
    wf_lobby_lock(lobby);
    outer->inner = NULL;
    outer->connection = request->connection;
    outer->tag = request->tag;
    if (request->status < 0)
        wf_lobby_detail(lobby, outer, request);
    wf_request_complete(outer, request->status, request->bytes);
    wf_guard_unlock_within(&lobby->guard, book->guard);
    wf_pool_give(&book->pool, request);
    wf_guard_drop(book->guard);
}

void wf_request_complete(struct weft_request *request, int status, uint64_t bytes)
{
    wf_link_remove(&request->link);
    wf_link_remove(&request->match_link);
    wf_link_remove(&request->deadline_link);
    uncount_large(request);
    request->status = status;
    request->bytes = bytes;
    if (request->outer) {
        hand_over(request);
        return;
    }
    /* A queue may have requests of several sessions and hands them out in the order of these times: no batch time
     * here. */
    int64_t batch_ns = request->queue ? 0 : request->book->guard->batch_ns;
    if (!request->done_early || request->queue)
        request->completed_ns = batch_ns ? batch_ns : wf_world_now(request->book->guard->world);
    if (request->registration)
        wf_registration_release(request->registration);
    request->registration = NULL;
    if (request->pieces)
        wf_pieces_release(request->pieces);
    request->pieces = NULL;
    if (request->turn)
        wf_turn_end(request->turn);
    request->turn = NULL;
    struct wf_book *book = request->book;
    struct weft_queue *queue = request->queue;
    /* From here on the waiting thread may collect the request: below, only a request with a queue is used. */
    atomic_store_explicit(&request->done, 1, memory_order_seq_cst);
    wf_guard_wake(book->guard, queue ? wf_queue_push(request) : wf_wait_completed(book->waiting, request));
}

void wf_request_complete_early(struct weft_request *request)
{
    request->done_early = true;
    if (request->queue || request->registration || request->pieces || request->outer) {
        wf_request_complete(request, 0, request->length);
        return;
    }
    wf_link_remove(&request->link);
    wf_link_remove(&request->deadline_link);
    request->bytes = request->length;
    atomic_store_explicit(&request->done, 1, memory_order_release);
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
    const struct wf_devices *devices = transit->device->devices;
    request->mishap = (struct wf_mishap){
        .device = transit->device->index,
        .way = transit->copy.way,
        .start = transit->start,
        .end = transit->end,
        .why = devices->ops->why(atomic_load(&devices->memory), transit->device->index),
    };
}

void wf_request_cancel(struct weft_request *request, int status)
{
    if (atomic_load_explicit(&request->done, memory_order_relaxed))
        return;
    wf_link_remove(&request->deadline_link);
    request->ops->cancel(request, status);
}

int64_t wf_requests_expire(struct wf_book *book, int64_t now_ns, bool *expired)
{
    int64_t next = WF_NEVER;
    struct wf_list late;
    struct wf_link *first;
    wf_list_init(&late);
    WF_LIST_EACH (link, following, &book->deadlines) {
        struct weft_request *request = WF_CONTAINER(link, struct weft_request, deadline_link);
        if (request->deadline_ns <= now_ns) {
            wf_link_remove(link);
            wf_list_push_back(&late, link);
        } else if (request->deadline_ns < next) {
            next = request->deadline_ns;
        }
    }
    *expired = !wf_list_empty(&late);
    while ((first = wf_list_first(&late))) /* the end of one may be that of others: it takes them out of the list */
        wf_request_cancel(WF_CONTAINER(first, struct weft_request, deadline_link), -ETIMEDOUT);
    return next;
}

static const char *kind_name(const struct weft_request *request)
{
    static const char *const names[] = {
        "send",   "receive", "write",           "read",    "notification",    "receive of a notification", "open",
        "accept", "close",   "close of a peer", "connect", "accept of a peer"};
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

/* Did the receive end because its message has more bytes than its buffer? */
static bool too_large(const struct weft_request *request)
{
    bool receiving = request->kind == WF_REQUEST_RECV || request->kind == WF_REQUEST_NOTE;
    return receiving && request->status == -EMSGSIZE;
}

/* "write of 100 bytes to offset 4096 of key 0x1f", "send of 100 bytes, tag 7". */
static const char *name_operation(const struct weft_request *request, char *text, size_t room)
{
    const char *kind = kind_name(request);
    unsigned long long length = request->length, key = request->key;
    const char *way = request->kind == WF_REQUEST_WRITE ? "to" : "from";
    if (!wf_request_one_sided(request))
        snprintf(text, room, "%s of %llu bytes, tag %llu", kind, length, (unsigned long long)request->tag);
    else if (request->listed)
        snprintf(text, room, "%s of %llu bytes in %u pieces %s key 0x%llx", kind, length, request->listed, way, key);
    else
        snprintf(text, room, "%s of %llu bytes %s offset %llu of key 0x%llx", kind, length, way,
                 (unsigned long long)request->offset, key);
    return text;
}

/* One line about an open, accept or close that failed. */
static void describe_connection(const struct weft_request *request, const char *reason, char *text, size_t room)
{
    const struct wf_guard *guard = request->book->guard;
    bool late = request->status == -ETIMEDOUT && guard->error.code == 0;
    if (late)
        reason = request->kind == WF_REQUEST_OPEN ? "it did not appear before the deadline"
                 : request->kind == WF_REQUEST_ACCEPT
                     ? "no connection came before the deadline"
                     : "own sends did not finish before the deadline and were cancelled";
    if (request->kind == WF_REQUEST_ACCEPT && request->remote_endpoint == WEFT_ANY_ENDPOINT)
        snprintf(text, room, "%s, any endpoint of %s: %s", kind_name(request), guard->peer_name, reason);
    else
        snprintf(text, room, "%s, endpoint %u of %s: %s", kind_name(request), request->remote_endpoint,
                 guard->peer_name, reason);
}

/* One line about a failed operation: its kind, its peer, its size, the reason. */
static void describe(const struct weft_request *request, char *text, size_t room)
{
    const struct wf_guard *guard = request->book->guard;
    const char *reason = wf_strerror(request->status);
    if (guard->error.code < 0 && request->status == guard->error.code)
        reason = guard->error.text;
    if (wf_request_one_sided(request) && request->status == -EACCES)
        reason = "the peer knows no registration with this key, has ended it, or does not allow this";
    else if (wf_request_one_sided(request) && request->status == -ERANGE)
        reason = "some of it lies outside the peer's registration";
    char failure[160], operation[128];
    bool of_device = (request->status == -EIO || request->status == -ENODEV) && request->status != guard->error.code;
    if (of_device && request->mishap.device == WF_NO_DEVICE)
        reason = "a GPU failed at the peer, whose own messages name it and the bytes";
    if (request->mishap.device != WF_NO_DEVICE && (request->status == -EIO || request->status == -ENODEV))
        reason = describe_mishap(&request->mishap, failure, sizeof failure);
    if (too_large(request))
        snprintf(text, room, "receive with tag %llu: the message has %llu bytes, the buffer %llu; post a larger one",
                 (unsigned long long)request->tag, (unsigned long long)request->bytes,
                 (unsigned long long)request->length);
    else if (request->kind > WF_REQUEST_NOTE)
        describe_connection(request, reason, text, room);
    else
        snprintf(text, room, "%s, endpoint %u of %s: %s", name_operation(request, operation, sizeof operation),
                 request->remote_endpoint, guard->peer_name, reason);
}

void wf_request_describe(const struct weft_request *request, char *text, size_t room)
{
    if (request->ops && request->ops->describe)
        request->ops->describe(request, text, room);
    else
        describe(request, text, room);
}

static void fill_completion(const struct weft_request *request, struct weft_completion *completion)
{
    bool message = request->kind <= WF_REQUEST_NOTE;
    completion->status = request->status;
    completion->reserved = 0;
    completion->bytes = request->status == 0 || too_large(request) ? request->bytes : 0;
    completion->tag = request->tag;
    bool opened = request->status == 0 && (request->kind == WF_REQUEST_OPEN || request->kind == WF_REQUEST_ACCEPT);
    completion->connection = message || opened ? request->connection : NULL;
    completion->peer = request->status == 0 ? request->peer : NULL;
    int64_t completed_ns = request->completed_ns;
    completion->completed_ns = completed_ns ? completed_ns : wf_world_now(request->book->guard->world);
    completion->user_data = request->user_data;
    completion->text[0] = '\0';
    if (request->status)
        wf_request_describe(request, completion->text, sizeof completion->text);
}

bool wf_request_collect(struct weft_request *request, struct weft_completion *completion)
{
    if (!atomic_load_explicit(&request->done, memory_order_acquire))
        return false;
    struct wf_guard *guard = request->book->guard;
    if (request->ops && request->ops->collected && request->status == 0)
        request->ops->collected(request);
    wf_guard_lock(guard);
    if (completion)
        fill_completion(request, completion);
    give(request);
    wf_guard_unlock_and_release(guard);
    return true;
}

void weft_cancel(struct weft_request *request)
{
    if (WF_IS_NULL(wf_refusal(), request))
        return;
    struct wf_guard *guard = request->book->guard;
    wf_guard_lock(guard);
    struct wf_waiting *waiting = request->book->waiting;
    wf_guard_refer(guard); /* once it has ended, another thread may collect it, and with it the last reference goes */
    wf_request_cancel(request, -ECANCELED);
    wf_guard_unlock(guard);
    guard->ops->push(guard);
    wf_wait_ring(waiting); /* a thread that waits for the request may sleep in the engine */
    wf_guard_lock(guard);
    wf_guard_unlock_and_release(guard);
}

int wf_request_finish(struct weft_request *request, int timeout_ms, struct weft_completion *completion)
{
    struct weft_completion local;
    struct weft_completion *result = completion ? completion : &local;
    struct wf_guard *guard = request->book->guard;
    if (weft_wait(request, timeout_ms, result) == 0)
        return result->status;
    wf_guard_lock(guard);
    wf_request_cancel(request, -ETIMEDOUT);
    wf_guard_unlock(guard);
    guard->ops->push(guard);
    weft_wait(request, -1, result);
    return result->status;
}
