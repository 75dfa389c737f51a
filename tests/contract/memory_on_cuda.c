/* The CUDA memory kind, on the driver of tests/support/cuda, and on GPUs, where there are some. */
#include "memory_contract.h"

#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "emulated.h"
#include "mem/cuda_driver.h"

/* Everything is of the process: the driver is loaded once, and stays. The first three are the emulated one's. */
static struct {
    struct wf_cuda_driver driver;
    __typeof__(weft_emulated_contexts) *contexts;
    __typeof__(weft_emulated_count) *count;
    __typeof__(weft_emulated_fault) *fault;
    wf_cu_result (*get_current)(wf_cu_context *context);
    wf_cu_result (*set_current)(wf_cu_context context);
    wf_cu_result (*wait_value)(wf_cu_stream stream, wf_cu_memory address, uint32_t value, unsigned int flags);
    wf_cu_context own; /* of the test's, as a user's program has one; NULL: none */
} cuda;

/* A stream of the user's; its blocked work waits for a word to reach the next number. */
struct user_stream {
    int device;
    wf_cu_context context;
    wf_cu_stream stream;
    uint32_t *word;
    uint32_t blocks;
};

#define WORD_BYTES 4096

static void look_up(void *library, void *target, const char *name)
{
    void *found = dlsym(library, name);

    if (!found)
        fail_msg("%s", dlerror());
    memcpy(target, &found, sizeof(found));
}

static void load(void *library)
{
    struct wf_status status = {0};

    if (wf_cuda_driver_open(&cuda.driver, &status))
        fail_msg("%s", status.text);
    look_up(library, &cuda.get_current, "cuCtxGetCurrent");
    look_up(library, &cuda.set_current, "cuCtxSetCurrent");
    look_up(library, &cuda.wait_value, "cuStreamWaitValue32_v2");
}

static void load_emulated(void)
{
    void *library = dlopen(EMULATED_CUDA, RTLD_NOW | RTLD_LOCAL); /* under its name it is found from now on */

    if (!library)
        fail_msg("%s", dlerror());
    load(library);
    assert_true(cuda.driver.emulated);
    look_up(library, &cuda.contexts, "weft_emulated_contexts");
    look_up(library, &cuda.count, "weft_emulated_count");
    look_up(library, &cuda.fault, "weft_emulated_fault");
}

static void emulated_fault(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void emulated_fault(const char *format, ...)
{
    char spec[128];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(spec, sizeof(spec), format, arguments);
    va_end(arguments);
    assert_int_equal(cuda.fault(spec), 0);
}

static void *emulated_create(uint64_t seed)
{
    (void)seed;
    if (!cuda.count)
        load_emulated();
    return NULL;
}

static void expect_nothing_left(const char *what)
{
    if (cuda.count(what) != 0)
        fail_msg("left behind: %llu %s", (unsigned long long)cuda.count(what), what);
}

static void emulated_destroy(void *host)
{
    (void)host;
    expect_nothing_left("streams");
    expect_nothing_left("events");
    expect_nothing_left("registered");
    expect_nothing_left("allocated");
    expect_nothing_left("pending");
    for (int i = 0; cuda.contexts(i) >= 0; i++)
        assert_int_equal(cuda.contexts(i), 0);
    emulated_fault("clear");
    emulated_fault("heal");
}

static void cuda_pass(void *host)
{
    (void)host;
    sched_yield(); /* the driver's threads do the rest */
}

static const char *const way_names[] = {[WF_COPY_OUT] = "out", [WF_COPY_IN] = "in", [WF_COPY_PEER] = "peer"};

static void emulated_fail_copy(void *host, int device, enum wf_copy_way way)
{
    (void)host;
    emulated_fault("copy:device=%d,way=%s,at=1", device, way_names[way]);
}

static void emulated_refuse_piece(void *host, int device, enum wf_copy_way way, int at)
{
    (void)host;
    emulated_fault("refuse:device=%d,way=%s,at=%d", device, way_names[way], at);
}

static void emulated_fail_alloc(void *host, int device)
{
    (void)host;
    emulated_fault("alloc:device=%d,at=1", device);
}

static void emulated_fail_pin(void *host)
{
    (void)host;
    emulated_fault("register:at=1");
}

static void emulated_lose(void *host, int device)
{
    (void)host;
    emulated_fault("lost:device=%d", device);
}

/* --- streams of the user's --- */

static void *cuda_stream_create(void *host, int device)
{
    const struct wf_cuda_api *api = &cuda.driver.api;
    struct user_stream *stream = calloc(1, sizeof(*stream));
    wf_cu_context context;

    (void)host;
    assert_non_null(stream);
    stream->device = device;
    stream->word = (uint32_t *)(void *)host_take(WORD_BYTES);
    assert_int_equal(api->cuDevicePrimaryCtxRetain(&stream->context, device), 0);
    assert_int_equal(api->cuCtxPushCurrent(stream->context), 0);
    assert_int_equal(api->cuStreamCreate(&stream->stream, WF_CU_STREAM_NON_BLOCKING), 0);
    assert_int_equal(api->cuMemHostRegister(stream->word, WORD_BYTES, WF_CU_REGISTER_MAPPED), 0);
    assert_int_equal(api->cuCtxPopCurrent(&context), 0);
    return stream;
}

static void in_context(const struct user_stream *stream, bool enter)
{
    wf_cu_context context = stream->context;

    assert_int_equal(enter ? cuda.driver.api.cuCtxPushCurrent(context) : cuda.driver.api.cuCtxPopCurrent(&context), 0);
}

static void cuda_stream_destroy(void *host, void *handle)
{
    const struct wf_cuda_api *api = &cuda.driver.api;
    struct user_stream *stream = handle;

    (void)host;
    in_context(stream, true);
    assert_int_equal(api->cuStreamDestroy(stream->stream), 0);
    assert_int_equal(api->cuMemHostUnregister(stream->word), 0);
    in_context(stream, false);
    assert_int_equal(api->cuDevicePrimaryCtxRelease(stream->device), 0);
    host_give((uint8_t *)stream->word, WORD_BYTES);
    free(stream);
}

static void *cuda_stream_handle(void *host, void *handle)
{
    (void)host;
    return ((struct user_stream *)handle)->stream;
}

static void cuda_stream_block(void *host, void *handle)
{
    struct user_stream *stream = handle;

    (void)host;
    in_context(stream, true);
    assert_int_equal(cuda.wait_value(stream->stream, (uintptr_t)stream->word, ++stream->blocks, WF_CU_WAIT_VALUE_GEQ),
                     0);
    in_context(stream, false);
}

static void cuda_stream_release(void *host, void *handle)
{
    struct user_stream *stream = handle;

    (void)host;
    __atomic_fetch_add(stream->word, 1, __ATOMIC_RELEASE);
}

static void cuda_stream_write(void *host, void *handle, void *to, const void *from, uint64_t bytes)
{
    struct user_stream *stream = handle;

    (void)host;
    in_context(stream, true);
    assert_int_equal(cuda.driver.api.cuMemcpyHtoDAsync((uintptr_t)to, from, bytes, stream->stream), 0);
    in_context(stream, false);
}

/* --- what can be looked at --- */

static int emulated_retained(void *host, int device)
{
    (void)host;
    return cuda.contexts(device);
}

static void *cuda_current(void *host)
{
    wf_cu_context context = NULL;

    (void)host;
    assert_int_equal(cuda.get_current(&context), 0);
    return context;
}

static void cuda_set_current(void *host, bool own)
{
    (void)host;
    if (own)
        assert_int_equal(cuda.driver.api.cuDevicePrimaryCtxRetain(&cuda.own, 0), 0);
    assert_int_equal(cuda.set_current(own ? cuda.own : NULL), 0);
    if (!own && cuda.own) {
        assert_int_equal(cuda.driver.api.cuDevicePrimaryCtxRelease(0), 0);
        cuda.own = NULL;
    }
}

static uint64_t emulated_waits(void *host)
{
    (void)host;
    return cuda.count("synchronise");
}

static uint64_t emulated_copies(void *host, int device)
{
    (void)host, (void)device;
    return cuda.count("copies");
}

const struct memory_kind memory_emulated = {
    .name = "emulated",
    .ops = &wf_memory_cuda,
    .threads = true,
    .seeds = 1,
    .create = emulated_create,
    .destroy = emulated_destroy,
    .pass = cuda_pass,
    .fail_copy = emulated_fail_copy,
    .refuse_piece = emulated_refuse_piece,
    .fail_alloc = emulated_fail_alloc,
    .fail_pin = emulated_fail_pin,
    .lose = emulated_lose,
    .stream_create = cuda_stream_create,
    .stream_destroy = cuda_stream_destroy,
    .stream_handle = cuda_stream_handle,
    .stream_block = cuda_stream_block,
    .stream_release = cuda_stream_release,
    .stream_write = cuda_stream_write,
    .retained = emulated_retained,
    .current = cuda_current,
    .set_current = cuda_set_current,
    .waits = emulated_waits,
    .copies = emulated_copies,
};

/* --- GPUs --- */

static int gpu_probe(struct wf_status *status)
{
    struct wf_cuda_driver driver;
    int result = wf_cuda_driver_open(&driver, status);
    bool emulated = !result && driver.emulated;

    if (!result)
        wf_cuda_driver_close(&driver);
    return emulated ? wf_fail(status, -ENODEV, "the driver of this machine is emulated") : result;
}

static void *gpu_create(uint64_t seed)
{
    (void)seed;
    if (!cuda.driver.library)
        load(dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL));
    return NULL;
}

const struct memory_kind memory_gpu = {
    .name = "gpu",
    .ops = &wf_memory_cuda,
    .threads = true,
    .real = true,
    .seeds = 1,
    .probe = gpu_probe,
    .create = gpu_create,
    .pass = cuda_pass,
    .stream_create = cuda_stream_create,
    .stream_destroy = cuda_stream_destroy,
    .stream_handle = cuda_stream_handle,
    .stream_block = cuda_stream_block,
    .stream_release = cuda_stream_release,
    .stream_write = cuda_stream_write,
    .current = cuda_current,
    .set_current = cuda_set_current,
};
