#include "core/message/stage.h"

#include <errno.h>
#include <string.h>

#include "core/channel/channel.h"
#include "core/channel/half_state.h"
#include "core/channel/payload.h"
#include "core/device/device.h"
#include "core/device/transit.h"
#include "core/ground/reached.h"
#include "core/message/connection.h"
#include "core/message/connection_close.h"
#include "core/message/desk.h"
#include "core/message/inbound.h"
#include "core/message/match.h"
#include "core/message/outbound.h"
#include "core/request/pieces.h"
#include "core/request/request.h"

#define PIECES_AT_ONCE 256
#define UNPINNED_PIECE (64u * 1024) /* a larger copy of unpinned memory may wait for the copies before it */
#define WINDOW_SLOTS_MIN 2
#define WINDOW_PART 8 /* of the slots: on several rails chunks come in parts, and each part takes a slot */

/* How far a message may be ahead of its copies: a multiple of a chunk. */
static uint64_t window(const struct wf_inbound *inbound)
{
    const struct wf_desk *desk = inbound->connection->desk;
    const struct wf_slot_pool *pool = &inbound->device->pools[WF_COPY_IN][WF_SLOT_LARGE];
    uint32_t landings = atomic_load_explicit(&inbound->device->landings, memory_order_relaxed);
    uint32_t slots = pool->count / WINDOW_PART / (landings ? landings : 1);
    return (uint64_t)(slots > WINDOW_SLOTS_MIN ? slots : WINDOW_SLOTS_MIN) * desk->terms->chunk;
}

void wf_stage_in_begin(struct wf_inbound *inbound)
{
    struct wf_device_share *share = wf_device_share(inbound->connection->desk->shares, inbound->device);
    if (!share || inbound->counted)
        return;
    share->landings += 1;
    atomic_fetch_add_explicit(&inbound->device->landings, 1, memory_order_relaxed);
    inbound->counted = true;
}

void wf_stage_in_end(struct wf_inbound *inbound)
{
    struct wf_device_share *share =
        inbound->counted ? inbound->connection->desk->shares->each[inbound->device->index] : NULL;
    if (share) {
        share->landings -= 1;
        atomic_fetch_sub_explicit(&inbound->device->landings, 1, memory_order_relaxed);
    }
    inbound->counted = false;
}

uint64_t wf_stage_in_limit(struct wf_inbound *inbound)
{
    if (!inbound->counted) /* host memory, or no memory to count with */
        return inbound->total;
    uint64_t chunk = inbound->connection->desk->terms->chunk;
    uint64_t limit = (inbound->in_device + window(inbound)) / chunk * chunk;
    if (limit < inbound->burst)
        limit = inbound->burst;
    if (limit < inbound->granted) /* granted bytes may be on their way: a grant is never taken back */
        limit = inbound->granted;
    return limit < inbound->total ? limit : inbound->total;
}

bool wf_stage_in_promised(const struct wf_inbound *inbound, uint64_t end)
{
    return !inbound->counted || end <= inbound->granted;
}

/* Makes GRANT due once enough more bytes may come. */
static void grant_more(struct wf_inbound *inbound)
{
    if (inbound->state != WF_INBOUND_MATCHED || !inbound->counted || inbound->granted == inbound->total)
        return;
    uint64_t limit = wf_stage_in_limit(inbound), step = window(inbound) / 4;
    if (limit < inbound->total && limit < inbound->granted + step)
        return;
    if (limit <= inbound->granted)
        return;
    inbound->grant_due = true;
    wf_inbound_todo(inbound);
}

bool wf_stage_in_take(struct wf_channel *channel)
{
    struct wf_rx *rx = &channel->rx;
    struct wf_device *device = rx->claim->device;
    struct wf_device_share *share = wf_device_share(rx->claim->connection->desk->shares, device);
    if (!share)
        return false;
    struct wf_slot *slot = NULL;
    struct wf_slot_pool *pools = device->pools[WF_COPY_IN];
    struct wf_slot_account *accounts = share->accounts[WF_COPY_IN];
    if (rx->frame.length <= pools[WF_SLOT_SMALL].slot_bytes)
        slot = wf_slot_take(&pools[WF_SLOT_SMALL], &accounts[WF_SLOT_SMALL], 0);
    if (!slot)
        slot = wf_slot_take(&pools[WF_SLOT_LARGE], &accounts[WF_SLOT_LARGE], 0);
    wf_rx_set_slot(rx, slot);
    return slot != NULL;
}

void wf_stage_in_drop(struct wf_channel *channel)
{
    if (channel->payload && channel->payload->incoming)
        wf_payload_forget(channel->payload);
    struct wf_slot *slot = wf_rx_set_slot(&channel->rx, NULL);
    if (slot)
        wf_slot_give(slot);
}

static void ended(struct wf_transit *transit);

static void name(const struct wf_transit *transit, struct wf_trace_event *event)
{
    const struct wf_inbound *inbound = transit->inbound;
    event->tag = inbound->tag;
    event->endpoint = inbound->connection->local_endpoint;
    event->remote = inbound->connection->remote_endpoint;
}

static const struct wf_transit_ops in_ops = {.start = wf_stage_start, .name = name, .ended = ended};

static struct wf_transit *begin(struct wf_inbound *inbound, uint64_t start, uint64_t end)
{
    struct wf_transit *transit =
        wf_transit_take(inbound->connection->desk->shares, inbound->device, WF_COPY_IN, &in_ops);
    if (!transit)
        return NULL;
    transit->inbound = inbound;
    transit->start = start;
    transit->end = end;
    return transit;
}

/* --- fragments --- */

static void copied(struct wf_transit *transit)
{
    wf_landing_copied(transit->landing);
}

static const struct wf_transit_ops landing_ops = {
    .start = wf_stage_start, .unlocked = copied, .name = name, .ended = ended};

/* A copy of the landing's pieces in device memory, or of those in host memory. 0 or -ENOMEM. */
static int land(struct wf_channel *channel, struct wf_landing *landing, enum wf_copy_way way, uint64_t bytes)
{
    struct wf_inbound *inbound = channel->rx.claim;
    struct wf_transit *transit = wf_transit_take(inbound->connection->desk->shares, inbound->device, way, &landing_ops);
    if (!transit)
        return -ENOMEM;
    transit->copy.to_device = inbound->device->index;
    transit->inbound = inbound;
    transit->landing = landing;
    transit->start = channel->rx.frame.offset;
    transit->end = transit->start + bytes; /* so many: where they are, the landing says */
    landing->copies += 1;
    inbound->claims += 1;
    wf_transit_queue(transit);
    return 0;
}

int wf_stage_in_land(struct wf_channel *channel)
{
    struct wf_landing *landing;
    int result;
    while ((landing = wf_payload_land(channel->payload, &result))) {
        if (result == 0 && landing->device_bytes > 0)
            result = land(channel, landing, WF_COPY_PEER, landing->device_bytes);
        if (result == 0 && landing->host_bytes > 0)
            result = land(channel, landing, WF_COPY_IN, landing->host_bytes);
        wf_landing_drop(landing);
        if (result < 0)
            break;
    }
    return result;
}

/* Bytes of the message will never be in device memory. */
static void refuse(struct wf_inbound *inbound, int status)
{
    if (inbound->kind == WF_INBOUND_READING) /* the READ may have a notification, which is refused first */
        wf_outbound_refuse(inbound->partner, status);
    else
        wf_inbound_refuse(inbound, status);
}

/* 0 or -ENOMEM. */
static int start_copy(struct wf_channel *channel)
{
    struct wf_rx *rx = &channel->rx;
    struct wf_inbound *inbound = rx->claim;
    uint64_t start = rx->frame.offset;
    struct wf_transit *transit = begin(inbound, start, start + rx->frame.length);
    if (!transit)
        return -ENOMEM;
    transit->slot = wf_rx_set_slot(rx, NULL);
    inbound->claims += 1;
    wf_transit_queue(transit);
    return 0;
}

void wf_stage_in_start(struct wf_channel *channel)
{
    int result = channel->payload ? wf_stage_in_land(channel) : start_copy(channel);
    struct wf_inbound *inbound = wf_rx_unclaim(&channel->rx);
    if (result < 0) {
        refuse(inbound, result);
        if (channel->payload) /* fragments of this message may be left there */
            wf_guard_fail(inbound->connection->desk->guard, result, "no memory to copy what came to GPU %d",
                          inbound->device->index);
    }
    inbound->claims -= 1; /* after the refusal, which else might end the message */
}

void wf_stage_in_pooled(struct wf_inbound *inbound, uint64_t start, uint64_t end)
{
    struct wf_transit *transit = begin(inbound, start, end);
    if (!transit) {
        refuse(inbound, -ENOMEM);
        return;
    }
    inbound->claims += 1;
    wf_transit_queue(transit);
}

static void ended(struct wf_transit *transit)
{
    struct wf_inbound *inbound = transit->inbound;
    struct weft_connection *connection = inbound->connection;
    struct wf_desk *desk = connection->desk;
    connection->pins += 1;
    if (transit->slot)
        wf_slot_give(transit->slot);
    if (transit->result < 0) {
        WF_REACHED("incoming message MATCHED: the copy to a device failed");
        if (inbound->request)
            wf_request_note_mishap(inbound->request, transit);
        refuse(inbound, transit->result);
    }
    if (transit->result == 0) {
        inbound->in_device += transit->end - transit->start;
        grant_more(inbound);
    }
    inbound->claims -= 1;
    wf_inbound_check(inbound);
    wf_match_advance(connection); /* past a notification that was refused with its write */
    connection->pins -= 1;
    wf_connection_check(connection);
    wf_match_notes(desk);
}

/* --- starting --- */

/* The bytes of [at, end) in host memory: the slot, or the unexpected pool. Returns the pieces. */
static int host_places(const struct wf_transit *transit, uint64_t at, uint64_t length, struct iovec *iov, int max,
                       uint64_t *covered)
{
    if (!transit->slot)
        return wf_inbound_pool_places(transit->inbound, at, length, iov, max, covered);
    iov[0] = (struct iovec){transit->slot->memory + (at - transit->start), length};
    *covered = length;
    return 1;
}

/* The same bytes in device memory. */
static int device_places(const struct wf_transit *transit, uint64_t at, uint64_t length, struct iovec *iov, int max,
                         uint64_t *covered)
{
    const struct wf_pieces *pieces = transit->outbound ? transit->outbound->pieces : transit->inbound->pieces;
    const uint8_t *base = transit->outbound ? transit->outbound->data : transit->inbound->place;
    if (pieces)
        return wf_pieces_places(pieces, at, length, iov, max, covered);
    iov[0] = (struct iovec){(void *)(uintptr_t)(base + at), length};
    *covered = length;
    return 1;
}

/* Fills `pieces` from `*at` on, each in one place of host and device memory. Moves `*at` behind them. */
static int gather(const struct wf_transit *transit, uint64_t *at, struct wf_copy_piece *pieces)
{
    struct iovec host[PIECES_AT_ONCE], device[PIECES_AT_ONCE];
    uint64_t there, covered, left;
    int count = 0;
    /* The message keeps its places as long as the copy holds it: they can be read without the lock. */
    device_places(transit, *at, transit->end - *at, device, PIECES_AT_ONCE, &there);
    host_places(transit, *at, there, host, PIECES_AT_ONCE, &covered);
    left = covered;
    for (struct iovec *ours = host, *theirs = device; left > 0 && count < PIECES_AT_ONCE; count++) {
        uint64_t bytes = ours->iov_len < theirs->iov_len ? ours->iov_len : theirs->iov_len;
        if (bytes > left)
            bytes = left;
        if (!transit->slot && bytes > UNPINNED_PIECE)
            bytes = UNPINNED_PIECE;
        bool out = transit->copy.way == WF_COPY_OUT;
        pieces[count] = (struct wf_copy_piece){.to = out ? ours->iov_base : theirs->iov_base,
                                               .from = out ? theirs->iov_base : ours->iov_base,
                                               .bytes = bytes};
        left -= bytes;
        ours->iov_base = (uint8_t *)ours->iov_base + bytes;
        theirs->iov_base = (uint8_t *)theirs->iov_base + bytes;
        ours += (ours->iov_len -= bytes) == 0;
        theirs += (theirs->iov_len -= bytes) == 0;
    }
    *at += covered - left;
    return count;
}

/* Piece `at` of the landing: of those in device memory, or of those in host memory. */
static struct wf_copy_piece piece_at(const struct wf_transit *transit, uint32_t at)
{
    const struct wf_landing *landing = transit->landing;
    if (transit->copy.way == WF_COPY_PEER)
        return (struct wf_copy_piece){.from = landing->payload->inlet->base + landing->gathers[at].from,
                                      .to = (void *)(uintptr_t)(landing->gathers[at].to - 1),
                                      .bytes = landing->gathers[at].bytes};
    return (struct wf_copy_piece){.from = landing->hosts[at].from,
                                  .to = (void *)(uintptr_t)(landing->hosts[at].to - 1),
                                  .bytes = landing->hosts[at].bytes};
}

/* As gather(), of the pieces from `*next` on, of which `*done` bytes were taken. */
static int gather_landing(const struct wf_transit *transit, uint32_t *next, uint64_t *done,
                          struct wf_copy_piece *pieces)
{
    const struct wf_devmem_batch *batch = &transit->landing->batch;
    uint32_t end = transit->copy.way == WF_COPY_PEER ? batch->gather_count : batch->copy_count;
    int count = 0;
    while (*next < end && count < PIECES_AT_ONCE) {
        struct wf_copy_piece piece = piece_at(transit, *next);
        struct iovec place;
        uint64_t covered;
        device_places(transit, (uintptr_t)piece.to + *done, piece.bytes - *done, &place, 1, &covered);
        pieces[count++] = (struct wf_copy_piece){
            .to = place.iov_base, .from = (const uint8_t *)piece.from + *done, .bytes = place.iov_len};
        *done += place.iov_len;
        if (*done == piece.bytes) {
            *next += 1;
            *done = 0;
        }
    }
    return count;
}

static int start_landing(struct wf_transit *transit)
{
    const struct wf_devices *devices = transit->device->devices;
    struct wf_copy_piece pieces[PIECES_AT_ONCE];
    uint32_t next = 0;
    uint64_t done = 0;
    int result = 0, count = gather_landing(transit, &next, &done, pieces);
    while (count > 0 && result == 0) {
        struct wf_copy_piece later[PIECES_AT_ONCE];
        int more = gather_landing(transit, &next, &done, later);
        result = devices->ops->copy_start(atomic_load(&devices->memory), &transit->copy, pieces, count, more > 0);
        memcpy(pieces, later, (size_t)more * sizeof later[0]);
        count = more;
    }
    return result;
}

int wf_stage_start(struct wf_transit *transit)
{
    if (transit->landing)
        return start_landing(transit);
    const struct wf_devices *devices = transit->device->devices;
    struct wf_copy_piece pieces[PIECES_AT_ONCE];
    uint64_t at = transit->start; /* of a mark, which is in its stream already: the end, too */
    int result = 0;
    while (at < transit->end && result == 0) {
        int count = gather(transit, &at, pieces);
        result =
            devices->ops->copy_start(atomic_load(&devices->memory), &transit->copy, pieces, count, at < transit->end);
    }
    return result;
}
