#include "core/device/turn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/message/connection.h"
#include "core/message/inbound.h"
#include "core/message/match.h"
#include "core/message/outbound.h"
#include "core/message/served.h"
#include "core/message/stage.h"
#include "core/request/request.h"
#include "core/session/session.h"
#include "core/calls/context.h"

int wf_turns_init(struct wf_device *device, uint32_t *flags, struct wf_status *status)
{
    device->turns = calloc(WF_TURNS, sizeof *device->turns);
    if (!device->turns)
        return wf_fail(status, -ENOMEM, "no memory for the turns of GPU %d", device->index);
    for (int i = 0; i < WF_TURNS; i++) {
        struct wf_turn *turn = &device->turns[i];
        turn->flag = (_Atomic uint32_t *)(flags + i);
        wf_list_push_back(&device->free_turns, &turn->link);
    }
    return 0;
}

static void give(struct wf_turn *turn)
{
    struct wf_device *device = turn->transit.device;
    pthread_mutex_lock(&device->lock);
    wf_list_push_back(&device->free_turns, &turn->link);
    pthread_mutex_unlock(&device->lock);
}

static struct wf_turn *take(struct wf_device *device)
{
    pthread_mutex_lock(&device->lock);
    struct wf_link *link = wf_list_pop_front(&device->free_turns);
    pthread_mutex_unlock(&device->lock);
    if (!link)
        return NULL;
    struct wf_turn *turn = WF_CONTAINER(link, struct wf_turn, link);
    turn->transit = (struct wf_transit){.copy = {.device = device->index, .way = WF_COPY_MARK}, .device = device};
    turn->transit.turn = turn;
    wf_link_init(&turn->transit.link);
    turn->value += 1;
    turn->request = NULL;
    turn->begun = turn->come = false;
    turn->refusal = 0;
    return turn;
}

int wf_turn_take(struct wf_device *device, void *stream, struct wf_turn **out)
{
    if (!device)
        return -EINVAL;
    if (!device->pinned) /* the device could not read the flag */
        return -ENOTSUP;
    const struct wf_memory_ops *ops = device->context->devices.ops;
    struct wf_memory *memory = atomic_load(&device->context->devices.memory);
    struct wf_turn *turn = take(device);
    if (!turn)
        return -EAGAIN;
    turn->transit.copy.stream = stream;
    /* The wait is put behind the mark, or the mark would wait for the operation that waits for it. */
    int result = ops->copy_start(memory, &turn->transit.copy, NULL, 0, false);
    if (result < 0) {
        give(turn);
        return result;
    }
    result = ops->hold(memory, device->index, stream, (const uint32_t *)turn->flag, turn->value);
    turn->refusal = result; /* its mark comes all the same */
    *out = turn;
    return 0;
}

/* Has the device's worker ask for the mark. */
static void watch(struct wf_turn *turn, struct wf_session *session)
{
    turn->begun = true;
    turn->transit.session = session;
    wf_transit_queue(&turn->transit);
}

void wf_turn_begin(struct wf_turn *turn, struct weft_request *request)
{
    request->turn = turn;
    turn->request = request;
    watch(turn, request->session);
}

void wf_turn_end(struct wf_turn *turn)
{
    turn->request->turn = NULL;
    turn->request = NULL;
    atomic_store(turn->flag, turn->value);
    if (turn->come)
        give(turn);
}

void wf_turn_drop(struct wf_turn *turn, struct wf_session *session)
{
    atomic_store(turn->flag, turn->value);
    if (!turn->begun)
        watch(turn, session);
}

/* The operation's memory may be touched from now on. */
static void go(struct weft_request *request)
{
    struct wf_outbound *outbound = request->outbound;
    switch (request->kind) {
    case WF_REQUEST_RECV:
        if (request->inbound && request->inbound->parked)
            wf_match_unpark(request->inbound);
        break;
    case WF_REQUEST_SEND:
        if (!outbound)
            break;
        outbound->waits = false;
        wf_stage_out_more(outbound);
        wf_connection_ready(outbound->connection);
        break;
    default: /* a write or a read: nothing has been done for it so far */
        if (outbound && !outbound->refused)
            wf_asking_begin(outbound);
    }
}

void wf_turn_ended(struct wf_transit *transit)
{
    struct wf_turn *turn = transit->turn;
    struct weft_request *request = turn->request;
    turn->come = true;
    if (!request) {
        give(turn);
    } else if (transit->result < 0) {
        wf_request_note_mishap(request, transit);
        wf_request_cancel(request, transit->result);
    } else {
        go(request);
    }
}
