/* One device: its context, its streams and events, and what its errors mean. */
#include "mem/memory_cuda.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct wf_cuda_device *wf_cuda_in_use(struct wf_memory *memory, int device)
{
    if (device < 0 || device >= memory->count)
        return NULL;
    if (!atomic_load_explicit(&memory->devices[device].ready, memory_order_acquire))
        return NULL;
    return &memory->devices[device];
}

const char *wf_cuda_words(struct wf_memory *memory, wf_cu_result result)
{
    const char *text = "an error of the CUDA driver";
    int count;

    pthread_mutex_lock(&memory->lock);
    count = memory->words_count;
    for (int i = 0; i < count; i++) {
        if (memory->words[i].result == result) {
            pthread_mutex_unlock(&memory->lock);
            return memory->words[i].text;
        }
    }
    if (count < WF_CUDA_ERRORS) {
        memory->words[count].result = result;
        text = wf_cuda_error(&memory->driver.api, result, memory->words[count].text);
        memory->words_count++;
    }
    pthread_mutex_unlock(&memory->lock);
    return text;
}

static void lose(struct wf_memory *memory, struct wf_cuda_device *device, wf_cu_result result)
{
    atomic_store(&device->why, wf_cuda_words(memory, result));
    atomic_store(&device->lost, true);
}

/* The device itself, not what this process did with it. */
static void lose_device(struct wf_memory *memory, struct wf_cuda_device *device, wf_cu_result result)
{
    const char *words = wf_cuda_words(memory, result);

    pthread_mutex_lock(&memory->lock);
    if (!device->fate[0])
        snprintf(device->fate, sizeof(device->fate), "it is lost: %s", words);
    pthread_mutex_unlock(&memory->lock);
    atomic_store(&device->why, device->fate);
    atomic_store(&device->lost, true);
}

/* Errors of which cuda.h says that whatever follows them fails as well. */
static bool is_lasting(wf_cu_result result)
{
    static const unsigned short lasting[] = {
        220, /* an error of NVLink that cannot be corrected */
        226, /* contained memory error */
        700, /* illegal address */
        702, /* launch took too long */
        710, /* assertion */
        714, /* hardware stack error */
        715, /* illegal instruction */
        716, /* misaligned address */
        717, /* invalid address space */
        718, /* invalid program counter */
        719, /* launch failed */
        721, /* tensor memory leak */
        810, /* the server that shares the GPU ended this client */
        911, /* error outside of the GPU */
    };

    for (size_t i = 0; i < sizeof(lasting) / sizeof(*lasting); i++)
        if (result == lasting[i])
            return true;
    return false;
}

int wf_cuda_fault(struct wf_memory *memory, struct wf_cuda_device *device, wf_cu_result result)
{
    if (is_lasting(result)) {
        lose(memory, device, result);
        return -ENODEV;
    }
    /* Any other error may pass or last. A lasting error is the answer to every call from then on, so one call tells. */
    if (memory->driver.api.cuEventQuery(device->probe) != WF_CU_SUCCESS) {
        lose_device(memory, device, result);
        return -ENODEV;
    }
    atomic_store(&device->why, wf_cuda_words(memory, result));
    return -EIO;
}

/* Even an error that lasts says nothing of whose it is: that tells each device of itself. */
int wf_cuda_fault_between(struct wf_memory *memory, struct wf_cuda_device *device, struct wf_cuda_device *peer,
                          wf_cu_result result)
{
    struct wf_cuda_device *both[] = {device, peer};
    int code = -EIO;

    if (device == peer)
        return wf_cuda_fault(memory, device, result);
    for (int i = 0; i < 2; i++) {
        atomic_store(&both[i]->why, wf_cuda_words(memory, result));
        if (memory->driver.api.cuEventQuery(both[i]->probe) == WF_CU_SUCCESS)
            continue;
        (is_lasting(result) ? lose : lose_device)(memory, both[i], result);
        code = -ENODEV;
    }
    return code;
}

wf_cu_result wf_cuda_enter(struct wf_memory *memory, struct wf_cuda_device *device, struct wf_cuda_visit *visit)
{
    wf_cu_result result = memory->driver.api.cuCtxPushCurrent(device->context);

    /* The program destroyed the context, or the driver is going away with the process. */
    if (result) {
        lose(memory, device, result);
        return result;
    }
    /* While a stream is captured into a graph, other threads may not even query an event, and a query ends the
     * capture with an error. No call here touches a captured stream, so the thread's mode is relaxed. */
    visit->capture = WF_CU_CAPTURE_RELAXED;
    (void)memory->driver.api.cuThreadExchangeStreamCaptureMode(&visit->capture);
    return WF_CU_SUCCESS;
}

void wf_cuda_leave(struct wf_memory *memory, struct wf_cuda_visit *visit)
{
    wf_cu_context context;

    (void)memory->driver.api.cuThreadExchangeStreamCaptureMode(&visit->capture);
    (void)memory->driver.api.cuCtxPopCurrent(&context);
}

/* --- events --- */

/* A slab more; the device's lock is held. Fewer than a slab are fine, none is not. */
static wf_cu_result more_events(struct wf_memory *memory, struct wf_cuda_device *device)
{
    wf_cu_event *grown = realloc(device->events, (size_t)(device->events_made + WF_CUDA_EVENTS) * sizeof(*grown));

    if (!grown)
        return WF_CU_OUT_OF_MEMORY;
    device->events = grown;
    for (int i = 0; i < WF_CUDA_EVENTS; i++) {
        wf_cu_event event;
        wf_cu_result result = memory->driver.api.cuEventCreate(&event, WF_CU_EVENT_DISABLE_TIMING);
        if (result)
            return i ? WF_CU_SUCCESS : result;
        device->events[device->events_free++] = event;
        device->events_made++;
    }
    return WF_CU_SUCCESS;
}

wf_cu_event wf_cuda_event_take(struct wf_memory *memory, struct wf_cuda_device *device, wf_cu_result *result)
{
    wf_cu_event event = NULL;

    *result = WF_CU_SUCCESS;
    pthread_mutex_lock(&device->lock);
    if (device->events_free == 0)
        *result = more_events(memory, device);
    if (!*result)
        event = device->events[--device->events_free];
    pthread_mutex_unlock(&device->lock);
    return event;
}

void wf_cuda_event_give(struct wf_cuda_device *device, wf_cu_event event)
{
    pthread_mutex_lock(&device->lock);
    device->events[device->events_free++] = event;
    pthread_mutex_unlock(&device->lock);
}

/* --- start and stop --- */

#define TABLE_BYTES (WF_CUDA_GATHERED * sizeof(struct wf_gather_piece))
#define TABLES_BYTES (2 * WF_CUDA_LANES * WF_CUDA_TABLES * TABLE_BYTES)

/* Pinned, because it is read after the call that copies it; of the device alone, not of a child of this process. */
static struct wf_gather_piece *make_tables(const struct wf_cuda_api *api)
{
    void *tables = mmap(NULL, TABLES_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (tables == MAP_FAILED)
        return NULL;
    madvise(tables, TABLES_BYTES, MADV_DONTFORK);
    if (!api->cuMemHostRegister(tables, TABLES_BYTES, WF_CU_REGISTER_PORTABLE))
        return tables;
    munmap(tables, TABLES_BYTES);
    return NULL;
}

static bool start_lane(const struct wf_cuda_api *api, struct wf_cuda_lane *lane)
{
    for (int i = 0; i < WF_CUDA_TABLES; i++)
        if (api->cuEventCreate(&lane->read[i], WF_CU_EVENT_DISABLE_TIMING))
            return false;
    if (api->cuMemAlloc(&lane->pieces, TABLE_BYTES)) {
        lane->pieces = 0;
        return false;
    }
    if (api->cuMemAlloc(&lane->scratch, WF_CUDA_SCRATCH))
        lane->scratch = 0;
    return lane->scratch != 0;
}

/* Kernels save launches, they enable nothing: without memory for them the device is used all the same. */
static void start_gathering(struct wf_memory *memory, struct wf_cuda_device *device)
{
    const struct wf_cuda_api *api = &memory->driver.api;
    struct wf_gather_piece *tables;

    if (wf_cuda_kernels_load(api, &device->kernels))
        return;
    tables = device->tables = make_tables(api);
    for (int way = WF_COPY_OUT; way <= WF_COPY_IN && tables; way++) {
        for (int i = 0; i < WF_CUDA_LANES; i++, tables += WF_CUDA_TABLES * WF_CUDA_GATHERED) {
            device->lanes[way][i].tables = tables;
            if (!start_lane(api, &device->lanes[way][i]))
                return;
        }
    }
}

wf_cu_result wf_cuda_device_start(struct wf_memory *memory, struct wf_cuda_device *device)
{
    const struct wf_cuda_api *api = &memory->driver.api;
    wf_cu_result result = api->cuStreamCreate(&device->now, WF_CU_STREAM_NON_BLOCKING);

    for (int way = 0; way < WF_CUDA_WAYS; way++)
        for (int i = 0; i < WF_CUDA_LANES && !result; i++)
            result = api->cuStreamCreate(&device->lanes[way][i].stream, WF_CU_STREAM_NON_BLOCKING);
    if (!result)
        result = api->cuEventCreate(&device->probe, WF_CU_EVENT_DISABLE_TIMING);
    if (!result)
        result = more_events(memory, device);
    if (!result)
        start_gathering(memory, device);
    return result;
}

/* Answers are of no use: a lost device refuses everything, and what it had is gone with it. */
void wf_cuda_device_stop(struct wf_memory *memory, struct wf_cuda_device *device)
{
    const struct wf_cuda_api *api = &memory->driver.api;

    for (int way = 0; way < WF_CUDA_WAYS; way++) {
        for (int i = 0; i < WF_CUDA_LANES; i++) {
            struct wf_cuda_lane *lane = &device->lanes[way][i];
            if (lane->stream)
                (void)api->cuStreamDestroy(lane->stream);
            if (lane->pieces)
                (void)api->cuMemFree(lane->pieces);
            if (lane->scratch)
                (void)api->cuMemFree(lane->scratch);
            for (int k = 0; k < WF_CUDA_TABLES; k++)
                if (lane->read[k])
                    (void)api->cuEventDestroy(lane->read[k]);
            memset(lane->read, 0, sizeof(lane->read));
            lane->stream = NULL;
            lane->pieces = lane->scratch = 0;
        }
    }
    wf_cuda_kernels_unload(api, &device->kernels);
    if (device->tables)
        (void)api->cuMemHostUnregister(device->tables);
    if (device->now)
        (void)api->cuStreamDestroy(device->now);
    if (device->probe)
        (void)api->cuEventDestroy(device->probe);
    while (device->events_free > 0)
        (void)api->cuEventDestroy(device->events[--device->events_free]);
    device->now = NULL;
    device->probe = NULL;
}

void wf_cuda_device_forget(struct wf_cuda_device *device)
{
    if (device->tables)
        munmap(device->tables, TABLES_BYTES);
    device->tables = NULL;
    free(device->events); /* where the context could not be entered, its events are gone with it */
    device->events = NULL;
    device->events_made = device->events_free = 0;
}
