#include "core/message/inbound.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/channel/lines.h"
#include "core/channel/work.h"
#include "core/ground/reached.h"
#include "core/message/connection.h"
#include "core/message/connection_close.h"
#include "core/message/desk.h"
#include "core/message/inbound_parts.h"
#include "core/message/match.h"
#include "core/message/outbound.h"
#include "core/message/outbound_parts.h"
#include "core/message/served.h"
#include "core/message/stage.h"
#include "core/request/pieces.h"
#include "core/request/request.h"

#define PIECES_AT_ONCE 64 /* pieces of the pool, copied before the lock is taken again */

static uint64_t burst_of(const struct wf_desk *desk, uint64_t total, bool offered)
{
    const struct wf_limits *limits = &desk->terms->limits;
    return offered ? 0 : wf_burst_bytes(total, limits->eager, limits->first_burst);
}

static struct wf_inbound *create(struct weft_connection *connection, enum wf_inbound_kind kind, uint64_t total)
{
    struct wf_inbound *inbound = wf_pool_take_clear(&connection->desk->inbound_pool);
    if (!inbound)
        return NULL;
    wf_range_init(&inbound->arrived);
    wf_link_init(&inbound->hash_link);
    wf_link_init(&inbound->tag_link);
    wf_link_init(&inbound->order_link);
    wf_link_init(&inbound->todo_link);
    wf_link_init(&inbound->region_link);
    inbound->connection = connection;
    inbound->kind = kind;
    inbound->total = total;
    inbound->block = WF_NO_BLOCK;
    connection->inbounds += 1;
    return inbound;
}

static void enter(struct wf_inbound *inbound, uint64_t number)
{
    struct wf_desk *desk = inbound->connection->desk;
    inbound->number = number;
    wf_table_insert(&desk->inbounds, wf_hash(inbound->connection->number, number), &inbound->hash_link);
}

/* Frees the object itself. */
static void release(struct wf_inbound *inbound)
{
    struct wf_desk *desk = inbound->connection->desk;
    if (wf_range_borrowed(&inbound->arrived))
        wf_pool_give(&desk->range_pool, inbound->arrived.ranges);
    wf_link_remove(&inbound->hash_link);
    wf_link_remove(&inbound->todo_link);
    wf_match_remove(inbound);
    wf_stage_in_end(inbound);
    wf_region_release(inbound);
    if (inbound->kind == WF_INBOUND_LIST && inbound->pieces) /* it did not become an upload */
        wf_upload_gone(inbound->connection, inbound->total);
    wf_pieces_release(inbound->pieces);
    inbound->connection->inbounds -= 1;
    desk->answers -= inbound->answer;
    desk->list_bytes -= inbound->list_bytes;
    wf_pool_give(&desk->inbound_pool, inbound);
}

bool wf_inbound_fits(const struct weft_connection *connection, uint64_t total, bool offered)
{
    uint64_t burst = burst_of(connection->desk, total, offered);
    return burst == 0 || wf_blocks_fit(&connection->desk->blocks, burst);
}

struct wf_inbound *wf_inbound_create(struct weft_connection *connection, uint64_t number, uint64_t tag, uint64_t total,
                                     bool offered)
{
    struct wf_desk *desk = connection->desk;
    struct wf_inbound *inbound = create(connection, WF_INBOUND_MESSAGE, total);
    if (!inbound)
        return NULL;
    inbound->tag = tag;
    inbound->offered = offered;
    inbound->burst = burst_of(desk, total, offered);
    inbound->settled = inbound->burst == 0;
    if (inbound->burst) {
        inbound->block = wf_blocks_take(&desk->blocks, inbound->burst);
        if (inbound->block == WF_NO_BLOCK) {
            release(inbound);
            return NULL;
        }
    }
    enter(inbound, number);
    if (number > connection->highest)
        connection->highest = number;
    return inbound;
}

struct wf_inbound *wf_inbound_create_whole(struct weft_connection *connection, const struct wf_frame *frame,
                                           const uint8_t *payload)
{
    struct wf_inbound *inbound = wf_inbound_create(connection, frame->msg, frame->key, frame->total, false);
    if (!inbound)
        return NULL;
    wf_blocks_fill(&connection->desk->blocks, inbound->block, payload, frame->total);
    wf_range_fill(&inbound->arrived, frame->total);
    return inbound;
}

void wf_inbound_take_whole(struct wf_inbound *inbound, void *to)
{
    wf_blocks_read(&inbound->connection->desk->blocks, inbound->block, to, inbound->total);
    wf_inbound_settle(inbound);
    release(inbound);
}

void wf_inbound_name(struct wf_inbound *inbound, uint64_t total, bool offered)
{
    struct wf_desk *desk = inbound->connection->desk;
    inbound->total = total;
    wf_desk_settle(desk, wf_burst_charge(burst_of(desk, total, offered)));
}

struct wf_inbound *wf_inbound_create_reading(struct weft_connection *connection, uint64_t total)
{
    struct wf_inbound *inbound = create(connection, WF_INBOUND_READING, total);
    if (!inbound)
        return NULL;
    inbound->state = WF_INBOUND_MATCHED;
    inbound->settled = true;
    return inbound;
}

void wf_inbound_expect(struct wf_inbound *inbound, uint64_t number)
{
    enter(inbound, number);
}

static struct wf_inbound *find(struct weft_connection *connection, uint64_t number, bool reading)
{
    struct wf_list *list = wf_table_list(&connection->desk->inbounds, wf_hash(connection->number, number));
    WF_LIST_EACH (link, following, list) {
        struct wf_inbound *inbound = WF_CONTAINER(link, struct wf_inbound, hash_link);
        if (inbound->number == number && inbound->connection == connection &&
            (inbound->kind == WF_INBOUND_READING) == reading)
            return inbound;
    }
    return NULL;
}

struct wf_inbound *wf_inbound_find(struct weft_connection *connection, uint64_t number)
{
    return find(connection, number, false);
}

struct wf_inbound *wf_inbound_find_reading(struct weft_connection *connection, uint64_t number)
{
    return find(connection, number, true);
}

int wf_inbound_mark(struct wf_inbound *inbound, uint64_t start, uint64_t end)
{
    int result = wf_range_add(&inbound->arrived, start, end);
    if (result != -ENOSPC || wf_range_borrowed(&inbound->arrived))
        return result;
    struct wf_pool *pool = &inbound->connection->desk->range_pool;
    struct wf_range *array = wf_pool_take(pool);
    if (!array)
        return pool->taken >= pool->limit ? -EPROTO : -ENOMEM;
    wf_range_lend(&inbound->arrived, array, WF_RANGE_MAX);
    return wf_range_add(&inbound->arrived, start, end);
}

int wf_inbound_pool_places(const struct wf_inbound *inbound, uint64_t offset, uint64_t length, struct iovec *iov,
                           int max, uint64_t *covered)
{
    const struct wf_blocks *blocks = &inbound->connection->desk->blocks;
    uint32_t block = inbound->block;
    for (uint64_t skip = offset / WF_BLOCK_BYTES; skip > 0; skip--)
        block = blocks->next[block];
    uint64_t within = offset % WF_BLOCK_BYTES;
    int count = 0;
    *covered = 0;
    while (*covered < length && count < max) {
        uint64_t piece = WF_BLOCK_BYTES - within;
        if (piece > length - *covered)
            piece = length - *covered;
        uint8_t *place = blocks->memory + (size_t)block * WF_BLOCK_BYTES + within;
        /* Neighbouring blocks are one piece: a fresh pool hands them out in order. */
        if (count > 0 && (uint8_t *)iov[count - 1].iov_base + iov[count - 1].iov_len == place)
            iov[count - 1].iov_len += piece;
        else
            iov[count++] = (struct iovec){place, piece};
        *covered += piece;
        within = 0;
        block = blocks->next[block];
    }
    return count;
}

bool wf_inbound_is_scattered(const struct wf_inbound *inbound)
{
    /* A list itself lands in the room for the upload. */
    return inbound->state == WF_INBOUND_MATCHED && inbound->pieces && inbound->kind != WF_INBOUND_LIST;
}

int wf_inbound_places(const struct wf_inbound *inbound, uint64_t offset, uint64_t length, struct iovec *iov, int max,
                      uint64_t *covered)
{
    if (inbound->state != WF_INBOUND_MATCHED || inbound->parked)
        return wf_inbound_pool_places(inbound, offset, length, iov, max, covered);
    if (wf_inbound_is_scattered(inbound))
        return wf_pieces_places(inbound->pieces, offset, length, iov, max, covered);
    iov[0] = (struct iovec){inbound->place + offset, length};
    *covered = length;
    return 1;
}

void wf_inbound_settle(struct wf_inbound *inbound)
{
    struct wf_desk *desk = inbound->connection->desk;
    if (inbound->settled)
        return;
    inbound->settled = true;
    /* The blocks first: credit that is given back may be used at once. */
    wf_blocks_give(&desk->blocks, inbound->block);
    inbound->block = WF_NO_BLOCK;
    wf_desk_settle(desk, wf_burst_charge(inbound->burst));
}

void wf_inbound_copy_out(struct wf_inbound *inbound, uint64_t start, uint64_t end)
{
    struct wf_desk *desk = inbound->connection->desk;
    uint8_t *target = inbound->place;
    if (inbound->device) {
        wf_stage_in_pooled(inbound, start, end);
        return;
    }
    while (start < end) {
        struct iovec pieces[PIECES_AT_ONCE];
        uint64_t covered;
        int count = wf_inbound_pool_places(inbound, start, end - start, pieces, PIECES_AT_ONCE, &covered);
        wf_guard_batch(desk->guard, 0); /* the copy takes long, and other threads work in between */
        wf_guard_unlock(desk->guard);
        uint64_t at = start;
        for (int i = 0; i < count; i++) {
            if (inbound->pieces) /* of the receive: they stay as they are while it has a claim */
                wf_pieces_scatter(inbound->pieces, at, pieces[i].iov_len, pieces[i].iov_base);
            else
                memcpy(target + at, pieces[i].iov_base, pieces[i].iov_len);
            at += pieces[i].iov_len;
        }
        wf_guard_lock(desk->guard);
        start += covered;
    }
}

void wf_inbound_land(struct wf_inbound *inbound)
{
    if (inbound->arrived.covered == 0)
        return;
    /* Bytes that are present now lie in the pool. Later bytes go to the receive's memory. A payload that is already on
     * its way to the pool is copied when it is complete (wf_session_payload_finish). */
    struct wf_range present[WF_RANGE_MAX];
    uint32_t count = inbound->arrived.count;
    memcpy(present, inbound->arrived.ranges, count * sizeof present[0]);
    inbound->claims += 1;
    for (uint32_t i = 0; i < count; i++)
        wf_inbound_copy_out(inbound, present[i].start, present[i].end);
    inbound->claims -= 1;
}

void wf_inbound_todo(struct wf_inbound *inbound)
{
    struct wf_desk *desk = inbound->connection->desk;
    if (!wf_link_in_list(&inbound->todo_link))
        wf_list_push_back(&desk->todo_inbounds[inbound->connection->traffic], &inbound->todo_link);
}

int wf_inbound_answer(struct weft_connection *connection, uint64_t number, int status)
{
    if (connection->desk->answers >= WF_ANSWERS_MAX)
        return -EPROTO;
    struct wf_inbound *inbound = wf_inbound_create(connection, number, 0, WF_TOTAL_UNKNOWN, true);
    if (!inbound)
        return -ENOMEM;
    connection->desk->answers += 1;
    inbound->state = WF_INBOUND_DRAINING;
    inbound->answer = inbound->finished = inbound->refuse_seen = inbound->refuse_due = true;
    inbound->refuse_status = status;
    wf_inbound_todo(inbound);
    return 0;
}

/* The message is refused: channels that write to its place must end their claims. */
static void redirect_claims(struct wf_inbound *inbound)
{
    struct wf_desk *desk = inbound->connection->desk;
    if (inbound->claims == 0)
        return;
    WF_LINES_EACH (channel, desk->lines) {
        if (channel->rx.claim != inbound)
            continue;
        wf_channel_redirects(channel, true);
        wf_kicks_one(desk->kicks, channel->rx.worker->index, NULL);
    }
}

void wf_inbound_refuse_note(struct wf_inbound *inbound, int status)
{
    struct weft_connection *connection = inbound->connection;
    struct wf_inbound *note = wf_inbound_find(connection, inbound->number + 1);
    if (note && note->kind == WF_INBOUND_NOTE && note->after == inbound->number) {
        wf_inbound_refuse(note, status);
        wf_inbound_check(note);
    } else if (!note && inbound->noted && !wf_finished_has(&connection->finished, inbound->number + 1)) {
        note = wf_inbound_create(connection, inbound->number + 1, 0, WF_TOTAL_UNKNOWN, true);
        if (note)
            wf_inbound_refuse(note, status);
        else
            wf_guard_fail(connection->desk->guard, -ENOMEM, "no memory to refuse a notification");
    }
}

void wf_inbound_refuse(struct wf_inbound *inbound, int status)
{
    if (inbound->state == WF_INBOUND_DRAINING || inbound->state == WF_INBOUND_CONFIRMING)
        return;
    WF_REACHED_IF(inbound->state == WF_INBOUND_UNMATCHED, "incoming message UNMATCHED: refused");
    inbound->claims -= inbound->parked;
    inbound->parked = false;
    wf_match_remove(inbound);
    inbound->state = WF_INBOUND_DRAINING;
    inbound->refuse_status = status;
    inbound->grant_due = false;
    redirect_claims(inbound);
    /* A message whose bytes are all here needs no REFUSE: its sender has ended it, unless it waits for the word. */
    bool waits = wf_inbound_confirms(inbound) || inbound->kind == WF_INBOUND_SERVED;
    if ((inbound->arrived.covered < inbound->total || waits) && !inbound->refuse_sent) {
        inbound->refuse_due = true;
        wf_inbound_todo(inbound);
    }
    /* A notification has no notification: else a peer that chains them would make this call recurse without limit. */
    if (inbound->kind != WF_INBOUND_READING && inbound->kind != WF_INBOUND_NOTE)
        wf_inbound_refuse_note(inbound, status);
}

/* Its number has ended: the peer may introduce another message. */
static void finish_number(struct wf_inbound *inbound)
{
    inbound->finished = true;
    wf_connection_finish_number(inbound->connection, inbound->number);
}

static void destroy(struct wf_inbound *inbound)
{
    struct weft_connection *connection = inbound->connection;
    uint64_t number = inbound->number;
    bool ours = inbound->kind == WF_INBOUND_READING, finished = inbound->finished;
    struct wf_outbound *asks = ours ? inbound->partner : NULL;
    wf_inbound_settle(inbound);
    connection->pins += 1;
    release(inbound);
    if (!ours && !finished)
        wf_connection_finish_number(connection, number);
    if (asks)
        wf_outbound_answered(asks);
    connection->pins -= 1;
    wf_connection_check(connection);
}

void wf_inbound_forget(struct wf_inbound *inbound)
{
    release(inbound);
}

void wf_inbound_served(struct wf_inbound *inbound)
{
    inbound->partner = NULL;
    destroy(inbound);
}

static void finish_receive(struct wf_inbound *inbound, int status, uint64_t bytes)
{
    struct weft_request *request = inbound->request;
    if (!request)
        return;
    inbound->request = NULL;
    inbound->watched = false;
    request->inbound = NULL;
    if (inbound->kind == WF_INBOUND_READING) {
        request->outbound = NULL;
        inbound->partner->request = NULL;
    } else {
        request->tag = inbound->tag;
    }
    wf_request_part_done(request, status, bytes);
}

/* All bytes of it are where they belong. */
static void landed(struct wf_inbound *inbound)
{
    if (inbound->kind == WF_INBOUND_LIST)
        wf_upload_complete(inbound);
    finish_receive(inbound, 0, inbound->total);
    if (!wf_inbound_confirms(inbound)) {
        WF_REACHED("incoming message MATCHED: all bytes present and no claim left");
        destroy(inbound);
        return;
    }
    WF_REACHED_IF(inbound->kind == WF_INBOUND_WRITE, "incoming message MATCHED: the same, of a write");
    WF_REACHED_IF(inbound->kind == WF_INBOUND_MESSAGE,
                  "incoming message MATCHED: the same, of a message whose sender waits for that");
    /* Its number ends now, so that a notification need not wait for the word to be sent. */
    inbound->state = WF_INBOUND_CONFIRMING;
    wf_stage_in_end(inbound);
    inbound->grant_due = true;
    wf_inbound_todo(inbound);
    wf_region_release(inbound);
    inbound->connection->confirming += 1;
    finish_number(inbound);
}

void wf_inbound_check(struct wf_inbound *inbound)
{
    if (inbound->claims > 0)
        return;
    bool full = inbound->arrived.covered == inbound->total;
    switch (inbound->state) {
    case WF_INBOUND_MATCHED:
        if (wf_range_prefix(&inbound->arrived, inbound->burst))
            wf_inbound_settle(inbound);
        if (full && inbound->kind != WF_INBOUND_SERVED)
            landed(inbound);
        break;
    case WF_INBOUND_CONFIRMING:
        if (!inbound->grant_due) {
            WF_REACHED("incoming message CONFIRMING: GRANT is sent");
            wf_connection_confirmed(inbound->connection);
            destroy(inbound);
        }
        break;
    case WF_INBOUND_DRAINING:
        finish_receive(inbound, inbound->refuse_status, 0);
        wf_region_release(inbound);
        /* Bytes may come until the sender's REFUSE has come: they must still find the number. */
        if ((full && !inbound->refuse_due) || (inbound->refuse_seen && inbound->refuse_sent)) {
            WF_REACHED_IF(full, "incoming message DRAINING: the rest of it has come");
            WF_REACHED_IF(!full, "incoming message DRAINING: REFUSE sent and received");
            destroy(inbound);
        }
        break;
    case WF_INBOUND_EARLY:
    case WF_INBOUND_UNMATCHED:
        break;
    }
}
