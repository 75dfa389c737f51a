/* The table, and the life of an open kind: which devices there are, and which of them are in use. */
#include "mem/memory_cuda.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void forget_memory(struct wf_memory *memory)
{
    for (int i = 0; i < memory->count; i++) {
        struct wf_cuda_device *device = &memory->devices[i];
        for (int way = 0; way < WF_CUDA_WAYS; way++)
            for (int k = 0; k < WF_CUDA_LANES; k++)
                pthread_mutex_destroy(&device->lanes[way][k].gathering);
        pthread_mutex_destroy(&device->lock);
    }
    wf_cuda_driver_close(&memory->driver);
    pthread_mutex_destroy(&memory->starting);
    pthread_mutex_destroy(&memory->lock);
    free(memory);
}

static wf_cu_result describe(const struct wf_cuda_api *api, int ordinal, struct wf_cuda_device *out)
{
    size_t bytes = 0;
    wf_cu_result result = api->cuDeviceGet(&out->handle, ordinal);

    if (!result)
        result = api->cuDeviceGetName(out->info.name, sizeof(out->info.name), out->handle);
    if (!result)
        result = api->cuDeviceTotalMem(&bytes, out->handle);
    if (result)
        return result;
    out->info.name[sizeof(out->info.name) - 1] = '\0';
    out->info.index = ordinal;
    out->info.bytes = bytes;
    if (api->cuDeviceGetPCIBusId(out->info.pci, sizeof(out->info.pci), out->handle))
        out->info.pci[0] = '\0';
    /* As the kernel writes them, so that they can be compared. */
    for (char *letter = out->info.pci; *letter; letter++)
        *letter = (char)tolower((unsigned char)*letter);
    return WF_CU_SUCCESS;
}

static bool cuda_present(void *host)
{
    (void)host;
    return wf_cuda_is_loaded();
}

static int cuda_open(void *host, struct wf_memory **out, struct wf_status *status)
{
    struct wf_memory *memory = calloc(1, sizeof(*memory));
    wf_cu_result result = WF_CU_SUCCESS;
    int code, failed;

    (void)host;
    if (!memory)
        return wf_fail(status, -ENOMEM, "no memory for %zu bytes that describe GPUs", sizeof(*memory));
    pthread_mutex_init(&memory->starting, NULL);
    pthread_mutex_init(&memory->lock, NULL);
    code = wf_cuda_driver_open(&memory->driver, status);
    if (code) {
        forget_memory(memory);
        return code;
    }
    while (memory->count < memory->driver.devices && memory->count < WF_DEVICES_MAX && !result) {
        struct wf_cuda_device *device = &memory->devices[memory->count++];
        pthread_mutex_init(&device->lock, NULL);
        for (int way = 0; way < WF_CUDA_WAYS; way++)
            for (int k = 0; k < WF_CUDA_LANES; k++)
                pthread_mutex_init(&device->lanes[way][k].gathering, NULL);
        atomic_store(&device->why, "");
        result = describe(&memory->driver.api, memory->count - 1, device);
    }
    if (result) {
        failed = memory->count - 1;
        wf_fail(status, -ENODEV, "GPU %d does not tell what it is: %s", failed, wf_cuda_words(memory, result));
        forget_memory(memory);
        return -ENODEV;
    }
    *out = memory;
    return 0;
}

/* From the context's point of view: whatever happened to the device, its part of the driver is let go. */
static void let_go(struct wf_memory *memory, struct wf_cuda_device *device)
{
    struct wf_cuda_visit visit;

    if (!wf_cuda_enter(memory, device, &visit)) {
        wf_cuda_device_stop(memory, device);
        wf_cuda_leave(memory, &visit);
    }
    (void)memory->driver.api.cuDevicePrimaryCtxRelease(device->handle);
    wf_cuda_device_forget(device);
    atomic_store(&device->ready, false);
    device->context = NULL;
}

static void cuda_close(struct wf_memory *memory)
{
    if (!memory)
        return;
    for (int i = 0; i < memory->count; i++)
        if (wf_cuda_in_use(memory, i))
            let_go(memory, &memory->devices[i]);
    forget_memory(memory);
}

static const char *cuda_name(const struct wf_memory *memory)
{
    return memory->driver.emulated ? "cuda (emulated)" : "cuda";
}

static int cuda_devices(const struct wf_memory *memory, struct wf_device_info *infos, int max)
{
    for (int i = 0; i < memory->count && i < max; i++)
        infos[i] = memory->devices[i].info;
    return memory->count;
}

static const char *cuda_why(const struct wf_memory *memory, int device)
{
    if (device < 0 || device >= memory->count)
        return "";
    return atomic_load(&memory->devices[device].why);
}

static int refuse(struct wf_memory *memory, const struct wf_cuda_device *device, const char *call, wf_cu_result result,
                  struct wf_status *status)
{
    const char *remedy = result == WF_CU_DEVICE_UNAVAILABLE ? " (another process may have it for itself: see its "
                                                              "compute mode)"
                         : result == WF_CU_OUT_OF_MEMORY    ? " (its memory is full)"
                                                            : "";

    return wf_fail(status, result == WF_CU_OUT_OF_MEMORY ? -ENOMEM : -ENODEV, "GPU %d: %s: %s%s", device->info.index,
                   call, wf_cuda_words(memory, result), remedy);
}

/* The lock is the caller's. */
static int start(struct wf_memory *memory, struct wf_cuda_device *device, struct wf_status *status)
{
    wf_cu_result result = memory->driver.api.cuDevicePrimaryCtxRetain(&device->context, device->handle);
    struct wf_cuda_visit visit;
    int code;

    if (result)
        return refuse(memory, device, "cuDevicePrimaryCtxRetain", result, status);
    result = wf_cuda_enter(memory, device, &visit);
    if (!result) {
        result = wf_cuda_device_start(memory, device);
        wf_cuda_leave(memory, &visit);
    }
    if (!result)
        return 0;
    code = refuse(memory, device, "making its streams and events", result, status);
    let_go(memory, device);
    atomic_store(&device->lost, false); /* what enter() says of a device that was not in use yet is not for good */
    return code;
}

static int cuda_use(struct wf_memory *memory, int index, struct wf_status *status)
{
    struct wf_cuda_device *device;
    int code = 0;

    if (index < 0 || index >= memory->count)
        return wf_fail(status, -ENODEV, "no GPU %d: this machine's are 0 to %d", index, memory->count - 1);
    device = &memory->devices[index];
    pthread_mutex_lock(&memory->starting);
    if (!wf_cuda_in_use(memory, index)) {
        code = start(memory, device, status);
        /* Set last: a thread that reads `ready` as true may use all of the device. */
        if (!code)
            atomic_store_explicit(&device->ready, true, memory_order_release);
    } else if (atomic_load(&device->lost)) {
        code = wf_fail(status, -ENODEV, "GPU %d cannot be used any more: %s", index, atomic_load(&device->why));
    }
    pthread_mutex_unlock(&memory->starting);
    return code;
}

const struct wf_memory_ops wf_memory_cuda = {
    .kind = "cuda",
    .present = cuda_present,
    .open = cuda_open,
    .close = cuda_close,
    .name = cuda_name,
    .devices = cuda_devices,
    .use = cuda_use,
    .locate = wf_cuda_locate,
    .extent = wf_cuda_extent,
    .alloc = wf_cuda_alloc,
    .free = wf_cuda_free,
    .pin = wf_cuda_pin,
    .unpin = wf_cuda_unpin,
    .copy_start = wf_cuda_copy_start,
    .copy_done = wf_cuda_copy_done,
    .why = cuda_why,
    .hold = wf_cuda_hold,
    .copy_now = wf_cuda_copy_now,
    .exports = wf_cuda_exports,
    .export_dmabuf = wf_cuda_export_dmabuf,
};
