/* weft_write(), weft_read(), and the same for lists of pieces: weft_write_list(), weft_read_list(). */
#include <errno.h>

#include "core/calls/context.h"
#include "core/calls/post.h"
#include "core/device/registration.h"
#include "core/ground/refusal.h"
#include "core/message/connection.h"
#include "core/message/inbound.h"
#include "core/message/match.h"
#include "core/message/outbound.h"
#include "core/request/pieces.h"
#include "core/message/served.h"
#include "core/request/request.h"
#include "core/session/session.h"

/* The operation that the user asks for. */
struct asked {
    enum wf_request_kind kind; /* WRITE or READ */
    uint8_t *buffer;
    uint64_t length;          /* the sum of all pieces */
    uint64_t key, offset;     /* of the peer's memory; `offset` is used only without `pieces` */
    struct wf_pieces *pieces; /* NULL: one piece */
    const struct weft_options *options;
    struct wf_message_memory memory;
};

/* The objects of one operation. All are made before the first of them is used. */
struct parts {
    struct weft_request *request;
    struct wf_outbound *main, *note, *list;
    struct wf_inbound *landing;
};

static bool notifies(const struct asked *asked)
{
    return asked->options && (asked->options->flags & WEFT_NOTIFY);
}

static int check_note(const struct weft_options *options)
{
    if (!options || !(options->flags & WEFT_NOTIFY))
        return 0;
    unsigned long long length = options->notify_length;
    if (length > WEFT_NOTIFICATION_MAX)
        return wf_fail(wf_refusal(), -EMSGSIZE, "options.notify_length is %llu: a notification has at most %d bytes",
                       length, WEFT_NOTIFICATION_MAX);
    if (!options->notify_data && length > 0)
        return wf_fail(wf_refusal(), -EINVAL,
                       "options.notify_data is NULL, and options.notify_length %llu: give the bytes, or a length of 0",
                       length);
    return 0;
}

static void drop(struct parts *parts)
{
    if (parts->landing)
        wf_inbound_forget(parts->landing);
    if (parts->list)
        wf_outbound_drop(parts->list);
    if (parts->note)
        wf_outbound_drop(parts->note);
    if (parts->main)
        wf_outbound_drop(parts->main);
    if (parts->request) {
        parts->request->registration = NULL; /* the caller releases the registration */
        wf_request_drop(parts->request);
    }
}

static int make_main(struct weft_connection *connection, const struct asked *asked, struct parts *parts)
{
    bool reading = asked->kind == WF_REQUEST_READ;
    parts->main = wf_outbound_create(connection, reading ? WF_OUTBOUND_READ : WF_OUTBOUND_WRITE, asked->length);
    if (reading)
        parts->landing = wf_inbound_create_reading(connection, asked->length);
    if (!parts->main || (reading && !parts->landing))
        return -ENOMEM;
    parts->main->key = asked->key;
    parts->main->base = asked->pieces ? 0 : asked->offset;
    if (reading) {
        parts->landing->device = asked->memory.device;
        parts->landing->place = asked->buffer;
        parts->landing->pieces = asked->pieces;
    } else {
        parts->main->device = asked->memory.device;
        parts->main->data = asked->buffer;
        parts->main->pieces = asked->pieces;
    }
    if (asked->pieces)
        wf_pieces_hold(asked->pieces);
    return 0;
}

static int make_list(struct weft_connection *connection, const struct asked *asked, struct parts *parts)
{
    if (!asked->pieces)
        return 0;
    parts->list = wf_outbound_create(connection, WF_OUTBOUND_LIST, (uint64_t)asked->pieces->count * WF_ENTRY_BYTES);
    if (!parts->list)
        return -ENOMEM;
    parts->list->data = asked->pieces->upload;
    parts->list->pieces = asked->pieces;
    wf_pieces_hold(asked->pieces);
    return 0;
}

static int make_note(struct weft_connection *connection, const struct asked *asked, struct parts *parts)
{
    if (!notifies(asked))
        return 0;
    parts->note = wf_outbound_create(connection, WF_OUTBOUND_NOTE, asked->options->notify_length);
    if (!parts->note)
        return -ENOMEM;
    parts->note->data = asked->options->notify_data;
    parts->note->tag = asked->options->notify_tag;
    parts->note->late = asked->kind == WF_REQUEST_READ && asked->memory.device;
    return 0;
}

/* Links the objects of the operation with each other. */
static void join(struct parts *parts)
{
    struct weft_request *request = parts->request;
    request->parts = parts->note ? 2 : 1;
    request->outbound = parts->main;
    request->note = parts->note;
    parts->main->list = parts->list;
    parts->main->note = parts->note;
    if (parts->list)
        parts->list->waiter = parts->main;
    if (parts->note) {
        parts->note->subject = parts->main;
        parts->note->request = request;
    }
    parts->main->request = request;
    if (parts->landing) {
        request->inbound = parts->landing;
        parts->landing->request = request;
        parts->landing->partner = parts->main;
        parts->main->counterpart = parts->landing;
    }
}

static int begin_all(struct weft_connection *connection, const struct asked *asked, struct weft_request **out)
{
    struct wf_desk *desk = connection->desk;
    struct parts parts = {0};
    int result = wf_message_usable(connection, true);
    uint64_t most = desk->terms->limits.list_bytes / WF_ENTRY_BYTES;
    if (result == 0 && asked->pieces && asked->pieces->count > most)
        result = wf_fail(wf_refusal(), -E2BIG, "the list has %u pieces, and %s takes %llu: post several lists",
                         asked->pieces->count, desk->guard->peer_name, (unsigned long long)most);
    if (result < 0)
        return result;
    parts.request =
        wf_message_prepare(connection, asked->kind, asked->buffer, asked->length, 0, asked->options, &asked->memory);
    if (!parts.request)
        return wf_message_too_many(connection->desk->book);
    parts.request->key = asked->key;
    parts.request->offset = asked->offset;
    parts.request->listed = asked->pieces ? asked->pieces->count : 0;
    if (make_main(connection, asked, &parts) < 0 || make_list(connection, asked, &parts) < 0 ||
        make_note(connection, asked, &parts) < 0) {
        drop(&parts);
        return -ENOMEM;
    }
    if (asked->pieces)
        wf_desk_keep(desk, asked->pieces);
    join(&parts);
    if (!asked->memory.turn) /* with a turn, the operation begins when the turn comes; it is ordered with no other
                              * operation */
        wf_asking_begin(parts.main);
    *out = parts.request;
    return 0;
}

/* `low` and `high`: the range of the local memory that the operation uses, relative to the buffer. */
static int post_one_sided(struct weft_connection *connection, struct asked *asked, uint64_t low, uint64_t high,
                          struct weft_request **out)
{
    const struct weft_options *options = asked->options;
    const uint8_t *start = low > 0 ? asked->buffer + low : asked->buffer;
    int result = wf_message_check(wf_context_of(wf_session_at(connection->desk)), start, high - low, options,
                                  WEFT_NOTIFY | WEFT_ON_STREAM, &asked->memory);
    if (result < 0) {
        wf_pieces_release(asked->pieces);
        return result;
    }
    wf_guard_lock(connection->desk->guard);
    result = wf_message_turn(&asked->memory);
    if (result == 0)
        result = begin_all(connection, asked, out);
    wf_pieces_release(asked->pieces); /* drops the caller's hold: the operation has its own, if it was posted */
    wf_message_posted(wf_session_at(connection->desk), result, &asked->memory, NULL);
    return result;
}

static int post_one(struct weft_connection *connection, struct asked *asked, struct weft_request **out)
{
    int result = check_note(asked->options);
    if (result < 0)
        return result;
    if (asked->offset > INT64_MAX)
        return wf_fail(wf_refusal(), -EINVAL, "offset is %llu: the most is %lld", (unsigned long long)asked->offset,
                       (long long)INT64_MAX);
    if (asked->length == 0)
        asked->kind = WF_REQUEST_WRITE; /* a write of no bytes: its answer only says whether the key and the offset are
                                         * valid */
    return post_one_sided(connection, asked, 0, asked->length, out);
}

int weft_write(struct weft_connection *connection, const void *buffer, uint64_t length, uint64_t key, uint64_t offset,
               const struct weft_options *options, struct weft_request **out)
{
    if (WF_IS_NULL(wf_refusal(), connection) || WF_IS_NULL(wf_refusal(), out))
        return -EINVAL;
    struct asked asked = {WF_REQUEST_WRITE, (uint8_t *)(uintptr_t)buffer, length, key, offset, NULL, options, {0}};
    int result = post_one(connection, &asked, out);
    return result < 0 ? wf_refused(__func__, result) : 0;
}

int weft_read(struct weft_connection *connection, void *buffer, uint64_t length, uint64_t key, uint64_t offset,
              const struct weft_options *options, struct weft_request **out)
{
    if (WF_IS_NULL(wf_refusal(), connection) || WF_IS_NULL(wf_refusal(), out))
        return -EINVAL;
    struct asked asked = {WF_REQUEST_READ, buffer, length, key, offset, NULL, options, {0}};
    int result = post_one(connection, &asked, out);
    return result < 0 ? wf_refused(__func__, result) : 0;
}

/* --- lists --- */

/* Copies the pieces, and finds the range of the local memory that they use. */
static int gather(struct asked *asked, const struct weft_piece *pieces, uint64_t count, uint64_t *low, uint64_t *high)
{
    *low = UINT64_MAX;
    *high = 0;
    for (uint64_t i = 0; i < count; i++) {
        const struct weft_piece *piece = &pieces[i];
        if (piece->length == 0)
            continue;
        uint64_t end = piece->local + piece->length;
        bool wraps = end < piece->local || piece->length > INT64_MAX || piece->remote > INT64_MAX ||
                     asked->pieces->total > INT64_MAX - piece->length;
        if (wraps)
            return wf_fail(wf_refusal(), -EINVAL,
                           "pieces[%llu] is %llu bytes at local %llu, remote %llu: offsets, and all lengths together, "
                           "must stay below 2^63",
                           (unsigned long long)i, (unsigned long long)piece->length, (unsigned long long)piece->local,
                           (unsigned long long)piece->remote);
        struct wf_entry entry = {asked->key, piece->remote, piece->length};
        wf_entry_encode(&entry, asked->pieces->upload + (size_t)asked->pieces->count * WF_ENTRY_BYTES);
        wf_pieces_add(asked->pieces, asked->buffer + piece->local, piece->length);
        *low = piece->local < *low ? piece->local : *low;
        *high = end > *high ? end : *high;
    }
    return 0;
}

static int post_list(struct weft_connection *connection, struct asked *asked, const struct weft_piece *pieces,
                     uint64_t count, struct weft_request **out)
{
    int result = check_note(asked->options);
    if (result < 0)
        return result;
    if (count > WF_LIST_ENTRIES_MAX)
        return wf_fail(wf_refusal(), -E2BIG, "count is %llu: a list has at most %d pieces", (unsigned long long)count,
                       WF_LIST_ENTRIES_MAX);
    if (count > 0 && (!pieces || !asked->buffer))
        return wf_fail(wf_refusal(), -EINVAL, "%s is NULL, and count %llu: give both, or a count of 0",
                       pieces ? "base" : "pieces", (unsigned long long)count);
    asked->pieces = wf_pieces_create((uint32_t)count, true);
    if (!asked->pieces)
        return -ENOMEM;
    uint64_t low, high;
    result = gather(asked, pieces, count, &low, &high);
    asked->length = asked->pieces->total;
    if (result < 0) {
        wf_pieces_release(asked->pieces);
        return result;
    }
    if (asked->length > 0) {
        return post_one_sided(connection, asked, low, high, out);
    }
    wf_pieces_release(asked->pieces);
    asked->pieces = NULL;
    asked->offset = 0;
    return post_one(connection, asked, out);
}

int weft_write_list(struct weft_connection *connection, const void *base, const struct weft_piece *pieces,
                    uint64_t count, uint64_t key, const struct weft_options *options, struct weft_request **out)
{
    if (WF_IS_NULL(wf_refusal(), connection) || WF_IS_NULL(wf_refusal(), out))
        return -EINVAL;
    struct asked asked = {WF_REQUEST_WRITE, (uint8_t *)(uintptr_t)base, 0, key, 0, NULL, options, {0}};
    int result = post_list(connection, &asked, pieces, count, out);
    return result < 0 ? wf_refused(__func__, result) : 0;
}

int weft_read_list(struct weft_connection *connection, void *base, const struct weft_piece *pieces, uint64_t count,
                   uint64_t key, const struct weft_options *options, struct weft_request **out)
{
    if (WF_IS_NULL(wf_refusal(), connection) || WF_IS_NULL(wf_refusal(), out))
        return -EINVAL;
    struct asked asked = {WF_REQUEST_READ, base, 0, key, 0, NULL, options, {0}};
    int result = post_list(connection, &asked, pieces, count, out);
    return result < 0 ? wf_refused(__func__, result) : 0;
}
