/* Copies of a context's devices, from the queue to the end, and the share that a session has of a device. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/device/transit.h"
#include "core/device/turn.h"
#include "core/drive/worker.h"
#include "core/ground/counter.h"
#include "core/ground/holders.h"

#define IDLE_LOOKS 4 /* after so many unfinished copies of one way, later copies of it are not asked for */

/* --- a session's share --- */

void wf_shares_init(struct wf_shares *shares, struct wf_guard *guard, struct wf_kicks *kicks)
{
    shares->guard = guard;
    shares->kicks = kicks;
    wf_pool_init(&shares->transits, sizeof(struct wf_transit), 64, 0);
}

void wf_shares_fini(struct wf_shares *shares)
{
    wf_shares_give_back(shares);
    wf_pool_fini(&shares->transits);
}

static void tell(void *context)
{
    struct wf_shares *shares = context;
    wf_shares_look_again(shares);
    wf_kicks_all(shares->kicks, NULL);
}

struct wf_device_share *wf_device_share(struct wf_shares *shares, struct wf_device *device)
{
    struct wf_device_share *share = shares->each[device->index];
    if (share)
        return share;
    share = malloc(sizeof *share);
    if (!share) {
        wf_guard_fail(shares->guard, -ENOMEM, "no memory to copy to and from GPU %d", device->index);
        return NULL;
    }
    share->device = device;
    share->landings = 0;
    memset(share->waiting, 0, sizeof share->waiting);
    for (int way = 0; way < WF_SLOT_WAYS; way++)
        for (int size = 0; size < WF_SLOT_SIZES; size++)
            wf_slot_account_init(&share->accounts[way][size], tell, shares);
    shares->each[device->index] = share;
    return share;
}

void wf_shares_give_back(struct wf_shares *shares)
{
    for (int i = 0; i < WF_DEVICES_MAX; i++) {
        struct wf_device_share *share = shares->each[i];
        shares->each[i] = NULL;
        if (share)
            atomic_fetch_sub_explicit(&share->device->landings, share->landings, memory_order_relaxed);
        for (int way = 0; share && way < WF_SLOT_WAYS; way++)
            for (int size = 0; size < WF_SLOT_SIZES; size++)
                wf_slot_account_fini(&share->device->pools[way][size], &share->accounts[way][size]);
        free(share);
    }
}

void wf_shares_look_again(struct wf_shares *shares)
{
    atomic_store_explicit(&shares->slots_told, true, memory_order_relaxed);
}

bool wf_shares_take_look(struct wf_shares *shares)
{
    return atomic_exchange_explicit(&shares->slots_told, false, memory_order_relaxed);
}

/* --- copies --- */

struct wf_transit *wf_transit_take(struct wf_shares *shares, struct wf_device *device, enum wf_copy_way way,
                                   const struct wf_transit_ops *ops)
{
    struct wf_transit *transit = wf_pool_take(&shares->transits);
    if (!transit)
        return NULL;
    memset(transit, 0, sizeof *transit);
    wf_link_init(&transit->link);
    transit->copy = (struct wf_copy){.device = device->index, .way = way};
    transit->device = device;
    transit->shares = shares;
    transit->ops = ops;
    return transit;
}

void wf_transit_queue(struct wf_transit *transit)
{
    struct wf_device *device = transit->device;
    wf_guard_refer(transit->shares->guard);
    if (transit->copy.way != WF_COPY_MARK) /* a session that ends waits for the copy */
        wf_guard_hold(transit->shares->guard);
    wf_bells_add(&transit->shares->bells, device->worker->index);
    atomic_fetch_add(&device->under_way, 1);
    pthread_mutex_lock(&device->lock);
    wf_list_push_back(&device->queued, &transit->link);
    pthread_mutex_unlock(&device->lock);
}

void wf_devices_kick(struct wf_shares *shares, struct wf_worker *self)
{
    int index;
    while ((index = wf_bells_take(&shares->bells)) >= 0)
        wf_kicks_one(shares->kicks, index, self);
}

static struct wf_transit *next_queued(struct wf_device *device)
{
    pthread_mutex_lock(&device->lock);
    struct wf_link *link = wf_list_pop_front(&device->queued);
    pthread_mutex_unlock(&device->lock);
    return link ? WF_CONTAINER(link, struct wf_transit, link) : NULL;
}

/* The copy is an event of the trace. Session lock held. */
static void trace(const struct wf_transit *transit)
{
    struct wf_trace_event event = {
        .begin_ns = transit->begin_ns,
        .end_ns = transit->end_ns,
        .offset = transit->start,
        .bytes = transit->end - transit->start,
        .rail = -1,
        .channel = -1,
        .gpu = transit->copy.device,
        .kind = transit->copy.way == WF_COPY_IN ? WF_TRACE_COPIED_IN : WF_TRACE_COPIED_OUT,
    };
    transit->ops->name(transit, &event);
    wf_trace_add(&transit->device->devices->world->trace, &event);
}

/* Ends the copy: tells its message, and drops its references. The session may be freed afterwards. */
static void finish(struct wf_transit *transit, int result)
{
    struct wf_shares *shares = transit->shares;
    struct wf_guard *guard = shares->guard;
    struct wf_device *device = transit->device;
    const struct wf_devices *devices = device->devices;
    transit->result = result;
    bool mark = transit->copy.way == WF_COPY_MARK; /* one is its turn's, which may be another message's once it ends */
    bool own = transit->copy.way != WF_COPY_PEER;  /* a PEER copy has two devices: the other one may be lost */
    if (result == -ENODEV && own && !atomic_exchange(&device->lost, true))
        wf_log(&devices->world->log, WF_LOG_WARN, "GPU %d cannot be used any more: %s", device->index,
               devices->ops->why(atomic_load(&devices->memory), device->index));
    if (result == -EIO) /* our request's text says so, too; the peer learns only that a copy failed here */
        wf_log(&devices->world->log, WF_LOG_WARN, "GPU %d failed to copy bytes %llu to %llu of a message: %s",
               device->index, (unsigned long long)transit->start, (unsigned long long)transit->end,
               devices->ops->why(atomic_load(&devices->memory), device->index));
    atomic_fetch_sub(&device->under_way, 1);
    if (transit->ops->unlocked)
        transit->ops->unlocked(transit);
    wf_guard_lock(guard);
    if (transit->end_ns != 0 && transit->ops->name)
        trace(transit);
    transit->ops->ended(transit);
    guard->ops->kick(guard, device->worker);
    if (!mark) {
        wf_pool_give(&shares->transits, transit);
        wf_guard_let_go(guard);
    }
    wf_guard_unlock_and_release(guard);
}

static int start_queued(struct wf_device *device)
{
    struct wf_transit *transit;
    int count = 0;
    while ((transit = next_queued(device))) {
        if (wf_trace_on(&device->devices->world->trace))
            transit->begin_ns = wf_world_now(device->devices->world);
        int result = atomic_load(&device->lost) ? -ENODEV : transit->ops->start ? transit->ops->start(transit) : 0;
        if (result != 0) {
            finish(transit, result < 0 ? result : 0);
        } else {
            wf_counter_add(&device->copies, transit->copy.way != WF_COPY_MARK);
            wf_list_push_back(&device->running[transit->copy.way], &transit->link);
        }
        count += 1;
    }
    return count;
}

/* Copies of one way run in few streams, so the first ones end first; marks are in as many streams as the user has. */
static int end_done(struct wf_device *device, struct wf_list *running)
{
    const struct wf_devices *devices = device->devices;
    struct wf_memory *memory = atomic_load(&devices->memory);
    int count = 0, idle = 0;
    WF_LIST_EACH (link, following, running) {
        struct wf_transit *transit = WF_CONTAINER(link, struct wf_transit, link);
        int result = devices->ops->copy_done(memory, &transit->copy);
        idle += result == 0;
        if (idle > IDLE_LOOKS && transit->copy.way != WF_COPY_MARK)
            break;
        if (result == 0)
            continue;
        wf_link_remove(link);
        if (result > 0 && !transit->landing)
            wf_counter_add(&device->copied[transit->copy.way], transit->end - transit->start);
        if (result > 0 && transit->begin_ns != 0)
            transit->end_ns = wf_world_now(devices->world);
        finish(transit, result < 0 ? result : 0);
        count += 1;
    }
    return count;
}

/* Adds up in `copying_ns` the time in which a copy was running. */
static void keep_time(struct wf_device *device)
{
    bool running = !wf_list_empty(&device->running[WF_COPY_OUT]) || !wf_list_empty(&device->running[WF_COPY_IN]) ||
                   !wf_list_empty(&device->running[WF_COPY_PEER]);
    if (running == (device->since_ns != 0))
        return;
    int64_t now = wf_world_now(device->devices->world);
    if (!running)
        wf_counter_add(&device->copying_ns, (uint64_t)(now - device->since_ns));
    device->since_ns = running ? now : 0;
}

static struct wf_device *driven(const struct wf_devices *devices, const struct wf_worker *worker, int i)
{
    struct wf_device *device = atomic_load(&devices->used[i]);
    return device->worker == worker && atomic_load(&device->under_way) > 0 ? device : NULL;
}

bool wf_devices_busy(const struct wf_devices *devices, const struct wf_worker *worker)
{
    int count = atomic_load_explicit(&devices->used_count, memory_order_acquire);
    for (int i = 0; i < count; i++)
        if (driven(devices, worker, i))
            return true;
    return false;
}

int wf_devices_drive(struct wf_devices *devices, struct wf_worker *worker)
{
    int count = atomic_load_explicit(&devices->used_count, memory_order_acquire), handled = 0;
    for (int i = 0; i < count; i++) {
        struct wf_device *device = driven(devices, worker, i);
        if (!device)
            continue;
        handled += start_queued(device);
        keep_time(device);
        for (int way = 0; way < WF_COPY_WAYS; way++)
            handled += end_done(device, &device->running[way]);
        keep_time(device);
    }
    return handled;
}
