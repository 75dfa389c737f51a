#include "core/message/direct.h"

#include <errno.h>

#include "core/device/device.h"
#include "core/message/connection.h"
#include "core/message/inbound.h"
#include "core/message/outbound.h"
#include "core/request/request.h"
#include "core/session/session.h"
#include "core/calls/context.h"

bool wf_direct_ask(struct wf_inbound *inbound)
{
    struct wf_session *session = inbound->connection->session;
    bool own = session->terms.peer_boot == session->context->world.boot_nonce;
    if (!own || !inbound->device || inbound->kind != WF_INBOUND_MESSAGE || inbound->burst > 0)
        return false;
    struct wf_transit *transit = wf_transit_take(session, inbound->device, WF_COPY_PEER);
    if (!transit)
        return false;
    transit->inbound = inbound;
    transit->end = inbound->total;
    inbound->claims += 1;
    wf_transit_queue(transit);
    return true;
}

/* The other session of the pair, held; NULL: it is gone. */
static struct wf_session *hold_twin(struct wf_session *session)
{
    struct weft_context *context = session->context;
    struct wf_session *twin = NULL;
    pthread_mutex_lock(&context->world.lock);
    WF_LIST_EACH (link, following, &context->sessions.all) {
        struct wf_session *other = WF_CONTAINER(link, struct wf_session, link);
        if (other != session && other->id == session->id && other->terms.dialer != session->terms.dialer)
            twin = other;
    }
    if (twin) {
        wf_session_lock(twin);
        bool up = twin->guard.state == WF_SESSION_UP;
        twin->guard.references += up;
        twin->guard.holders += up;
        wf_session_unlock(twin);
        twin = up ? twin : NULL;
    }
    pthread_mutex_unlock(&context->world.lock);
    return twin;
}

static void let_go(struct wf_session *twin, struct wf_worker *worker)
{
    wf_session_kick(twin, worker);
    wf_session_half_gone(twin);
    wf_session_unlock_and_release(twin);
}

/* The message as its sender has it, if it is in a device's memory, and may be read now. That the peer is this context,
 * and how large the message is, is the peer's word alone. */
static struct wf_outbound *find_source(struct wf_session *twin, const struct wf_transit *transit)
{
    struct weft_connection *connection = wf_connection_find(twin, transit->inbound->connection->number);
    struct wf_outbound *outbound = connection ? wf_outbound_find(connection, transit->inbound->number, false) : NULL;
    bool fits = outbound && outbound->kind == WF_OUTBOUND_MESSAGE && outbound->device && !outbound->refused &&
                !outbound->waits && outbound->claimed == 0 && outbound->next == 0 &&
                outbound->total == transit->inbound->total;
    return fits ? outbound : NULL;
}

int wf_direct_start(struct wf_transit *transit)
{
    const struct wf_devices *devices = &transit->device->context->devices;
    struct wf_session *twin = hold_twin(transit->session);
    if (!twin)
        return 1;
    wf_session_lock(twin);
    struct wf_outbound *outbound = find_source(twin, transit);
    if (!outbound) {
        let_go(twin, transit->device->worker);
        return 1;
    }
    outbound->in_engine += 1;
    wf_session_unlock(twin);
    transit->twin = twin;
    transit->outbound = outbound;
    transit->copy.device = outbound->device->index;
    transit->copy.to_device = transit->device->index;
    struct wf_copy_piece piece = {transit->inbound->place, outbound->data, transit->end};
    return devices->ops->copy_start(atomic_load(&devices->memory), &transit->copy, &piece, 1, false);
}

void wf_direct_end_sender(struct wf_transit *transit)
{
    struct wf_session *twin = transit->twin;
    if (!twin)
        return;
    wf_session_lock(twin);
    transit->landed = wf_outbound_copied(transit->outbound, transit);
    let_go(twin, transit->device->worker);
}

void wf_direct_end_receiver(struct wf_transit *transit)
{
    struct wf_inbound *inbound = transit->inbound;
    struct weft_connection *connection = inbound->connection;
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
}
