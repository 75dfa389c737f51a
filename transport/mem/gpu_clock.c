#include "mem/gpu_clock.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <strings.h>

#include "base/clock.h"
#include "mem/cuda_driver.h"

#define TIMEOUT_NS (5 * WF_NS_PER_S)
#define REFERENCE_MS 2000 /* age of a reference at which it is replaced: milliseconds are floats, of 24 bits */
#define HEAT_BYTES_MAX (UINT64_C(1) << 30)
#define HEAT_BYTES_LEAST (UINT64_C(1) << 20)
#define HEAT_ROUND_NS (5 * WF_NS_PER_MS) /* of copies between two looks at the time, at least */
#define HEAT_COPIES_MAX 256

struct wf_gpu_clock {
    struct wf_cuda_driver driver;
    wf_cu_device device;
    wf_cu_context context; /* NULL: not retained */
    wf_cu_stream stream;   /* NULL: not made; and the events */
    wf_cu_event reference; /* was reached at reference_ns of the GPU's clock */
    wf_cu_event mark;
    double reference_ns;
};

static int failed(const struct wf_gpu_clock *clock, const char *what, wf_cu_result result, struct wf_status *status)
{
    char text[WF_CUDA_ERROR_TEXT];

    return wf_fail(status, result == WF_CU_OUT_OF_MEMORY ? -ENOMEM : -EIO, "%s: %s", what,
                   wf_cuda_error(&clock->driver.api, result, text));
}

static int enter(const struct wf_gpu_clock *clock, struct wf_status *status)
{
    wf_cu_result result = clock->driver.api.cuCtxPushCurrent(clock->context);

    return result ? failed(clock, "cuCtxPushCurrent", result, status) : 0;
}

static void leave(const struct wf_gpu_clock *clock)
{
    wf_cu_context context;

    (void)clock->driver.api.cuCtxPopCurrent(&context);
}

/* --- reading, between enter and leave --- */

/* The processor may be needed by others, so it is offered each time; where nobody wants it that takes no time. */
static wf_cu_result await(const struct wf_gpu_clock *clock, wf_cu_event event, int64_t *after_ns)
{
    int64_t end_ns = wf_clock_now(&wf_clock_monotonic) + TIMEOUT_NS;

    for (;;) {
        wf_cu_result result = clock->driver.api.cuEventQuery(event);
        *after_ns = wf_clock_now(&wf_clock_monotonic);
        if (result != WF_CU_NOT_READY || *after_ns >= end_ns)
            return result;
        sched_yield();
    }
}

static int record(const struct wf_gpu_clock *clock, wf_cu_event event, int64_t *before_ns, int64_t *after_ns,
                  struct wf_status *status)
{
    *before_ns = wf_clock_now(&wf_clock_monotonic);
    wf_cu_result result = clock->driver.api.cuEventRecord(event, clock->stream);
    if (result)
        return failed(clock, "cuEventRecord", result, status);
    result = await(clock, event, after_ns);
    if (result == WF_CU_NOT_READY)
        return wf_fail(status, -EIO, "the GPU says nothing for %d s", (int)(TIMEOUT_NS / WF_NS_PER_S));
    return result ? failed(clock, "cuEventQuery", result, status) : 0;
}

static int read_clock(struct wf_gpu_clock *clock, int64_t *before_ns, int64_t *after_ns, double *gpu_ns,
                      struct wf_status *status)
{
    int64_t before, after;
    float ms;
    int result = record(clock, clock->mark, &before, &after, status);

    if (result)
        return result;
    wf_cu_result answer = clock->driver.api.cuEventElapsedTime(&ms, clock->reference, clock->mark);
    if (answer)
        return failed(clock, "cuEventElapsedTime", answer, status);
    *before_ns = before;
    *after_ns = after;
    *gpu_ns = clock->reference_ns + (double)ms * WF_NS_PER_MS;
    if (ms < REFERENCE_MS)
        return 0;
    wf_cu_event old = clock->reference;
    clock->reference = clock->mark;
    clock->mark = old;
    clock->reference_ns = *gpu_ns;
    return 0;
}

int wf_gpu_clock_read(struct wf_gpu_clock *clock, int64_t *before_ns, int64_t *after_ns, double *gpu_ns,
                      struct wf_status *status)
{
    int result = enter(clock, status);

    if (result)
        return result;
    result = read_clock(clock, before_ns, after_ns, gpu_ns, status);
    leave(clock);
    return result;
}

/* --- opening --- */

static int find_device(struct wf_gpu_clock *clock, const char *pci, struct wf_status *status)
{
    const struct wf_cuda_api *api = &clock->driver.api;
    char text[32];

    for (int i = 0; i < clock->driver.devices; i++)
        if (api->cuDeviceGet(&clock->device, i) == WF_CU_SUCCESS &&
            api->cuDeviceGetPCIBusId(text, sizeof text, clock->device) == WF_CU_SUCCESS && strcasecmp(text, pci) == 0)
            return 0;
    return wf_fail(status, -ENODEV, "CUDA knows no GPU at PCI address '%s'", pci);
}

static int start(struct wf_gpu_clock *clock, struct wf_status *status)
{
    const struct wf_cuda_api *api = &clock->driver.api;
    int64_t before_ns, after_ns;
    int result = enter(clock, status);

    if (result)
        return result;
    wf_cu_result answer = api->cuStreamCreate(&clock->stream, WF_CU_STREAM_NON_BLOCKING);
    if (answer == WF_CU_SUCCESS)
        answer = api->cuEventCreate(&clock->reference, 0);
    if (answer == WF_CU_SUCCESS)
        answer = api->cuEventCreate(&clock->mark, 0);
    result = answer ? failed(clock, "a stream and events for the clock of a GPU", answer, status)
                    : record(clock, clock->reference, &before_ns, &after_ns, status);
    leave(clock);
    return result;
}

int wf_gpu_clock_open(const char *pci, struct wf_gpu_clock **out, struct wf_status *status)
{
    struct wf_gpu_clock *clock = calloc(1, sizeof *clock);
    int result =
        clock ? wf_cuda_driver_open(&clock->driver, status) : wf_fail(status, -ENOMEM, "no memory for a clock");

    if (result == 0 && !clock->driver.api.cuEventElapsedTime)
        result = wf_fail(status, -EOPNOTSUPP, "the GPU driver is too old: it has no cuEventElapsedTime");
    if (result == 0)
        result = find_device(clock, pci, status);
    if (result == 0) {
        wf_cu_result answer = clock->driver.api.cuDevicePrimaryCtxRetain(&clock->context, clock->device);
        result = answer ? failed(clock, "cuDevicePrimaryCtxRetain", answer, status) : start(clock, status);
        if (answer)
            clock->context = NULL;
    }
    if (result) {
        wf_gpu_clock_close(clock);
        return result;
    }
    *out = clock;
    return 0;
}

/* What a lost GPU had is gone already: errors say nothing new. */
void wf_gpu_clock_close(struct wf_gpu_clock *clock)
{
    if (!clock)
        return;
    const struct wf_cuda_api *api = &clock->driver.api;
    if (clock->context && enter(clock, NULL) == 0) {
        if (clock->mark)
            (void)api->cuEventDestroy(clock->mark);
        if (clock->reference)
            (void)api->cuEventDestroy(clock->reference);
        if (clock->stream)
            (void)api->cuStreamDestroy(clock->stream);
        leave(clock);
    }
    if (clock->context)
        (void)api->cuDevicePrimaryCtxRelease(clock->device);
    wf_cuda_driver_close(&clock->driver);
    free(clock);
}

/* --- heat, between enter and leave --- */

/* Rounds of copies, each as long that what is between two of them does not count. */
static wf_cu_result copy_for(const struct wf_gpu_clock *clock, wf_cu_memory memory, size_t half, int64_t for_ns)
{
    int64_t begin_ns = wf_clock_now(&wf_clock_monotonic), now_ns = begin_ns;
    int copies = 1;

    while (now_ns - begin_ns < for_ns) {
        wf_cu_result result = WF_CU_SUCCESS;
        for (int i = 0; i < copies && result == WF_CU_SUCCESS; i++)
            result = clock->driver.api.cuMemcpyDtoDAsync(memory + half, memory, half, clock->stream);
        wf_cu_result end = clock->driver.api.cuStreamSynchronize(clock->stream);
        if (result || end)
            return result ? result : end;
        int64_t round_ns = wf_clock_now(&wf_clock_monotonic) - now_ns;
        now_ns += round_ns;
        if (round_ns < HEAT_ROUND_NS && copies < HEAT_COPIES_MAX)
            copies *= 2;
    }
    return WF_CU_SUCCESS;
}

static int heat(const struct wf_gpu_clock *clock, int64_t for_ns, struct wf_status *status)
{
    const struct wf_cuda_api *api = &clock->driver.api;
    size_t free_bytes = 0, all_bytes = 0;
    wf_cu_memory memory = 0;
    wf_cu_result result = api->cuMemGetInfo(&free_bytes, &all_bytes);

    if (result)
        return failed(clock, "cuMemGetInfo", result, status);
    uint64_t bytes = free_bytes / 4 < HEAT_BYTES_MAX ? free_bytes / 4 : HEAT_BYTES_MAX;
    if (bytes < HEAT_BYTES_LEAST)
        return wf_fail(status, -ENOMEM, "the GPU has %zu bytes left: too few to keep it busy with", free_bytes);
    result = api->cuMemAlloc(&memory, bytes);
    if (result)
        return failed(clock, "cuMemAlloc", result, status);
    result = copy_for(clock, memory, bytes / 2, for_ns);
    (void)api->cuMemFree(memory);
    return result ? failed(clock, "copies within the GPU", result, status) : 0;
}

int wf_gpu_heat(struct wf_gpu_clock *clock, int64_t for_ns, struct wf_status *status)
{
    if (!clock->driver.api.cuMemGetInfo)
        return wf_fail(status, -EOPNOTSUPP, "the GPU driver is too old: it has no cuMemGetInfo");
    int result = enter(clock, status);
    if (result)
        return result;
    result = heat(clock, for_ns, status);
    leave(clock);
    return result;
}
