#include "core/message/stage.h"

#include <errno.h>

#include "core/channel/lines.h"
#include "core/device/device.h"
#include "core/device/transit.h"
#include "core/message/connection.h"
#include "core/message/connection_close.h"
#include "core/message/desk.h"
#include "core/message/match.h"
#include "core/message/outbound_parts.h"
#include "core/request/request.h"

/* Slots filled ahead of what channels have taken: one for each bulk channel that may ask at the same moment, and a few
 * so that the next copy runs while they send. More would only push the bytes out of the cache. */
#define SLOTS_AHEAD 6

/* Slots that a write leaves free before it is introduced. It may wait for the peer's limit of introductions, which may
 * only grow when introduced messages get a slot and end. */
#define SLOTS_LEFT 2

static struct wf_slot *slot_of(struct wf_link *link)
{
    return WF_CONTAINER(link, struct wf_slot, link);
}

/* Bytes from the start of the message that may be in slots now. */
static uint64_t allowed(const struct wf_outbound *outbound)
{
    const struct wf_desk *desk = outbound->connection->desk;
    /* A session that fails sends nothing any more, and when it is DEAD the memory is the user's again. */
    if (desk->guard->state == WF_SESSION_FAILED || desk->guard->state == WF_SESSION_DEAD)
        return outbound->claimed;
    if (outbound->lent || outbound->stopped || outbound->refused || outbound->doomed || outbound->waits)
        return outbound->claimed;
    bool unasked = outbound->kind == WF_OUTBOUND_WRITE || wf_outbound_is_small(outbound);
    uint64_t limit = outbound->introduced ? outbound->sendable : unasked ? outbound->total : 0;
    int channels = desk->lines->bulk_count[outbound->connection->traffic];
    uint64_t ahead = (uint64_t)(channels + SLOTS_AHEAD) * desk->guard->world->tuning.chunk;
    return limit < outbound->next + ahead ? limit : outbound->next + ahead;
}

/* Small messages have slots of their own. A large one is for bytes that need not wait for the peer any more. `again`:
 * for bytes that go before all others, which may have the session's share of slots already. */
static struct wf_slot *take_slot(struct wf_outbound *outbound, bool again)
{
    uint32_t spare = again ? WF_SLOT_ANY : 0;
    struct wf_device_share *share = wf_device_share(outbound->connection->desk->shares, outbound->device);
    if (!share)
        return NULL;
    struct wf_slot *slot = NULL;
    bool sure = outbound->introduced || outbound->kind == WF_OUTBOUND_WRITE;
    if (wf_outbound_is_small(outbound))
        slot = wf_slot_take(&outbound->device->pools[WF_COPY_OUT][WF_SLOT_SMALL],
                            &share->accounts[WF_COPY_OUT][WF_SLOT_SMALL], spare);
    if (!slot && (sure || !wf_outbound_is_small(outbound)))
        slot = wf_slot_take(&outbound->device->pools[WF_COPY_OUT][WF_SLOT_LARGE],
                            &share->accounts[WF_COPY_OUT][WF_SLOT_LARGE], outbound->introduced ? spare : SLOTS_LEFT);
    return slot;
}

static void ended(struct wf_transit *transit);

static void name(const struct wf_transit *transit, struct wf_trace_event *event)
{
    const struct wf_outbound *outbound = transit->outbound;
    event->tag = outbound->tag;
    event->endpoint = outbound->connection->local_endpoint;
    event->remote = outbound->connection->remote_endpoint;
}

static const struct wf_transit_ops out_ops = {.start = wf_stage_start, .name = name, .ended = ended};

/* Before the first slot with later bytes. Most are the last. */
static void insert_slot(struct wf_outbound *outbound, struct wf_slot *slot)
{
    struct wf_link *place = &outbound->slots.head;
    while (place->prev != &outbound->slots.head && slot_of(place->prev)->start > slot->start)
        place = place->prev;
    wf_link_insert_before(&slot->link, place);
}

/* A slot for bytes from `start` on, up to `limit` at most; NULL: none is free. */
static struct wf_slot *stage_range(struct wf_outbound *outbound, uint64_t start, uint64_t limit, bool again)
{
    struct wf_desk *desk = outbound->connection->desk;
    struct wf_slot *slot = take_slot(outbound, again);
    struct wf_transit *transit = slot ? wf_transit_take(desk->shares, outbound->device, WF_COPY_OUT, &out_ops) : NULL;
    if (!transit) {
        if (slot) { /* no memory: no event tells when there is some, so look again */
            wf_slot_give(slot);
            wf_shares_look_again(desk->shares);
        }
        return NULL;
    }
    uint64_t bytes = limit - start;
    slot->start = start;
    slot->length = (uint32_t)(bytes < slot->pool->slot_bytes ? bytes : slot->pool->slot_bytes);
    insert_slot(outbound, slot);
    transit->outbound = outbound;
    transit->slot = slot;
    transit->start = slot->start;
    transit->end = slot->start + slot->length;
    outbound->in_engine += 1;
    wf_transit_queue(transit);
    return slot;
}

/* One more slot, up to `limit`. */
static bool stage_one(struct wf_outbound *outbound, uint64_t limit)
{
    const struct wf_slot *slot = stage_range(outbound, outbound->claimed, limit, false);
    if (slot)
        outbound->claimed += slot->length;
    return slot;
}

/* Is a slot worth taking? A large slot is filled to its end, or to the end of the message or its grant. */
static bool worth_it(const struct wf_outbound *outbound, uint64_t limit)
{
    uint64_t full = outbound->introduced ? outbound->sendable : outbound->total;
    return limit > outbound->claimed &&
           (limit == full || limit - outbound->claimed >= outbound->connection->desk->guard->world->tuning.chunk);
}

static enum wf_slot_size size_for(const struct wf_outbound *outbound)
{
    return wf_outbound_is_small(outbound) ? WF_SLOT_SMALL : WF_SLOT_LARGE;
}

static void wait_for_slot(struct wf_outbound *outbound, struct wf_device_share *share)
{
    wf_list_push_back(&outbound->connection->desk->stage_waiting, &outbound->stage_link);
    outbound->stage_known = outbound->introduced;
    if (share)
        share->waiting[size_for(outbound)][outbound->stage_known] += 1;
}

void wf_stage_out_withdraw(struct wf_outbound *outbound)
{
    if (!outbound->device || !wf_link_in_list(&outbound->stage_link))
        return;
    struct wf_device_share *share = outbound->connection->desk->shares->each[outbound->device->index];
    wf_link_remove(&outbound->stage_link);
    uint32_t *waiting = share ? &share->waiting[size_for(outbound)][outbound->stage_known] : NULL;
    if (waiting && *waiting > 0) /* 0: there was no memory to count it */
        *waiting -= 1;
}

void wf_stage_out_more(struct wf_outbound *outbound)
{
    struct wf_desk *desk = outbound->connection->desk;
    if (!outbound->device)
        return;
    if (wf_link_in_list(&outbound->stage_link)) { /* it may be for other slots now */
        wf_shares_look_again(desk->shares);
        return;
    }
    uint64_t limit = allowed(outbound);
    if (!worth_it(outbound, limit))
        return;
    /* Wait only behind messages that need the same kind of slot: another kind may never come free. Introduced messages
     * go first: the end of one may be needed to introduce the next. */
    struct wf_device_share *share = wf_device_share(desk->shares, outbound->device);
    const uint32_t *waiting = share ? share->waiting[size_for(outbound)] : NULL;
    bool turn = waiting && waiting[1] == 0 && (outbound->introduced || waiting[0] == 0);
    while (turn && worth_it(outbound, limit))
        turn = stage_one(outbound, limit);
    if (worth_it(outbound, limit))
        wait_for_slot(outbound, share);
}

void wf_stage_out_forget(struct wf_desk *desk)
{
    WF_LIST_EACH (link, following, &desk->stage_waiting) {
        wf_stage_out_withdraw(WF_CONTAINER(link, struct wf_outbound, stage_link));
    }
}

/* Gives each waiting message one slot, in turn, until none gets one. A message whose kind of slot is not free does not
 * stop the others. */
void wf_stage_out_retry(struct wf_desk *desk)
{
    /* Clear the flag first: a slot returned during the loop sets it again. */
    bool any = !wf_list_empty(&desk->stage_waiting) && wf_shares_take_look(desk->shares);
    while (any) {
        any = false;
        WF_LIST_EACH (link, following, &desk->stage_waiting) {
            struct wf_outbound *outbound = WF_CONTAINER(link, struct wf_outbound, stage_link);
            uint64_t limit = allowed(outbound);
            bool took = worth_it(outbound, limit) && stage_one(outbound, limit), more = worth_it(outbound, limit);
            any |= took;
            if (took || !more)
                wf_stage_out_withdraw(outbound);
            if (took && more)
                wait_for_slot(outbound, desk->shares->each[outbound->device->index]);
        }
    }
}

bool wf_stage_out_soon(const struct wf_outbound *outbound)
{
    bool needed = outbound->device && outbound->total > 0 && !outbound->refused && !outbound->waits;
    if (!needed || !wf_outbound_is_small(outbound) || outbound->kind == WF_OUTBOUND_READ)
        return false;
    /* A write is never offered: it waits until a slot is free. */
    return outbound->staged < outbound->total && (outbound->claimed > 0 || outbound->kind == WF_OUTBOUND_WRITE);
}

int wf_stage_out_places(const struct wf_outbound *outbound, uint64_t offset, uint64_t length, struct iovec *iov,
                        int max, uint64_t *covered)
{
    int count = 0;
    *covered = 0;
    WF_LIST_EACH (link, following, &outbound->slots) {
        const struct wf_slot *slot = slot_of(link);
        uint64_t at = offset + *covered;
        if (*covered == length || count == max)
            break;
        if (at < slot->start || at >= slot->start + slot->length)
            continue;
        uint64_t left = slot->start + slot->length - at;
        uint64_t bytes = left < length - *covered ? left : length - *covered;
        if (iov)
            iov[count] = (struct iovec){slot->memory + (at - slot->start), bytes};
        count += 1;
        *covered += bytes;
    }
    return count;
}

uint64_t wf_stage_out_fit(const struct wf_outbound *outbound, uint64_t offset, uint64_t length, int max)
{
    uint64_t covered;
    wf_stage_out_places(outbound, offset, length, NULL, max, &covered);
    return covered;
}

/* The first of the bytes from `at` on that no slot has, or is about to have; `*ready`: those before it are in slots.
 * `end`: none. */
static uint64_t first_missing(const struct wf_outbound *outbound, uint64_t at, uint64_t end, bool *ready)
{
    *ready = true;
    WF_LIST_EACH (link, following, &outbound->slots) {
        const struct wf_slot *slot = slot_of(link);
        if (at < slot->start || at >= slot->start + slot->length)
            continue;
        *ready &= slot->ready;
        at = slot->start + slot->length;
        if (at >= end)
            return end;
    }
    return at;
}

/* The start of the first slot with bytes behind `at`; `end`: there is none before. */
static uint64_t next_slot(const struct wf_outbound *outbound, uint64_t at, uint64_t end)
{
    WF_LIST_EACH (link, following, &outbound->slots) {
        if (slot_of(link)->start > at)
            return slot_of(link)->start < end ? slot_of(link)->start : end;
    }
    return end;
}

bool wf_stage_out_again(struct wf_outbound *outbound, uint64_t offset, uint32_t length)
{
    uint64_t end = offset + length, at;
    bool ready;
    while ((at = first_missing(outbound, offset, end, &ready)) < end) {
        if (!stage_range(outbound, at, next_slot(outbound, at, end), true))
            return false;
    }
    return ready;
}

/* Bytes that went from the message's own memory may be acknowledged while a copy to the slot is still under way. */
static void give_if_over(struct wf_slot *slot)
{
    if (slot->ready && slot->retired == slot->length)
        wf_slot_give(slot);
}

void wf_stage_out_retire(struct wf_outbound *outbound, uint64_t offset, uint32_t length)
{
    uint64_t end = offset + length;
    WF_LIST_EACH (link, following, &outbound->slots) {
        struct wf_slot *slot = slot_of(link);
        uint64_t first = slot->start > offset ? slot->start : offset;
        uint64_t last = slot->start + slot->length < end ? slot->start + slot->length : end;
        if (first >= last)
            continue;
        slot->retired += (uint32_t)(last - first);
        give_if_over(slot);
    }
}

void wf_stage_out_drop(struct wf_outbound *outbound)
{
    struct wf_link *link;
    wf_stage_out_withdraw(outbound);
    while ((link = wf_list_first(&outbound->slots)))
        wf_slot_give(slot_of(link));
}

/* Bytes that are in slots from the start of the message, without a gap. */
static void advance(struct wf_outbound *outbound)
{
    WF_LIST_EACH (link, following, &outbound->slots) {
        const struct wf_slot *slot = slot_of(link);
        uint64_t end = slot->start + slot->length;
        if (end <= outbound->staged)
            continue;
        if (slot->start > outbound->staged || !slot->ready)
            return;
        outbound->staged = end;
    }
}

static void ended(struct wf_transit *transit)
{
    struct wf_outbound *outbound = transit->outbound;
    struct weft_connection *connection = outbound->connection;
    struct wf_desk *desk = connection->desk;
    connection->pins += 1;
    if (transit->result == 0) {
        transit->slot->ready = true;
        advance(outbound);
        give_if_over(transit->slot);
    }
    wf_outbound_staged(outbound, transit);
    connection->pins -= 1;
    wf_connection_check(connection);
    wf_match_notes(desk);
}
