/*
 * What the program does with its GPUs beside us, by the same contexts: graphs that it captures are not spoilt, and what
 * it breaks is broken for as few as can be. On the emulated driver.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "mem/memory_cuda.h"

#define SIZE 10000

static struct wf_memory *memory;
static const struct wf_cuda_api *api;
static uint8_t *pages;

/* What a program calls and we do not. */
static struct {
    __typeof__(cuStreamBeginCapture_v2) *begin_capture;
    __typeof__(cuStreamEndCapture) *end_capture;
    __typeof__(cuThreadExchangeStreamCaptureMode) *exchange_mode;
    __typeof__(weft_emulated_fault) *fault;
    __typeof__(weft_emulated_count) *count;
} user;

static void *look_up(void *library, const char *name)
{
    void *found = dlsym(library, name);

    if (!found)
        fail_msg("%s", dlerror());
    return found;
}

static int set_up(void **state)
{
    void *library = dlopen(EMULATED_CUDA, RTLD_NOW | RTLD_LOCAL);

    (void)state;
    assert_non_null(library);
    *(void **)&user.begin_capture = look_up(library, "cuStreamBeginCapture_v2");
    *(void **)&user.end_capture = look_up(library, "cuStreamEndCapture");
    *(void **)&user.exchange_mode = look_up(library, "cuThreadExchangeStreamCaptureMode");
    *(void **)&user.fault = look_up(library, "weft_emulated_fault");
    *(void **)&user.count = look_up(library, "weft_emulated_count");
    assert_int_equal(wf_memory_cuda.open(NULL, &memory, NULL), 0);
    api = &memory->driver.api;
    assert_int_equal(wf_memory_cuda.use(memory, 0, NULL), 0);
    pages = aligned_alloc(4096, 4 * 4096);
    assert_non_null(pages);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    wf_memory_cuda.close(memory);
    user.fault("heal");
    free(pages);
    return 0;
}

/* A stream of the program's on a GPU that is in use. */
static wf_cu_stream make_stream(int device, unsigned int flags)
{
    wf_cu_context context = memory->devices[device].context;
    wf_cu_stream stream = NULL;

    assert_int_equal(api->cuCtxPushCurrent(context), 0);
    assert_int_equal(api->cuStreamCreate(&stream, flags), 0);
    assert_int_equal(api->cuCtxPopCurrent(&context), 0);
    return stream;
}

static int run(struct wf_copy *copy, void *to, const void *from, uint64_t bytes)
{
    struct wf_copy_piece piece = {.to = to, .from = from, .bytes = bytes};
    int result = wf_memory_cuda.copy_start(memory, copy, &piece, copy->way == WF_COPY_MARK ? 0 : 1, false);

    while (result == 0 && (result = wf_memory_cuda.copy_done(memory, copy)) == 0)
        sched_yield();
    return result;
}

static int run_way(enum wf_copy_way way, int device, void *to, const void *from)
{
    struct wf_copy copy = {.device = device, .to_device = device, .way = way};

    return run(&copy, to, from, SIZE);
}

static void end_sound(wf_cu_stream stream)
{
    struct CUgraph_st *graph;

    assert_int_equal(user.end_capture(stream, &graph), EMU_OK);
}

/* --- graphs --- */

static void spoils_no_capture(void **state)
{
    wf_cu_stream captured = make_stream(0, WF_CU_STREAM_NON_BLOCKING), idle = make_stream(0, WF_CU_STREAM_NON_BLOCKING);
    struct wf_copy mark = {.device = 0, .way = WF_COPY_MARK, .stream = idle};
    uint8_t here[SIZE], image[SIZE];
    unsigned int mode = EMU_CAPTURE_THREAD_LOCAL;
    void *there = NULL, *more = NULL;

    (void)state;
    memset(image, 0x5C, SIZE);
    assert_int_equal(wf_memory_cuda.alloc(memory, 0, SIZE, &there, NULL), 0);
    assert_int_equal(user.begin_capture(captured, EMU_CAPTURE_GLOBAL), EMU_OK);
    assert_int_equal(wf_memory_cuda.pin(memory, 0, pages, 4096, NULL), 0);
    assert_int_equal(run_way(WF_COPY_IN, 0, there, image), 1);
    assert_int_equal(run_way(WF_COPY_OUT, 0, here, there), 1);
    assert_int_equal(run(&mark, NULL, NULL, 0), 1);
    assert_int_equal(wf_memory_cuda.alloc(memory, 0, SIZE, &more, NULL), 0);
    assert_int_equal(wf_memory_cuda.copy_now(memory, more, there, SIZE, NULL), 0);
    wf_memory_cuda.free(memory, 0, more);
    wf_memory_cuda.unpin(memory, 0, pages);
    end_sound(captured);
    assert_memory_equal(here, image, SIZE);

    /* And the thread heeds captures as it did. */
    assert_int_equal(user.exchange_mode(&mode), EMU_OK);
    assert_int_equal(mode, EMU_CAPTURE_GLOBAL);
    assert_int_equal(run_way(WF_COPY_OUT, 0, here, there), 1);
    assert_int_equal(user.exchange_mode(&mode), EMU_OK);
    assert_int_equal(mode, EMU_CAPTURE_THREAD_LOCAL);
    wf_memory_cuda.free(memory, 0, there);
    assert_int_equal(api->cuStreamDestroy(captured), 0);
    assert_int_equal(api->cuStreamDestroy(idle), 0);
}

/* An operation in a graph would be done whenever that is launched, and never now. */
static void takes_no_place_in_a_capture(void **state)
{
    wf_cu_stream captured = make_stream(0, 0);
    struct wf_copy marks[] = {{.device = 0, .way = WF_COPY_MARK, .stream = captured},
                              {.device = 0, .way = WF_COPY_MARK}}; /* the default stream, which heeds that one */

    (void)state;
    assert_int_equal(user.begin_capture(captured, EMU_CAPTURE_GLOBAL), EMU_OK);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(run(&marks[i], NULL, NULL, 0), -ENOTSUP);
        assert_true(marks[i].token == 0 && !marks[i].event);
    }
    end_sound(captured);
    for (int i = 0; i < 2; i++)
        assert_int_equal(run(&marks[i], NULL, NULL, 0), 1);
    assert_int_equal(api->cuStreamDestroy(captured), 0);
}

/* --- contexts that the program breaks --- */

/* As a kernel of the program's does that goes astray: unknown to us, until a call tells. */
static void break_context(int device)
{
    static const uint8_t source[SIZE];
    wf_cu_context context = memory->devices[device].context;
    wf_cu_memory place = 0;
    char spec[64];

    snprintf(spec, sizeof(spec), "launch:device=%d,way=in,at=1", device);
    assert_int_equal(user.fault(spec), 0);
    assert_int_equal(api->cuCtxPushCurrent(context), 0);
    assert_int_equal(api->cuMemAlloc(&place, SIZE), 0);
    assert_int_equal(api->cuMemcpyHtoDAsync(place, source, SIZE, NULL), 0);
    assert_int_equal(api->cuStreamSynchronize(NULL), EMU_LAUNCH_FAILED);
    assert_int_equal(api->cuCtxPopCurrent(&context), 0);
}

static void expect_sound(int device, void *there)
{
    uint8_t here[SIZE] = {0}, image[SIZE];

    memset(image, 0x3E + device, SIZE);
    assert_int_equal(run_way(WF_COPY_IN, device, there, image), 1);
    assert_int_equal(run_way(WF_COPY_OUT, device, here, there), 1);
    assert_memory_equal(here, image, SIZE);
}

static void loses_only_the_one_that_is_broken(void **state)
{
    struct wf_copy across = {.device = 0, .to_device = 1, .way = WF_COPY_PEER};
    void *near = NULL, *far = NULL;

    (void)state;
    assert_int_equal(wf_memory_cuda.use(memory, 1, NULL), 0);
    assert_int_equal(wf_memory_cuda.alloc(memory, 0, SIZE, &near, NULL), 0);
    assert_int_equal(wf_memory_cuda.alloc(memory, 1, SIZE, &far, NULL), 0);
    assert_int_equal(run(&across, far, near, SIZE), 1);
    break_context(1);
    assert_int_equal(run(&across, far, near, SIZE), -ENODEV);
    assert_string_equal(wf_memory_cuda.why(memory, 1), "CUDA_ERROR_LAUNCH_FAILED (719)");
    assert_string_equal(wf_memory_cuda.why(memory, 0), wf_memory_cuda.why(memory, 1)); /* of its last copy */
    assert_int_equal(run_way(WF_COPY_OUT, 1, pages, far), -ENODEV);
    expect_sound(0, near);
    wf_memory_cuda.free(memory, 1, far);
    wf_memory_cuda.free(memory, 0, near);
}

/* A device is made ready after another one was broken: it pins its memory by itself. */
static void pins_beside_one_that_is_broken(void **state)
{
    uint32_t *flag = (uint32_t *)(void *)pages;
    struct wf_copy behind = {.device = 1, .way = WF_COPY_MARK};
    struct wf_status status = {0};

    (void)state;
    break_context(0);
    assert_int_equal(wf_memory_cuda.use(memory, 1, NULL), 0);
    if (wf_memory_cuda.pin(memory, 1, pages, 4096, &status))
        fail_msg("%s", status.text);
    *flag = 3;
    assert_int_equal(wf_memory_cuda.hold(memory, 1, NULL, flag, 3), 0);
    assert_int_equal(run(&behind, NULL, NULL, 0), 1);
    wf_memory_cuda.unpin(memory, 1, pages);
    assert_int_equal(user.count("registered"), 0);
}

/* And memory of the broken one is let go by another. */
static void unpins_what_the_broken_one_has_pinned(void **state)
{
    (void)state;
    assert_int_equal(wf_memory_cuda.use(memory, 1, NULL), 0);
    assert_int_equal(wf_memory_cuda.pin(memory, 0, pages, 4096, NULL), 0);
    break_context(0);
    wf_memory_cuda.unpin(memory, 0, pages);
    assert_int_equal(user.count("registered"), 0);
}

/* Of a thread whose own context is the broken one. */
static void locates_by_one_that_is_sound(void **state)
{
    wf_cu_context context = memory->devices[0].context;
    struct wf_memory_place place = {.device = 7};
    struct wf_status status = {0};
    void *there = NULL;

    (void)state;
    assert_int_equal(wf_memory_cuda.use(memory, 1, NULL), 0);
    assert_int_equal(wf_memory_cuda.alloc(memory, 1, SIZE, &there, NULL), 0);
    break_context(0);
    assert_int_equal(api->cuCtxPushCurrent(context), 0);
    if (wf_memory_cuda.locate(memory, pages, SIZE, &place, &status))
        fail_msg("%s", status.text);
    assert_int_equal(place.device, WF_NO_DEVICE);
    if (wf_memory_cuda.locate(memory, there, SIZE, &place, &status))
        fail_msg("%s", status.text);
    assert_int_equal(place.device, 1);
    assert_int_equal(api->cuCtxPopCurrent(&context), 0);
    assert_ptr_equal(context, memory->devices[0].context);
    expect_sound(1, there);
    wf_memory_cuda.free(memory, 1, there);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(spoils_no_capture, set_up, tear_down),
        cmocka_unit_test_setup_teardown(takes_no_place_in_a_capture, set_up, tear_down),
        cmocka_unit_test_setup_teardown(loses_only_the_one_that_is_broken, set_up, tear_down),
        cmocka_unit_test_setup_teardown(pins_beside_one_that_is_broken, set_up, tear_down),
        cmocka_unit_test_setup_teardown(unpins_what_the_broken_one_has_pinned, set_up, tear_down),
        cmocka_unit_test_setup_teardown(locates_by_one_that_is_sound, set_up, tear_down),
    };

    return cmocka_run_group_tests_name("beside the program's own work", tests, NULL, NULL);
}
