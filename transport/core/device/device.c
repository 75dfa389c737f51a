#include "core/device/device.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "affinity/pin.h"
#include "core/calls/context.h"
#include "core/device/gpu.h"
#include "core/device/turn.h"
#include "core/drive/worker.h"
#include "core/session/session.h"

#define SLOT_ALIGN 4096u
#define LARGE_SLOTS_MIN 4u
#define SLOTS_MAX 65536u
#define SMALL_SLOTS 512u

/* --- a device in use --- */

static uint32_t slot_bytes(const struct weft_context *context, enum wf_slot_size size)
{
    uint32_t bytes = size == WF_SLOT_SMALL ? context->world.tuning.eager : context->world.tuning.chunk;
    return (bytes + SLOT_ALIGN - 1) / SLOT_ALIGN * SLOT_ALIGN;
}

static uint32_t slot_count(const struct weft_context *context, enum wf_slot_size size)
{
    if (size == WF_SLOT_SMALL)
        return SMALL_SLOTS;
    uint64_t count = context->world.tuning.staging / slot_bytes(context, size);
    return (uint32_t)(count < LARGE_SLOTS_MIN ? LARGE_SLOTS_MIN : count < SLOTS_MAX ? count : SLOTS_MAX);
}

static size_t pool_bytes(const struct weft_context *context, enum wf_slot_size size)
{
    uint32_t bytes = slot_bytes(context, size);
    return (size_t)(bytes ? bytes : SLOT_ALIGN) * slot_count(context, size);
}

/* Pinned, on the device's node, in huge pages where the system has them. None of the three is vital.
 *
 * Children do not get it: a page that is shared with one is copied when it is written next, and not with every kernel
 * and driver is it the child that gets the copy. Then the device would go on with the page that is no longer ours. */
static void settle_memory(struct wf_device *device)
{
    struct weft_context *context = device->context;
    const struct wf_devices *devices = &context->devices;
    struct wf_status status = {0};
    char why[128];
    madvise(device->memory, device->bytes, MADV_DONTFORK);
    madvise(device->memory, device->bytes, MADV_HUGEPAGE);
    bool placed = device->node >= 0 && context->crew.placement.pin != WF_PIN_OFF;
    if (placed && wf_place_memory(device->memory, device->bytes, device->node, why, sizeof why) < 0)
        wf_log(&context->world.log, WF_LOG_INFO, "GPU %d: staging memory is not on node %d: %s", device->index,
               device->node, why);
    device->pinned =
        devices->ops->pin(atomic_load(&devices->memory), device->index, device->memory, device->bytes, &status) == 0;
    if (device->pinned)
        return;
    wf_log(&context->world.log, WF_LOG_WARN, "GPU %d: staging memory is not pinned, copies are slower: %s",
           device->index, status.text);
    wf_world_fallback(&context->world, "cuda: staging memory of GPU %d is not pinned, copies are slower: %s",
                      device->index, status.text);
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
        devices->ops->unpin(atomic_load(&devices->memory), device->index, device->memory);
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
    if (context->world.shared)
        return context->crew.workers[0];
    for (int i = 0; i < context->rails.count; i++)
        if (node >= 0 && context->crew.placement.rail_nodes[i] == node)
            near[count++] = i;
    int rail = count > 0 ? near[index % count] : index % context->rails.count;
    return context->crew.workers[2 * rail];
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
        wf_world_fallback(&context->world, "cuda: no GPU memory, %s", devices->reason.text);
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
        wf_log(&context->world.log, WF_LOG_WARN,
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
