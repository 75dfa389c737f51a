#include "core/message/direct.h"

#include <errno.h>

#include "core/device/device.h"
#include "core/device/transit.h"
#include "core/ground/holders.h"
#include "core/message/connection.h"
#include "core/message/connection_close.h"
#include "core/message/desk.h"
#include "core/message/inbound.h"
#include "core/message/match.h"
#include "core/message/outbound.h"
#include "core/message/outbound_parts.h"
#include "core/request/request.h"

static int start(struct wf_transit *transit);
static void end_sender(struct wf_transit *transit);
static void name(const struct wf_transit *transit, struct wf_trace_event *event);
static void end_receiver(struct wf_transit *transit);

static const struct wf_transit_ops ops = {.start = start, .unlocked = end_sender, .name = name, .ended = end_receiver};

bool wf_direct_ask(struct wf_inbound *inbound)
{
    struct wf_desk *desk = inbound->connection->desk;
    bool own = desk->terms->peer_boot == desk->guard->world->boot_nonce;
    if (!own || !inbound->device || inbound->pieces || inbound->kind != WF_INBOUND_MESSAGE || inbound->burst > 0)
        return false;
    struct wf_transit *transit = wf_transit_take(desk->shares, inbound->device, WF_COPY_PEER, &ops);
    if (!transit)
        return false;
    transit->inbound = inbound;
    transit->end = inbound->total;
    inbound->claims += 1;
    wf_transit_queue(transit);
    return true;
}

static struct wf_desk *hold_twin(const struct wf_transit *transit)
{
    struct wf_desk *desk = transit->inbound->connection->desk;
    return desk->hold_twin(desk);
}

static void let_go(struct wf_desk *twin, struct wf_worker *worker)
{
    twin->guard->ops->kick(twin->guard, worker);
    wf_guard_let_go(twin->guard);
    wf_guard_unlock_and_release(twin->guard);
}

/* The sender's outbound message, if it is in a device's memory and may be read now. Checks the size again: the peer
 * says that it is this context, and how large the message is; both may be false. */
static struct wf_outbound *find_source(struct wf_desk *twin, const struct wf_transit *transit)
{
    struct weft_connection *connection = wf_connection_find(twin, transit->inbound->connection->number);
    struct wf_outbound *outbound = connection ? wf_outbound_find(connection, transit->inbound->number, false) : NULL;
    bool fits = outbound && outbound->kind == WF_OUTBOUND_MESSAGE && outbound->device && !outbound->pieces &&
                !outbound->refused && !outbound->waits && outbound->claimed == 0 && outbound->next == 0 &&
                outbound->total == transit->inbound->total;
    return fits ? outbound : NULL;
}

static int start(struct wf_transit *transit)
{
    const struct wf_devices *devices = transit->device->devices;
    struct wf_desk *twin = hold_twin(transit);
    if (!twin)
        return 1;
    wf_guard_lock(twin->guard);
    struct wf_outbound *outbound = find_source(twin, transit);
    if (!outbound) {
        let_go(twin, transit->device->worker);
        return 1;
    }
    outbound->in_engine += 1;
    wf_guard_unlock(twin->guard);
    transit->twin = twin;
    transit->outbound = outbound;
    transit->copy.device = outbound->device->index;
    transit->copy.to_device = transit->device->index;
    struct wf_copy_piece piece = {transit->inbound->place, outbound->data, transit->end};
    return devices->ops->copy_start(atomic_load(&devices->memory), &transit->copy, &piece, 1, false);
}

static void end_sender(struct wf_transit *transit)
{
    struct wf_desk *twin = transit->twin;
    if (!twin)
        return;
    wf_guard_lock(twin->guard);
    transit->landed = wf_outbound_direct_ended(transit->outbound, transit);
    let_go(twin, transit->device->worker);
}

/* As a copy out, of the sender: its message may be gone, but its endpoint is the one that the receiver names. */
static void name(const struct wf_transit *transit, struct wf_trace_event *event)
{
    const struct wf_inbound *inbound = transit->inbound;
    event->tag = inbound->tag;
    event->endpoint = inbound->connection->remote_endpoint;
    event->remote = inbound->connection->local_endpoint;
}

static void end_receiver(struct wf_transit *transit)
{
    struct wf_inbound *inbound = transit->inbound;
    struct weft_connection *connection = inbound->connection;
    struct wf_desk *desk = connection->desk;
    connection->pins += 1;
    if (transit->landed) {
        wf_inbound_mark(inbound, 0, inbound->total);
    } else if (transit->result < 0) {
        if (inbound->request)
            wf_request_note_mishap(inbound->request, transit);
        wf_inbound_refuse(inbound, transit->result);
    } else if (!transit->twin && inbound->state == WF_INBOUND_MATCHED) {
        inbound->grant_due = true;
        wf_inbound_todo(inbound);
    }
    inbound->claims -= 1;
    wf_inbound_check(inbound);
    connection->pins -= 1;
    wf_connection_check(connection);
    wf_match_notes(desk);
}
