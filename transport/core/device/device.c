#include "core/device/device.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "affinity/pin.h"
#include "core/device/gpu.h"
#include "core/device/turn.h"
#include "core/drive/worker.h"

#define SLOT_ALIGN 4096u
#define LARGE_SLOTS_MIN 4u
#define SLOTS_MAX 65536u
#define SMALL_SLOTS 512u

/* --- a device in use --- */

static uint32_t slot_bytes(const struct wf_devices *devices, enum wf_slot_size size)
{
    uint32_t bytes = size == WF_SLOT_SMALL ? devices->world->tuning.eager : devices->world->tuning.chunk;
    return (bytes + SLOT_ALIGN - 1) / SLOT_ALIGN * SLOT_ALIGN;
}

static uint32_t slot_count(const struct wf_devices *devices, enum wf_slot_size size)
{
    if (size == WF_SLOT_SMALL)
        return SMALL_SLOTS;
    uint64_t count = devices->world->tuning.staging / slot_bytes(devices, size);
    return (uint32_t)(count < LARGE_SLOTS_MIN ? LARGE_SLOTS_MIN : count < SLOTS_MAX ? count : SLOTS_MAX);
}

static size_t pool_bytes(const struct wf_devices *devices, enum wf_slot_size size)
{
    uint32_t bytes = slot_bytes(devices, size);
    return (size_t)(bytes ? bytes : SLOT_ALIGN) * slot_count(devices, size);
}

/* Staging memory is pinned, on the device's node, in huge pages where the system has them. It works without all three.
 *
 * A child process must not share it (MADV_DONTFORK): the next write to a shared page copies the page, and with some
 * kernels and drivers this process gets the copy. The device would then go on with a page that is no longer ours. */
static void settle_memory(struct wf_device *device)
{
    struct wf_devices *devices = device->devices;
    struct wf_status status = {0};
    char why[128];
    madvise(device->memory, device->bytes, MADV_DONTFORK);
    madvise(device->memory, device->bytes, MADV_HUGEPAGE);
    bool placed = device->node >= 0 && devices->crew->placement.pin != WF_PIN_OFF;
    if (placed && wf_place_memory(device->memory, device->bytes, device->node, why, sizeof why) < 0)
        wf_log(&devices->world->log, WF_LOG_INFO, "GPU %d: staging memory is not on node %d: %s", device->index,
               device->node, why);
    device->pinned =
        devices->ops->pin(atomic_load(&devices->memory), device->index, device->memory, device->bytes, &status) == 0;
    if (device->pinned)
        return;
    wf_log(&devices->world->log, WF_LOG_WARN, "GPU %d: staging memory is not pinned, copies are slower: %s",
           device->index, status.text);
    wf_world_fallback(devices->world, "cuda: staging memory of GPU %d is not pinned, copies are slower: %s",
                      device->index, status.text);
}

static int make_slots(struct wf_device *device, struct wf_status *status)
{
    struct wf_devices *devices = device->devices;
    for (int size = 0; size < WF_SLOT_SIZES; size++)
        device->bytes += WF_SLOT_WAYS * pool_bytes(devices, (enum wf_slot_size)size);
    device->bytes += WF_TURNS * sizeof(uint32_t); /* for the flags of the turns, in the same mapping */
    void *memory = mmap(NULL, device->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return wf_fail(status, -ENOMEM, "no memory for %zu bytes of staging for GPU %d: lower staging", device->bytes,
                       device->index);
    device->memory = memory;
    settle_memory(device);
    uint8_t *at = device->memory;
    for (int way = 0; way < WF_SLOT_WAYS; way++) {
        for (int size = 0; size < WF_SLOT_SIZES; size++) {
            uint32_t bytes = slot_bytes(devices, (enum wf_slot_size)size);
            uint32_t count = slot_count(devices, (enum wf_slot_size)size);
            if (wf_slot_pool_init(&device->pools[way][size], at, count, bytes ? bytes : SLOT_ALIGN) < 0)
                return wf_fail(status, -ENOMEM, "no memory for the slots of GPU %d", device->index);
            at += pool_bytes(devices, (enum wf_slot_size)size);
        }
    }
    return wf_turns_init(device, (uint32_t *)(void *)at, status);
}

static void destroy(struct wf_device *device)
{
    const struct wf_devices *devices = device->devices;
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

/* A worker that sends on a rail of the device's node: devices take these rails in turn, or all rails if the node has
 * none. */
static struct wf_worker *worker_for(const struct wf_devices *devices, int index, int node)
{
    const int rails = devices->crew->count / 2; /* a pair of workers for each rail, unless shared */
    int near[WF_RAILS_MAX], count = 0;
    if (devices->world->shared)
        return devices->crew->workers[0];
    for (int i = 0; i < rails; i++)
        if (node >= 0 && devices->crew->placement.rail_nodes[i] == node)
            near[count++] = i;
    int rail = count > 0 ? near[index % count] : index % rails;
    return devices->crew->workers[2 * rail];
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

static struct wf_device *create(struct wf_devices *devices, struct wf_memory *memory, int index,
                                struct wf_status *status)
{
    if (index < 0 || index >= WF_DEVICES_MAX)
        wf_fail(status, -ENODEV, "GPU %d: there are at most %d", index, WF_DEVICES_MAX);
    else if (devices->ops->use(memory, index, status) == 0) {
        struct wf_device *device = calloc(1, sizeof *device);
        if (!device) {
            wf_fail(status, -ENOMEM, "no memory for GPU %d", index);
            return NULL;
        }
        device->devices = devices;
        device->index = index;
        device->node = node_of(devices, memory, index);
        device->worker = worker_for(devices, index, device->node);
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

/* Opens device memory unless it is open, forbidden, or has failed to open before. devices.lock held. */
static struct wf_memory *open_memory(struct wf_devices *devices)
{
    struct wf_memory *memory = atomic_load(&devices->memory);
    if (memory || devices->reason.code < 0 || devices->forbidden)
        return memory;
    if (devices->ops->open(devices->host, &memory, &devices->reason) < 0)
        return NULL;
    atomic_store(&devices->memory, memory);
    return memory;
}

struct wf_device *wf_devices_used(const struct wf_devices *devices, int index)
{
    int count = atomic_load(&devices->used_count);
    for (int i = 0; i < count; i++)
        if (atomic_load(&devices->used[i])->index == index)
            return atomic_load(&devices->used[i]);
    return NULL;
}

int wf_devices_use(struct wf_devices *devices, int index, struct wf_device **out, struct wf_status *status)
{
    int result = 0;
    struct wf_device *device = wf_devices_used(devices, index);
    if (device) {
        *out = device;
        return 0;
    }
    pthread_mutex_lock(&devices->lock);
    device = wf_devices_used(devices, index); /* another thread may have made it meanwhile */
    struct wf_memory *memory = device ? NULL : open_memory(devices);
    if (!device && !memory)
        result = wf_fail(status, -ENODEV, "no GPU memory: %s",
                         devices->forbidden ? "it is not to be used (cuda = off)" : devices->reason.text);
    else if (!device && !(device = create(devices, memory, index, status)))
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

static struct wf_memory *open_now(struct wf_devices *devices)
{
    pthread_mutex_lock(&devices->lock);
    struct wf_memory *memory = open_memory(devices);
    pthread_mutex_unlock(&devices->lock);
    return memory;
}

static int drive(void *devices, struct wf_worker *worker)
{
    return wf_devices_drive(devices, worker);
}

static bool busy(void *devices, const struct wf_worker *worker)
{
    return wf_devices_busy(devices, worker);
}

/* Makes the GPUs of the setting `gpus` ready. */
static int use_named(struct wf_devices *devices, const char *list, struct wf_status *status)
{
    struct wf_device_info infos[WF_DEVICES_MAX];
    bool wanted[WF_DEVICES_MAX] = {false};
    int count = devices->ops->devices(atomic_load(&devices->memory), infos, WF_DEVICES_MAX);
    int result = wf_gpu_list_read(list, infos, count < WF_DEVICES_MAX ? count : WF_DEVICES_MAX, wanted, status);
    for (int i = 0; i < WF_DEVICES_MAX && result == 0; i++) {
        struct wf_device *device;
        if (wanted[i])
            result = wf_devices_use(devices, i, &device, status);
    }
    return result;
}

void wf_devices_init(struct wf_devices *devices, struct wf_crew *crew, const struct wf_memory_ops *ops, void *host,
                     bool forbidden)
{
    devices->world = crew->world;
    devices->crew = crew;
    devices->ops = ops;
    devices->host = host;
    devices->forbidden = forbidden;
    pthread_mutex_init(&devices->lock, NULL);
    wf_crew_copies(crew, devices, drive, busy);
}

int wf_devices_begin(struct wf_devices *devices, const struct wf_config *config, struct wf_status *status)
{
    const char *cuda = wf_config_text(config, WF_SET_CUDA), *gpus = wf_config_text(config, WF_SET_GPUS);
    bool required = strcmp(cuda, "require") == 0;
    devices->forbidden |= strcmp(cuda, "off") == 0;
    if (devices->forbidden && gpus[0])
        return wf_fail(status, -EINVAL, "gpus = %s and cuda = off exclude each other", gpus);
    if (devices->forbidden || (!required && !gpus[0]))
        return 0;
    if (!open_now(devices)) {
        wf_world_fallback(devices->world, "cuda: no GPU memory, %s", devices->reason.text);
        bool vital = required || strcmp(gpus, "all") != 0;
        return vital ? wf_fail(status, -ENODEV, "cuda = %s, gpus = %s: %s", cuda, gpus[0] ? gpus : "\"\"",
                               devices->reason.text)
                     : 0;
    }
    return gpus[0] ? use_named(devices, gpus, status) : 0;
}

void wf_devices_fini(struct wf_devices *devices)
{
    bool all = true;
    for (int i = 0; i < atomic_load(&devices->used_count); i++) {
        struct wf_device *device = atomic_load(&devices->used[i]);
        if (atomic_load(&device->under_way) == 0) {
            destroy(device);
            continue;
        }
        all = false; /* a stream will still read a flag in the device's staging memory */
        wf_log(&devices->world->log, WF_LOG_WARN,
               "GPU %d: %zu bytes of staging stay behind: a stream has not come to an operation that was ordered in it "
               "(let streams end before their context)",
               device->index, device->bytes);
    }
    if (all && atomic_load(&devices->memory))
        devices->ops->close(atomic_load(&devices->memory));
    pthread_mutex_destroy(&devices->lock);
}

/* --- whose memory --- */

int wf_devices_find(struct wf_devices *devices, const void *base, uint64_t length, struct wf_device **out,
                    struct wf_status *status)
{
    struct wf_memory *memory = atomic_load(&devices->memory);
    *out = NULL;
    if (devices->forbidden || (!memory && !devices->ops->present(devices->host)))
        return 0;
    if (!memory)
        memory = open_now(devices);
    struct wf_memory_place place;
    int result = memory ? devices->ops->locate(memory, base, length, &place, status) : 0;
    if (!memory || result < 0 || place.device == WF_NO_DEVICE)
        return result;
    return wf_devices_use(devices, place.device, out, status);
}

bool wf_devices_own(struct wf_devices *devices, const void *base)
{
    struct wf_memory *memory = atomic_load(&devices->memory);
    struct wf_memory_place place;
    struct wf_status status = {0};
    return memory && devices->ops->locate(memory, base, 1, &place, &status) == 0 && place.device != WF_NO_DEVICE;
}
