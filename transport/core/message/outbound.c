#include "core/message/outbound.h"

#include <errno.h>
#include <string.h>

#include "core/channel/channel.h"
#include "core/channel/lines.h"
#include "core/device/turn.h"
#include "core/ground/reached.h"
#include "core/message/connection.h"
#include "core/message/connection_close.h"
#include "core/message/desk.h"
#include "core/message/detach.h"
#include "core/message/inbound.h"
#include "core/message/inbound_parts.h"
#include "core/message/outbound_parts.h"
#include "core/message/served.h"
#include "core/message/stage.h"
#include "core/request/pieces.h"
#include "core/request/request.h"

/* --- life --- */

struct wf_outbound *wf_outbound_create(struct weft_connection *connection, enum wf_outbound_kind kind, uint64_t total)
{
    struct wf_outbound *outbound = wf_pool_take_clear(&connection->desk->outbound_pool);
    if (!outbound)
        return NULL;
    wf_link_init(&outbound->queue_link);
    wf_link_init(&outbound->hash_link);
    wf_link_init(&outbound->behind_link);
    wf_link_init(&outbound->todo_link);
    wf_link_init(&outbound->stage_link);
    wf_list_init(&outbound->slots);
    outbound->connection = connection;
    outbound->kind = kind;
    outbound->confirms = kind == WF_OUTBOUND_WRITE;
    outbound->total = total;
    connection->outbounds += 1;
    return outbound;
}

void wf_outbound_leave_line(struct wf_outbound *outbound)
{
    struct weft_connection *connection = outbound->connection;
    if (outbound->in_line && wf_outbound_is_express(outbound))
        connection->small_pending -= 1;
    else if (outbound->in_line)
        connection->desk->in_line[connection->traffic] -= wf_ready_unasked(outbound);
    outbound->in_line = false;
    wf_link_remove(&outbound->queue_link);
}

void wf_outbound_join_line(struct wf_outbound *outbound, bool first)
{
    struct weft_connection *connection = outbound->connection;
    outbound->in_line = true;
    if (wf_outbound_is_express(outbound))
        connection->small_pending += 1;
    else
        connection->desk->in_line[connection->traffic] += wf_ready_unasked(outbound);
    if (first)
        wf_list_push_front(&connection->pending, &outbound->queue_link);
    else
        wf_list_push_back(&connection->pending, &outbound->queue_link);
}

void wf_outbound_queue(struct wf_outbound *outbound)
{
    struct weft_connection *connection = outbound->connection;
    outbound->order = connection->next_order++;
    /* A large write is not matched: it needs no place in the line, and must not delay messages there. */
    if (outbound->kind == WF_OUTBOUND_WRITE && !wf_outbound_is_express(outbound))
        wf_list_push_back(&connection->writes, &outbound->queue_link);
    else
        wf_outbound_join_line(outbound, false);
    if (outbound->device)
        wf_stage_out_more(outbound);
    wf_ready_queued(outbound);
}

void wf_outbound_drop(struct wf_outbound *outbound)
{
    struct weft_connection *connection = outbound->connection;
    struct wf_desk *desk = connection->desk;
    wf_outbound_leave_line(outbound);
    wf_link_remove(&outbound->hash_link);
    wf_link_remove(&outbound->behind_link);
    wf_link_remove(&outbound->todo_link);
    if (outbound->slot)
        wf_pool_give(&desk->slot_pool, outbound->slot);
    wf_stage_out_drop(outbound);
    wf_pieces_release(outbound->pieces);
    wf_pool_give(&desk->outbound_pool, outbound);
    connection->outbounds -= 1;
}

void wf_outbound_destroy(struct wf_outbound *outbound)
{
    struct weft_connection *connection = outbound->connection;
    struct wf_outbound last = *outbound;
    wf_outbound_drop(outbound);
    connection->pins += 1;
    if (last.counted)
        wf_connection_list_ended(connection);
    if (last.waiter || last.subject || last.counted || last.kind == WF_OUTBOUND_REPLY)
        wf_guard_stir(connection->desk->guard);
    if (last.note) /* the operation has ended, its notification has not */
        last.note->subject = NULL;
    if (last.subject) {
        last.subject->note = NULL;
        if (last.subject->deferred)
            wf_outbound_refuse(last.subject, last.subject->deferred);
    }
    if (last.waiter) {
        last.waiter->list = NULL;
        last.waiter->listed = !last.refused;
        last.waiter->key = last.number;
        if (last.refused)
            wf_outbound_refuse(last.waiter, last.status);
        else
            wf_outbound_queue(last.waiter);
    }
    if (last.kind == WF_OUTBOUND_REPLY)
        wf_inbound_served(last.counterpart);
    connection->pins -= 1;
    wf_connection_ready(connection);
    wf_connection_check(connection);
}

void wf_outbound_complete(struct wf_outbound *outbound, int status)
{
    struct weft_request *request = outbound->request;
    if (!request)
        return;
    outbound->request = NULL;
    outbound->watched = false;
    if (request->outbound == outbound)
        request->outbound = NULL;
    if (request->note == outbound)
        request->note = NULL;
    wf_request_part_done(request, status, request->length);
}

void wf_outbound_check(struct wf_outbound *outbound)
{
    if (outbound->in_engine > 0)
        return;
    if (outbound->refused)
        wf_outbound_complete(outbound, outbound->status);
    if (outbound->refused && outbound->kind == WF_OUTBOUND_REPLY)
        wf_region_release(outbound->counterpart);
    if (outbound->unacknowledged > 0 || !outbound->introduced)
        return;
    if (outbound->kind == WF_OUTBOUND_READ && outbound->counterpart)
        return; /* it ends with its landing */
    if (outbound->kind == WF_OUTBOUND_LIST && outbound->refuse_due)
        return; /* REFUSE must go first: the peer may keep the whole list for an operation that will not come */
    bool all = outbound->next == outbound->total && outbound->retired == outbound->total && !outbound->torn;
    if (outbound->confirms && !outbound->confirmed && !(outbound->refused && outbound->kind == WF_OUTBOUND_WRITE))
        all = false; /* acknowledged may also mean drained, or that a message waits for its receive */
    if (all && !outbound->refused)
        wf_outbound_complete(outbound, 0);
    if (all || (outbound->refuse_sent && outbound->refuse_seen))
        wf_outbound_destroy(outbound);
}

struct wf_outbound *wf_outbound_begin(struct weft_connection *connection, struct weft_request *request)
{
    struct wf_desk *desk = connection->desk;
    bool notifies = request->kind == WF_REQUEST_NOTIFY;
    struct wf_outbound *outbound =
        wf_outbound_create(connection, notifies ? WF_OUTBOUND_NOTE : WF_OUTBOUND_MESSAGE, request->length);
    if (!outbound)
        return NULL;
    outbound->request = request;
    outbound->data = request->buffer;
    outbound->tag = request->tag;
    outbound->device = request->device;
    outbound->waits = request->turn;
    outbound->confirms = request->flags & WEFT_SYNC;
    outbound->watched = request->watcher;
    request->outbound = outbound;
    if (wf_outbound_is_small(outbound) && !outbound->device && !outbound->confirms) {
        if (outbound->total > 0)
            outbound->slot = wf_pool_take(&desk->slot_pool);
        if (outbound->slot && request->pieces)
            wf_pieces_gather(request->pieces, 0, outbound->total, outbound->slot);
        else if (outbound->slot)
            memcpy(outbound->slot, outbound->data, outbound->total);
        if (outbound->slot || outbound->total == 0) {
            outbound->data = outbound->slot;
            outbound->request = NULL;
            outbound->watched = false;
            request->outbound = NULL;
            wf_request_complete_early(request);
            return outbound;
        }
    }
    if (request->pieces) { /* from here on it is not small, whatever its size */
        outbound->pieces = request->pieces;
        wf_pieces_hold(outbound->pieces);
    }
    return outbound;
}

struct wf_outbound *wf_outbound_find(struct weft_connection *connection, uint64_t number, bool reply)
{
    struct wf_list *list = wf_table_list(&connection->desk->outbounds, wf_hash(connection->number, number));
    WF_LIST_EACH (link, following, list) {
        struct wf_outbound *outbound = WF_CONTAINER(link, struct wf_outbound, hash_link);
        if (outbound->number == number && outbound->connection == connection &&
            (outbound->kind == WF_OUTBOUND_REPLY) == reply)
            return outbound;
    }
    return NULL;
}

static void make_known(struct wf_outbound *outbound)
{
    const struct weft_connection *connection = outbound->connection;
    outbound->introduced = true;
    wf_table_insert(&connection->desk->outbounds, wf_hash(connection->number, outbound->number), &outbound->hash_link);
}

void wf_outbound_introduce(struct wf_outbound *outbound)
{
    WF_REACHED_IF(outbound->connection->state == WF_CONNECTION_OPEN, "connection OPEN: send");
    struct weft_connection *connection = outbound->connection;
    wf_outbound_leave_line(outbound);
    if (outbound->number == 0)
        outbound->number = connection->next_number++;
    make_known(outbound);
    struct wf_outbound *note = outbound->note;
    if (!note || note->late)
        return;
    outbound->noted = true;
    note->number = connection->next_number++;
    note->base = outbound->number;
    note->order = outbound->order;
    wf_outbound_join_line(note, true);
}

/* The flags that tell what kind of message it is. */
static uint8_t flags_of(const struct wf_outbound *outbound)
{
    unsigned more = (outbound->noted ? WF_FLAG_NOTIFY : 0u) | (outbound->listed ? WF_FLAG_LIST : 0u);
    switch (outbound->kind) {
    case WF_OUTBOUND_WRITE:
        return (uint8_t)(WF_FLAG_WRITE | more);
    case WF_OUTBOUND_READ:
        return (uint8_t)more;
    case WF_OUTBOUND_REPLY:
        return WF_FLAG_READ_REPLY | WF_FLAG_PEER;
    case WF_OUTBOUND_NOTE:
        return WF_FLAG_NOTIFY;
    case WF_OUTBOUND_LIST:
        return WF_FLAG_LIST;
    case WF_OUTBOUND_MESSAGE:
        break;
    }
    return WF_FLAG_TAGGED;
}

void wf_outbound_frame(const struct wf_outbound *outbound, enum wf_frame_type type, struct wf_frame *frame)
{
    bool remote = outbound->kind == WF_OUTBOUND_WRITE || outbound->kind == WF_OUTBOUND_READ;
    *frame = (struct wf_frame){.type = (uint8_t)type,
                               .flags = flags_of(outbound),
                               .data_off = WF_FRAME_BYTES,
                               .conn = outbound->connection->number,
                               .msg = outbound->number,
                               .total = outbound->total,
                               .key = remote ? outbound->key : outbound->tag,
                               .base = outbound->base};
    if (outbound->kind == WF_OUTBOUND_MESSAGE && outbound->confirms)
        frame->base = WF_BASE_LANDED;
}

void wf_outbound_allow(struct wf_outbound *outbound, uint64_t sendable)
{
    if (!outbound->stopped)
        wf_outbound_wait(outbound, (int64_t)(sendable - outbound->sendable));
    outbound->sendable = sendable;
    wf_stage_out_more(outbound);
}

static bool can_send(const struct wf_outbound *outbound)
{
    return outbound->next < wf_outbound_ready(outbound) && outbound->unacknowledged < WF_CHUNKS_UNACKNOWLEDGED &&
           !outbound->stopped;
}

/* The same for one that goes on device channels. */
static void requeue_detached(struct wf_outbound *outbound)
{
    struct wf_desk *desk = outbound->connection->desk;
    bool queued = wf_link_in_list(&outbound->queue_link), can = can_send(outbound);
    if (can && !queued)
        wf_list_push_back(&desk->detached[outbound->detached - 1], &outbound->queue_link);
    else if (!can && queued)
        wf_link_remove(&outbound->queue_link);
    if (can)
        wf_detached_offer(outbound);
}

void wf_outbound_requeue(struct wf_outbound *outbound)
{
    if (outbound->detached > 0) {
        if (!wf_detached_revise(outbound))
            requeue_detached(outbound);
        return;
    }
    bool queued = wf_link_in_list(&outbound->queue_link);
    if (!outbound->introduced)
        return;
    bool small = outbound->total <= outbound->connection->desk->terms->chunk; /* it does not wait behind a large one */
    if (can_send(outbound) && !queued && small)
        wf_list_push_front(&outbound->connection->sending, &outbound->queue_link);
    else if (can_send(outbound) && !queued)
        wf_list_push_back(&outbound->connection->sending, &outbound->queue_link);
    else if (!can_send(outbound) && queued)
        wf_link_remove(&outbound->queue_link);
    wf_connection_ready(outbound->connection);
}

void wf_outbound_reply(struct wf_outbound *outbound, uint64_t number)
{
    outbound->number = number;
    make_known(outbound);
    wf_outbound_allow(outbound, outbound->total);
    wf_outbound_requeue(outbound);
}

int wf_outbound_places(const struct wf_outbound *outbound, uint64_t offset, uint64_t length, struct iovec *iov, int max,
                       uint64_t *covered)
{
    if (outbound->device)
        return wf_stage_out_places(outbound, offset, length, iov, max, covered);
    if (wf_outbound_is_scattered(outbound))
        return wf_pieces_places(outbound->pieces, offset, length, iov, max, covered);
    iov[0] = (struct iovec){(void *)(uintptr_t)(outbound->data + offset), length};
    *covered = length;
    return 1;
}

int wf_outbound_grant(struct wf_outbound *outbound, uint64_t sendable, uint64_t domain)
{
    if (sendable > outbound->total || outbound->kind == WF_OUTBOUND_READ)
        return -EPROTO;
    if (outbound->kind == WF_OUTBOUND_WRITE)
        return wf_outbound_landed(outbound, sendable);
    if (sendable > outbound->granted)
        outbound->granted = sendable;
    if (domain > 0) /* first: what a card reads from its place is not staged */
        wf_detach(outbound, domain - 1);
    if (sendable > outbound->sendable)
        wf_outbound_allow(outbound, sendable);
    wf_outbound_requeue(outbound);
    return 0;
}

int wf_outbound_landed(struct wf_outbound *outbound, uint64_t total)
{
    if (!outbound->confirms || total != outbound->total || outbound->next != outbound->total)
        return -EPROTO;
    outbound->confirmed = true;
    wf_outbound_check(outbound);
    return 0;
}

/* Was this the only frame of a copied message? Then only its slot and its number are left to be freed. */
static bool is_last_of_copied(const struct wf_outbound *outbound, uint32_t length)
{
    return outbound->kind == WF_OUTBOUND_MESSAGE && !outbound->request && length == outbound->total &&
           outbound->unacknowledged == 1 && outbound->in_engine == 0 && !outbound->pieces && !outbound->device &&
           !outbound->refused && !outbound->torn;
}

static void retire_copied(struct wf_outbound *outbound)
{
    struct weft_connection *connection = outbound->connection;
    struct wf_desk *desk = connection->desk;
    wf_link_remove(&outbound->hash_link);
    if (outbound->slot)
        wf_pool_give(&desk->slot_pool, outbound->slot);
    wf_pool_give(&desk->outbound_pool, outbound);
    connection->outbounds -= 1;
    wf_connection_check(connection);
}

void wf_outbound_retire(struct wf_outbound *outbound, uint64_t offset, uint32_t length)
{
    if (is_last_of_copied(outbound, length)) {
        retire_copied(outbound);
        return;
    }
    wf_outbound_count(outbound, -1);
    wf_link_remove(&outbound->behind_link); /* the peer has heard of it */
    outbound->retired += length;
    if (outbound->device)
        wf_stage_out_retire(outbound, offset, length);
    wf_outbound_requeue(outbound);
    wf_outbound_check(outbound);
}

void wf_outbound_abandon(struct wf_outbound *outbound)
{
    outbound->torn = true;
    wf_outbound_count(outbound, -1);
    wf_outbound_check(outbound);
}

void wf_outbound_released(struct wf_outbound *outbound)
{
    outbound->in_engine -= 1;
    wf_outbound_check(outbound);
}

void wf_outbound_answered(struct wf_outbound *outbound)
{
    wf_outbound_complete(outbound, 0); /* done before: the landing completes the request */
    outbound->counterpart = NULL;
    struct wf_outbound *note = outbound->note;
    if (note && note->late) { /* the READ succeeded: a failed one refuses its notification before it ends */
        note->late = false;
        note->base = outbound->number;
        wf_outbound_queue(note);
        wf_guard_stir(outbound->connection->desk->guard);
    }
    wf_outbound_destroy(outbound);
}

/* --- device memory --- */

/* A copy on a device failed: notes the device in the request, and refuses the message. */
static void copy_failed(struct wf_outbound *outbound, const struct wf_transit *transit)
{
    if (outbound->request)
        wf_request_note_mishap(outbound->request, transit);
    if (outbound->kind == WF_OUTBOUND_REPLY)
        wf_onesided_reply_failed(outbound->counterpart, transit->result);
    else
        wf_outbound_refuse(outbound, transit->result);
}

void wf_outbound_staged(struct wf_outbound *outbound, const struct wf_transit *transit)
{
    struct weft_connection *connection = outbound->connection;
    outbound->in_engine += 1; /* keeps `outbound` until the end of this function */
    if (transit->result < 0)
        copy_failed(outbound, transit);
    bool small = outbound->kind == WF_OUTBOUND_MESSAGE && wf_outbound_is_small(outbound);
    if (small && !outbound->confirms && outbound->staged == outbound->total && !outbound->refused &&
        !outbound->doomed && outbound->in_engine == 2)
        wf_outbound_complete(outbound, 0);
    outbound->in_engine -= 2;
    if (outbound->doomed && outbound->in_engine == 0) {
        int status = outbound->doomed;
        outbound->doomed = 0;
        wf_outbound_refuse_unheard(outbound, status);
        return;
    }
    wf_outbound_requeue(outbound);
    wf_connection_ready(connection);
    wf_outbound_check(outbound);
}

bool wf_outbound_direct_ended(struct wf_outbound *outbound, const struct wf_transit *transit)
{
    bool delivered = transit->result == 0 && !outbound->refused;
    if (transit->result < 0)
        copy_failed(outbound, transit);
    else if (delivered)
        outbound->sendable = outbound->next = outbound->retired = outbound->total;
    outbound->in_engine -= 1;
    wf_outbound_check(outbound);
    return delivered;
}
