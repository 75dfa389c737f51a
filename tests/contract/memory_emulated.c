/* The CUDA memory kind, on the driver of tests/support/cuda. */
#include "memory_contract.h"

#include <dlfcn.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "emulated.h"
#include "mem/cuda_driver.h"

/* Everything is of the process: the driver is loaded once, and stays. */
static struct {
    struct wf_cuda_driver driver;
    __typeof__(weft_emulated_contexts) *contexts;
    __typeof__(weft_emulated_count) *count;
    __typeof__(weft_emulated_fault) *fault;
    wf_cu_result (*get_current)(wf_cu_context *context);
    wf_cu_result (*set_current)(wf_cu_context context);
    wf_cu_result (*wait_value)(wf_cu_stream stream, wf_cu_memory address, uint32_t value, unsigned int flags);
    wf_cu_context own; /* of the test's, as a user's program has one; NULL: none */
} emulated;

/* A stream of the user's; its blocked work waits for a word to reach the next number. */
struct emulated_stream {
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

static void load(void)
{
    struct wf_status status = {0};
    void *library = dlopen(EMULATED_CUDA, RTLD_NOW | RTLD_LOCAL);

    if (!library)
        fail_msg("%s", dlerror());
    if (wf_cuda_driver_open(&emulated.driver, &status))
        fail_msg("%s", status.text);
    assert_true(emulated.driver.emulated);
    look_up(library, &emulated.contexts, "weft_emulated_contexts");
    look_up(library, &emulated.count, "weft_emulated_count");
    look_up(library, &emulated.fault, "weft_emulated_fault");
    look_up(library, &emulated.get_current, "cuCtxGetCurrent");
    look_up(library, &emulated.set_current, "cuCtxSetCurrent");
    look_up(library, &emulated.wait_value, "cuStreamWaitValue32_v2");
}

static void emulated_fault(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void emulated_fault(const char *format, ...)
{
    char spec[128];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(spec, sizeof(spec), format, arguments);
    va_end(arguments);
    assert_int_equal(emulated.fault(spec), 0);
}

static void *emulated_create(uint64_t seed)
{
    (void)seed;
    if (!emulated.count)
        load();
    return NULL;
}

static void expect_nothing_left(const char *what)
{
    if (emulated.count(what) != 0)
        fail_msg("left behind: %llu %s", (unsigned long long)emulated.count(what), what);
}

static void emulated_destroy(void *host)
{
    (void)host;
    expect_nothing_left("streams");
    expect_nothing_left("events");
    expect_nothing_left("registered");
    expect_nothing_left("allocated");
    expect_nothing_left("pending");
    for (int i = 0; emulated.contexts(i) >= 0; i++)
        assert_int_equal(emulated.contexts(i), 0);
    emulated_fault("clear");
    emulated_fault("heal");
}

static void emulated_pass(void *host)
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

static void *emulated_stream_create(void *host, int device)
{
    const struct wf_cuda_api *api = &emulated.driver.api;
    struct emulated_stream *stream = calloc(1, sizeof(*stream));
    wf_cu_context context;

    (void)host;
    assert_non_null(stream);
    stream->device = device;
    stream->word = (uint32_t *)(void *)host_take(WORD_BYTES);
    assert_int_equal(api->cuDevicePrimaryCtxRetain(&stream->context, device), 0);
    assert_int_equal(api->cuCtxPushCurrent(stream->context), 0);
    assert_int_equal(api->cuStreamCreate(&stream->stream, WF_CU_STREAM_NON_BLOCKING), 0);
    assert_int_equal(api->cuMemHostRegister(stream->word, WORD_BYTES, WF_CU_REGISTER_PORTABLE), 0);
    assert_int_equal(api->cuCtxPopCurrent(&context), 0);
    return stream;
}

static void in_context(const struct emulated_stream *stream, bool enter)
{
    wf_cu_context context = stream->context;

    assert_int_equal(
        enter ? emulated.driver.api.cuCtxPushCurrent(context) : emulated.driver.api.cuCtxPopCurrent(&context), 0);
}

static void emulated_stream_destroy(void *host, void *handle)
{
    const struct wf_cuda_api *api = &emulated.driver.api;
    struct emulated_stream *stream = handle;

    (void)host;
    in_context(stream, true);
    assert_int_equal(api->cuStreamDestroy(stream->stream), 0);
    assert_int_equal(api->cuMemHostUnregister(stream->word), 0);
    in_context(stream, false);
    assert_int_equal(api->cuDevicePrimaryCtxRelease(stream->device), 0);
    host_give((uint8_t *)stream->word, WORD_BYTES);
    free(stream);
}

static void *emulated_stream_handle(void *host, void *handle)
{
    (void)host;
    return ((struct emulated_stream *)handle)->stream;
}

static void emulated_stream_block(void *host, void *handle)
{
    struct emulated_stream *stream = handle;

    (void)host;
    in_context(stream, true);
    assert_int_equal(
        emulated.wait_value(stream->stream, (uintptr_t)stream->word, ++stream->blocks, WF_CU_WAIT_VALUE_GEQ), 0);
    in_context(stream, false);
}

static void emulated_stream_release(void *host, void *handle)
{
    struct emulated_stream *stream = handle;

    (void)host;
    __atomic_fetch_add(stream->word, 1, __ATOMIC_RELEASE);
}

static void emulated_stream_write(void *host, void *handle, void *to, const void *from, uint64_t bytes)
{
    struct emulated_stream *stream = handle;

    (void)host;
    in_context(stream, true);
    assert_int_equal(emulated.driver.api.cuMemcpyHtoDAsync((uintptr_t)to, from, bytes, stream->stream), 0);
    in_context(stream, false);
}

/* --- what can be looked at --- */

static int emulated_retained(void *host, int device)
{
    (void)host;
    return emulated.contexts(device);
}

static void *emulated_current(void *host)
{
    wf_cu_context context = NULL;

    (void)host;
    assert_int_equal(emulated.get_current(&context), 0);
    return context;
}

static void emulated_set_current(void *host, bool own)
{
    (void)host;
    if (own)
        assert_int_equal(emulated.driver.api.cuDevicePrimaryCtxRetain(&emulated.own, 0), 0);
    assert_int_equal(emulated.set_current(own ? emulated.own : NULL), 0);
    if (!own && emulated.own) {
        assert_int_equal(emulated.driver.api.cuDevicePrimaryCtxRelease(0), 0);
        emulated.own = NULL;
    }
}

static uint64_t emulated_waits(void *host)
{
    (void)host;
    return emulated.count("synchronise");
}

static uint64_t emulated_copies(void *host, int device)
{
    (void)host, (void)device;
    return emulated.count("copies");
}

const struct memory_kind memory_emulated = {
    .name = "emulated",
    .ops = &wf_memory_cuda,
    .threads = true,
    .seeds = 1,
    .create = emulated_create,
    .destroy = emulated_destroy,
    .pass = emulated_pass,
    .fail_copy = emulated_fail_copy,
    .refuse_piece = emulated_refuse_piece,
    .fail_alloc = emulated_fail_alloc,
    .fail_pin = emulated_fail_pin,
    .lose = emulated_lose,
    .stream_create = emulated_stream_create,
    .stream_destroy = emulated_stream_destroy,
    .stream_handle = emulated_stream_handle,
    .stream_block = emulated_stream_block,
    .stream_release = emulated_stream_release,
    .stream_write = emulated_stream_write,
    .retained = emulated_retained,
    .current = emulated_current,
    .set_current = emulated_set_current,
    .waits = emulated_waits,
    .copies = emulated_copies,
};
