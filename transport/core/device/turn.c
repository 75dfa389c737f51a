#include "core/device/turn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

/* The mark was reached, or the device failed. */
static void ended(struct wf_transit *transit)
{
    struct wf_turn *turn = transit->turn;
    turn->come = true;
    if (turn->request)
        turn->go(turn, transit);
    else
        give(turn);
}

static const struct wf_transit_ops mark_ops = {.ended = ended}; /* no `start`: the mark is in its stream already */

static struct wf_turn *take(struct wf_device *device)
{
    pthread_mutex_lock(&device->lock);
    struct wf_link *link = wf_list_pop_front(&device->free_turns);
    pthread_mutex_unlock(&device->lock);
    if (!link)
        return NULL;
    struct wf_turn *turn = WF_CONTAINER(link, struct wf_turn, link);
    turn->transit =
        (struct wf_transit){.copy = {.device = device->index, .way = WF_COPY_MARK}, .device = device, .ops = &mark_ops};
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
    const struct wf_memory_ops *ops = device->devices->ops;
    struct wf_memory *memory = atomic_load(&device->devices->memory);
    struct wf_turn *turn = take(device);
    if (!turn)
        return -EAGAIN;
    turn->transit.copy.stream = stream;
    /* The mark goes into the stream before the wait: behind it, it would wait for the operation that waits for the
     * mark. */
    int result = ops->copy_start(memory, &turn->transit.copy, NULL, 0, false);
    if (result < 0) {
        give(turn);
        return result;
    }
    result = ops->hold(memory, device->index, stream, (const uint32_t *)turn->flag, turn->value);
    turn->refusal = result; /* the mark was queued before the wait failed, so it still completes */
    *out = turn;
    return 0;
}

/* Lets the device's worker ask whether the mark was reached. */
static void watch(struct wf_turn *turn, struct wf_shares *shares)
{
    turn->begun = true;
    turn->transit.shares = shares;
    wf_transit_queue(&turn->transit);
}

void wf_turn_begin(struct wf_turn *turn, struct wf_shares *shares, struct weft_request *request,
                   void (*go)(struct wf_turn *turn, const struct wf_transit *transit))
{
    turn->request = request;
    turn->go = go;
    watch(turn, shares);
}

void wf_turn_end(struct wf_turn *turn)
{
    turn->request = NULL;
    atomic_store(turn->flag, turn->value);
    if (turn->come)
        give(turn);
}

void wf_turn_drop(struct wf_turn *turn, struct wf_shares *shares)
{
    atomic_store(turn->flag, turn->value);
    if (!turn->begun)
        watch(turn, shares);
}
