#include "core/device.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "affinity/pin.h"
#include "core/context.h"
#include "core/counter.h"
#include "core/direct.h"
#include "core/gpu.h"
#include "core/match.h"
#include "core/session.h"
#include "core/stage.h"
#include "core/turn.h"
#include "core/worker.h"

#define SLOT_ALIGN 4096u
#define LARGE_SLOTS_MIN 4u
#define SLOTS_MAX 65536u
#define SMALL_SLOTS 512u
#define IDLE_LOOKS 4 /* copies of one way that are not done yet: what was started after them is not asked for */

/* --- a device in use --- */

static uint32_t slot_bytes(const struct weft_context *context, enum wf_slot_size size)
{
    uint32_t bytes = size == WF_SLOT_SMALL ? context->tuning.eager : context->tuning.chunk;
    return (bytes + SLOT_ALIGN - 1) / SLOT_ALIGN * SLOT_ALIGN;
}

static uint32_t slot_count(const struct weft_context *context, enum wf_slot_size size)
{
    if (size == WF_SLOT_SMALL)
        return SMALL_SLOTS;
    uint64_t count = context->tuning.staging / slot_bytes(context, size);
    return (uint32_t)(count < LARGE_SLOTS_MIN ? LARGE_SLOTS_MIN : count < SLOTS_MAX ? count : SLOTS_MAX);
}

static size_t pool_bytes(const struct weft_context *context, enum wf_slot_size size)
{
    uint32_t bytes = slot_bytes(context, size);
    return (size_t)(bytes ? bytes : SLOT_ALIGN) * slot_count(context, size);
}

/* Pinned, on the device's node, in huge pages where the system has them. None of the three is vital. */
static void settle_memory(struct wf_device *device)
{
    struct weft_context *context = device->context;
    const struct wf_devices *devices = &context->devices;
    struct wf_status status = {0};
    char why[128];
    madvise(device->memory, device->bytes, MADV_HUGEPAGE);
    bool placed = device->node >= 0 && context->placement.pin != WF_PIN_OFF;
    if (placed && wf_place_memory(device->memory, device->bytes, device->node, why, sizeof why) < 0)
        wf_log(&context->log, WF_LOG_INFO, "GPU %d: staging memory is not on node %d: %s", device->index, device->node,
               why);
    device->pinned = devices->ops->pin(atomic_load(&devices->memory), device->memory, device->bytes, &status) == 0;
    if (!device->pinned)
        wf_log(&context->log, WF_LOG_WARN, "GPU %d: staging memory is not pinned, copies are slower: %s", device->index,
               status.text);
}

static int make_slots(struct wf_device *device, struct wf_status *status)
{
    struct weft_context *context = device->context;
    for (int size = 0; size < WF_SLOT_SIZES; size++)
        device->bytes += WF_SLOT_WAYS * pool_bytes(context, (enum wf_slot_size)size);
    device->bytes += WF_TURNS * sizeof(uint32_t); /* whole pages, like the rest */
    void *memory = mmap(NULL, device->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return wf_fail(status, -ENOMEM, "no memory for %zu bytes of staging for GPU %d: lower staging", device->bytes,
                       device->index);
    device->memory = memory;
    settle_memory(device);
    uint8_t *at = device->memory;
    for (int way = 0; way < WF_SLOT_WAYS; way++) {
        for (int size = 0; size < WF_SLOT_SIZES; size++) {
            uint32_t bytes = slot_bytes(context, (enum wf_slot_size)size);
            uint32_t count = slot_count(context, (enum wf_slot_size)size);
            if (wf_slot_pool_init(&device->pools[way][size], at, count, bytes ? bytes : SLOT_ALIGN) < 0)
                return wf_fail(status, -ENOMEM, "no memory for the slots of GPU %d", device->index);
            at += pool_bytes(context, (enum wf_slot_size)size);
        }
    }
    return wf_turns_init(device, (uint32_t *)(void *)at, status);
}

static void destroy(struct wf_device *device)
{
    const struct wf_devices *devices = &device->context->devices;
    for (int way = 0; way < WF_SLOT_WAYS; way++)
        for (int size = 0; size < WF_SLOT_SIZES; size++)
            wf_slot_pool_fini(&device->pools[way][size]);
    if (device->pinned)
        devices->ops->unpin(atomic_load(&devices->memory), device->memory);
    if (device->memory)
        munmap(device->memory, device->bytes);
    free(device->turns);
    pthread_mutex_destroy(&device->lock);
    free(device);
}

/* A worker that sends on a rail of the device's node, if there is one: in turn over those. */
static struct wf_worker *worker_for(const struct weft_context *context, int index, int node)
{
    int near[WF_RAILS_MAX], count = 0;
    if (context->shared)
        return context->workers[0];
    for (int i = 0; i < context->rail_count; i++)
        if (node >= 0 && context->placement.rail_nodes[i] == node)
            near[count++] = i;
    int rail = count > 0 ? near[index % count] : index % context->rail_count;
    return context->workers[2 * rail];
}

static int node_of(const struct wf_devices *devices, struct wf_memory *memory, int index)
{
    struct wf_device_info infos[WF_DEVICES_MAX];
    int count = devices->ops->devices(memory, infos, WF_DEVICES_MAX);
    for (int i = 0; i < count && i < WF_DEVICES_MAX; i++)
        if (infos[i].index == index)
            return wf_place_of_device(infos[i].pci);
    return -1;
}

static struct wf_device *create(struct weft_context *context, struct wf_memory *memory, int index,
                                struct wf_status *status)
{
    struct wf_devices *devices = &context->devices;
    if (index < 0 || index >= WF_DEVICES_MAX)
        wf_fail(status, -ENODEV, "GPU %d: there are at most %d", index, WF_DEVICES_MAX);
    else if (devices->ops->use(memory, index, status) == 0) {
        struct wf_device *device = calloc(1, sizeof *device);
        if (!device) {
            wf_fail(status, -ENOMEM, "no memory for GPU %d", index);
            return NULL;
        }
        device->context = context;
        device->index = index;
        device->node = node_of(devices, memory, index);
        device->worker = worker_for(context, index, device->node);
        pthread_mutex_init(&device->lock, NULL);
        wf_list_init(&device->queued);
        wf_list_init(&device->free_turns);
        for (int way = 0; way < WF_COPY_WAYS; way++)
            wf_list_init(&device->running[way]);
        if (make_slots(device, status) == 0)
            return device;
        destroy(device);
    }
    return NULL;
}

/* --- opening --- */

/* devices.lock held. */
static struct wf_memory *open_memory(struct weft_context *context)
{
    struct wf_devices *devices = &context->devices;
    struct wf_memory *memory = atomic_load(&devices->memory);
    if (memory || devices->reason.code < 0 || devices->forbidden)
        return memory;
    if (devices->ops->open(devices->host, &memory, &devices->reason) < 0)
        return NULL;
    atomic_store(&devices->memory, memory);
    return memory;
}

int wf_devices_use(struct weft_context *context, int index, struct wf_device **out, struct wf_status *status)
{
    struct wf_devices *devices = &context->devices;
    int count = atomic_load(&devices->used_count), result = 0;
    struct wf_device *device = NULL;
    for (int i = 0; i < count && !device; i++)
        if (atomic_load(&devices->used[i])->index == index)
            device = atomic_load(&devices->used[i]);
    if (device) {
        *out = device;
        return 0;
    }
    pthread_mutex_lock(&devices->lock);
    for (int i = count; i < atomic_load(&devices->used_count) && !device; i++)
        if (atomic_load(&devices->used[i])->index == index)
            device = atomic_load(&devices->used[i]); /* another thread was faster */
    struct wf_memory *memory = device ? NULL : open_memory(context);
    if (!device && !memory)
        result = wf_fail(status, -ENODEV, "no GPU memory: %s",
                         devices->forbidden ? "it is not to be used (cuda = off)" : devices->reason.text);
    else if (!device && !(device = create(context, memory, index, status)))
        result = status->code < 0 ? status->code : -ENODEV;
    else if (memory) {
        int at = atomic_load(&devices->used_count);
        atomic_store(&devices->used[at], device);
        atomic_store(&devices->used_count, at + 1);
    }
    pthread_mutex_unlock(&devices->lock);
    if (result == 0)
        *out = device;
    return result;
}

struct wf_memory *wf_devices_open(struct weft_context *context)
{
    struct wf_devices *devices = &context->devices;
    pthread_mutex_lock(&devices->lock);
    struct wf_memory *memory = open_memory(context);
    pthread_mutex_unlock(&devices->lock);
    return memory;
}

/* Makes the GPUs of the setting `gpus` ready. */
static int use_named(struct weft_context *context, const char *list, struct wf_status *status)
{
    struct wf_devices *devices = &context->devices;
    struct wf_device_info infos[WF_DEVICES_MAX];
    bool wanted[WF_DEVICES_MAX] = {false};
    int count = devices->ops->devices(atomic_load(&devices->memory), infos, WF_DEVICES_MAX);
    int result = wf_gpu_list_read(list, infos, count < WF_DEVICES_MAX ? count : WF_DEVICES_MAX, wanted, status);
    for (int i = 0; i < WF_DEVICES_MAX && result == 0; i++) {
        struct wf_device *device;
        if (wanted[i])
            result = wf_devices_use(context, i, &device, status);
    }
    return result;
}

int wf_devices_init(struct weft_context *context, const struct wf_config *config, struct wf_status *status)
{
    struct wf_devices *devices = &context->devices;
    const char *cuda = wf_config_text(config, WF_SET_CUDA), *gpus = wf_config_text(config, WF_SET_GPUS);
    bool required = strcmp(cuda, "require") == 0;
    devices->forbidden |= strcmp(cuda, "off") == 0;
    if (devices->forbidden && gpus[0])
        return wf_fail(status, -EINVAL, "gpus = %s and cuda = off exclude each other", gpus);
    if (devices->forbidden || (!required && !gpus[0]))
        return 0;
    if (!wf_devices_open(context)) {
        wf_context_fallback(context, "cuda: no GPU memory, %s", devices->reason.text);
        bool vital = required || strcmp(gpus, "all") != 0;
        return vital ? wf_fail(status, -ENODEV, "cuda = %s, gpus = %s: %s", cuda, gpus[0] ? gpus : "\"\"",
                               devices->reason.text)
                     : 0;
    }
    return gpus[0] ? use_named(context, gpus, status) : 0;
}

void wf_devices_fini(struct weft_context *context)
{
    struct wf_devices *devices = &context->devices;
    bool all = true;
    for (int i = 0; i < atomic_load(&devices->used_count); i++) {
        struct wf_device *device = atomic_load(&devices->used[i]);
        if (atomic_load(&device->under_way) == 0) {
            destroy(device);
            continue;
        }
        all = false; /* a stream will read a flag in it, some time */
        wf_log(&context->log, WF_LOG_WARN,
               "GPU %d: %zu bytes of staging stay behind: a stream has not come to an operation that was ordered in it "
               "(let streams end before their context)",
               device->index, device->bytes);
    }
    if (all && atomic_load(&devices->memory))
        devices->ops->close(atomic_load(&devices->memory));
    pthread_mutex_destroy(&devices->lock);
}

/* --- whose memory --- */

int wf_devices_find(struct weft_context *context, const void *base, uint64_t length, struct wf_device **out,
                    struct wf_status *status)
{
    struct wf_devices *devices = &context->devices;
    struct wf_memory *memory = atomic_load(&devices->memory);
    *out = NULL;
    if (devices->forbidden || (!memory && !devices->ops->present(devices->host)))
        return 0;
    if (!memory)
        memory = wf_devices_open(context);
    struct wf_memory_place place;
    int result = memory ? devices->ops->locate(memory, base, length, &place, status) : 0;
    if (!memory || result < 0 || place.device == WF_NO_DEVICE)
        return result;
    return wf_devices_use(context, place.device, out, status);
}

bool wf_devices_own(struct weft_context *context, const void *base)
{
    const struct wf_devices *devices = &context->devices;
    struct wf_memory *memory = atomic_load(&devices->memory);
    struct wf_memory_place place;
    struct wf_status status = {0};
    return memory && devices->ops->locate(memory, base, 1, &place, &status) == 0 && place.device != WF_NO_DEVICE;
}

/* --- a session's share --- */

static void tell(void *context)
{
    struct wf_session *session = context;
    atomic_store_explicit(&session->slots_told, true, memory_order_relaxed);
    wf_session_kick_all(session, NULL);
}

struct wf_device_share *wf_device_share(struct wf_session *session, struct wf_device *device)
{
    struct wf_device_share *share = session->shares[device->index];
    if (share)
        return share;
    share = malloc(sizeof *share);
    if (!share)
        return NULL;
    share->device = device;
    share->landings = 0;
    memset(share->waiting, 0, sizeof share->waiting);
    for (int way = 0; way < WF_SLOT_WAYS; way++)
        for (int size = 0; size < WF_SLOT_SIZES; size++)
            wf_slot_account_init(&share->accounts[way][size], tell, session);
    session->shares[device->index] = share;
    return share;
}

void wf_device_shares_fini(struct wf_session *session)
{
    for (int i = 0; i < WF_DEVICES_MAX; i++) {
        struct wf_device_share *share = session->shares[i];
        session->shares[i] = NULL;
        if (share)
            atomic_fetch_sub_explicit(&share->device->landings, share->landings, memory_order_relaxed);
        for (int way = 0; share && way < WF_SLOT_WAYS; way++)
            for (int size = 0; size < WF_SLOT_SIZES; size++)
                wf_slot_account_fini(&share->device->pools[way][size], &share->accounts[way][size]);
        free(share);
    }
}

/* --- copies --- */

struct wf_transit *wf_transit_take(struct wf_session *session, struct wf_device *device, enum wf_copy_way way)
{
    struct wf_transit *transit = wf_pool_take(&session->transit_pool);
    if (!transit)
        return NULL;
    memset(transit, 0, sizeof *transit);
    wf_link_init(&transit->link);
    transit->copy = (struct wf_copy){.device = device->index, .way = way};
    transit->device = device;
    transit->session = session;
    return transit;
}

void wf_transit_queue(struct wf_transit *transit)
{
    struct wf_device *device = transit->device;
    transit->session->references += 1;
    if (transit->copy.way != WF_COPY_MARK) /* a session that ends waits for it */
        transit->session->halves += 1;
    transit->session->device_bells |= 1u << device->worker->index;
    atomic_fetch_add(&device->under_way, 1);
    pthread_mutex_lock(&device->lock);
    wf_list_push_back(&device->queued, &transit->link);
    pthread_mutex_unlock(&device->lock);
}

void wf_devices_kick(struct wf_session *session, struct wf_worker *self)
{
    while (session->device_bells != 0) {
        int index = __builtin_ctz(session->device_bells);
        session->device_bells &= session->device_bells - 1;
        wf_worker_kick(&session->kicks[index], self);
    }
}

static struct wf_transit *next_queued(struct wf_device *device)
{
    pthread_mutex_lock(&device->lock);
    struct wf_link *link = wf_list_pop_front(&device->queued);
    pthread_mutex_unlock(&device->lock);
    return link ? WF_CONTAINER(link, struct wf_transit, link) : NULL;
}

/* Tells the message, and lets go of everything. The session may be gone afterwards. */
static void finish(struct wf_transit *transit, int result)
{
    struct wf_session *session = transit->session;
    struct wf_device *device = transit->device;
    transit->result = result;
    bool own = transit->copy.way != WF_COPY_PEER; /* else it may be the other one */
    if (result == -ENODEV && own && !atomic_exchange(&device->lost, true))
        wf_log(&device->context->log, WF_LOG_WARN, "GPU %d is lost: %s", device->index,
               device->context->devices.ops->why(atomic_load(&device->context->devices.memory), device->index));
    atomic_fetch_sub(&device->under_way, 1);
    if (transit->copy.way == WF_COPY_PEER)
        wf_direct_end_sender(transit);
    wf_session_lock(session);
    if (transit->copy.way == WF_COPY_OUT)
        wf_stage_out_ended(transit);
    else if (transit->copy.way == WF_COPY_IN)
        wf_stage_in_ended(transit);
    else if (transit->copy.way == WF_COPY_PEER)
        wf_direct_end_receiver(transit);
    else
        wf_turn_ended(transit);
    wf_match_notes(session);
    wf_session_kick(session, device->worker);
    if (transit->copy.way != WF_COPY_MARK) {
        wf_pool_give(&session->transit_pool, transit);
        wf_session_half_gone(session);
    }
    wf_session_unlock_and_release(session);
}

/* As ops->copy_start(); 1: there is nothing to copy after all. */
static int start(struct wf_transit *transit)
{
    return transit->copy.way == WF_COPY_PEER ? wf_direct_start(transit) : wf_stage_start(transit);
}

static int start_queued(struct wf_device *device)
{
    struct wf_transit *transit;
    int count = 0;
    while ((transit = next_queued(device))) {
        int result = atomic_load(&device->lost) ? -ENODEV : start(transit);
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

/* Copies of one way run in a few streams, so that the first ones end first; marks are in as many as the user has. */
static int end_done(struct wf_device *device, struct wf_list *running)
{
    const struct wf_devices *devices = &device->context->devices;
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
        if (result > 0)
            wf_counter_add(&device->copied[transit->copy.way], transit->end - transit->start);
        finish(transit, result < 0 ? result : 0);
        count += 1;
    }
    return count;
}

/* Notes for how long copies have been running. */
static void keep_time(struct wf_device *device)
{
    int64_t since = atomic_load_explicit(&device->since_ns, memory_order_relaxed);
    bool running = !wf_list_empty(&device->running[WF_COPY_OUT]) || !wf_list_empty(&device->running[WF_COPY_IN]) ||
                   !wf_list_empty(&device->running[WF_COPY_PEER]);
    if (running == (since != 0))
        return;
    int64_t now = wf_context_now(device->context);
    if (!running)
        wf_counter_add(&device->copying_ns, (uint64_t)(now - since));
    atomic_store_explicit(&device->since_ns, running ? now : 0, memory_order_relaxed);
}

static struct wf_device *driven(const struct wf_worker *worker, int i)
{
    struct wf_device *device = atomic_load(&worker->context->devices.used[i]);
    return device->worker == worker && atomic_load(&device->under_way) > 0 ? device : NULL;
}

bool wf_devices_busy(const struct wf_worker *worker)
{
    int count = atomic_load_explicit(&worker->context->devices.used_count, memory_order_acquire);
    for (int i = 0; i < count; i++)
        if (driven(worker, i))
            return true;
    return false;
}

int wf_devices_drive(struct wf_worker *worker)
{
    int count = atomic_load_explicit(&worker->context->devices.used_count, memory_order_acquire), handled = 0;
    for (int i = 0; i < count; i++) {
        struct wf_device *device = driven(worker, i);
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
