/* The emulated driver's order: each stream keeps its own, and no other is to be counted on. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "emulated_fixture.h"

#define STREAMS 4
#define COPIES 64

/* Each copy overwrites the one before it in its stream, and each stream's last one then writes to one place of all of
 * them. True: it was not the stream that was asked last that wrote there last. */
static bool race(struct fixture *fixture, struct CUstream_st **streams, struct CUevent_st **events)
{
    emu_pointer shared = fixture->memory + STREAMS * 64;
    bool done[COPIES] = {false};

    for (int i = 0; i < COPIES; i++)
        memset(fixture->pinned + i * 64, i + 1, 64);
    cuda.pause(DEVICE, 1); /* else it is up to the scheduler whether one waits while another is asked for */
    for (int i = 0; i < COPIES; i++) {
        emu_pointer place = fixture->memory + (emu_pointer)(i % STREAMS) * 64;
        OK(cuda.cuMemcpyHtoDAsync(place, fixture->pinned + i * 64, 64, streams[i % STREAMS]));
        OK(cuda.cuEventRecord(events[i], streams[i % STREAMS]));
    }
    for (int i = 0; i < STREAMS; i++)
        OK(cuda.cuMemcpyDtoDAsync(shared, fixture->memory + (emu_pointer)i * 64, 64, streams[i]));
    cuda.pause(DEVICE, 0);
    for (int left = COPIES; left > 0;) {
        for (int i = COPIES - 1; i >= 0; i--) { /* from behind, so that a stream's later one would be seen first */
            if (done[i] || cuda.cuEventQuery(events[i]) == EMU_NOT_READY)
                continue;
            done[i] = true;
            left--;
            for (int before = i - STREAMS; before >= 0; before -= STREAMS)
                OK(cuda.cuEventQuery(events[before]));
        }
    }
    for (int i = 0; i < STREAMS; i++)
        OK(cuda.cuStreamSynchronize(streams[i]));
    OK(cuda.cuMemcpyDtoHAsync(fixture->pinned + 64 * KIB, fixture->memory, (STREAMS + 1) * 64, streams[0]));
    OK(cuda.cuStreamSynchronize(streams[0]));
    for (int i = 0; i < STREAMS; i++)
        assert_int_equal(fixture->pinned[64 * KIB + i * 64], COPIES - STREAMS + i + 1);
    return fixture->pinned[64 * KIB + STREAMS * 64] != COPIES;
}

static void only_streams_keep_order(void **state)
{
    struct fixture *fixture = *state;
    struct CUstream_st *streams[STREAMS];
    struct CUevent_st *events[COPIES];
    bool overtaken = false;

    for (int i = 0; i < STREAMS; i++)
        OK(cuda.cuStreamCreate(&streams[i], EMU_STREAM_NON_BLOCKING));
    for (int i = 0; i < COPIES; i++)
        OK(cuda.cuEventCreate(&events[i], 2));
    for (int round = 0; round < 200 && !overtaken; round++)
        overtaken = race(fixture, streams, events);
    assert_true(overtaken);
    for (int i = 0; i < STREAMS; i++)
        OK(cuda.cuStreamDestroy(streams[i]));
    for (int i = 0; i < COPIES; i++)
        OK(cuda.cuEventDestroy(events[i]));
}

static void the_default_stream_waits_for_those_that_heed_it(void **state)
{
    struct fixture *fixture = *state;
    uint32_t *word = (uint32_t *)(fixture->pinned + MIB - 64);
    struct CUstream_st *heeding;
    struct CUevent_st *in_default, *behind;

    OK(cuda.cuStreamCreate(&heeding, 0));
    OK(cuda.cuEventCreate(&in_default, 2));
    OK(cuda.cuEventCreate(&behind, 2));
    OK(cuda.cuEventQuery(in_default)); /* never recorded: nothing to wait for */
    hold(heeding, word);
    OK(cuda.cuEventRecord(in_default, NULL));
    OK(cuda.cuEventRecord(behind, heeding));
    OK(cuda.cuMemcpyHtoDAsync(fixture->memory, fixture->pinned, 64, fixture->stream));
    OK(cuda.cuEventRecord(fixture->event, fixture->stream));
    until_done(fixture->event); /* this one heeds nobody */
    assert_int_equal(cuda.cuEventQuery(in_default), EMU_NOT_READY);
    let_go(word);
    until_done(behind);
    OK(cuda.cuEventQuery(in_default));
    OK(cuda.cuEventDestroy(in_default));
    OK(cuda.cuEventDestroy(behind));
    OK(cuda.cuStreamDestroy(heeding));
}

static void devices_wait_for_each_other_by_events(void **state)
{
    struct fixture *fixture = *state;
    uint32_t *word = (uint32_t *)(fixture->pinned + MIB - 64);
    struct CUctx_st *other;
    struct CUstream_st *stream;
    emu_pointer memory;
    uint64_t before = cuda.count("copies peer");

    OK(cuda.cuDevicePrimaryCtxRetain(&other, 2));
    OK(cuda.cuCtxPushCurrent(other));
    OK(cuda.cuStreamCreate(&stream, EMU_STREAM_NON_BLOCKING));
    OK(cuda.cuMemAlloc(&memory, MIB));
    assert_int_equal(cuda.cuEventRecord(fixture->event, stream), EMU_INVALID_HANDLE); /* another context's */
    hold(fixture->stream, word);
    memset(fixture->pinned, 9, MIB / 2);
    OK(cuda.cuMemcpyHtoDAsync(fixture->memory, fixture->pinned, MIB / 2, fixture->stream));
    OK(cuda.cuEventRecord(fixture->event, fixture->stream));
    OK(cuda.cuStreamWaitEvent(stream, fixture->event, 0));
    assert_int_equal(cuda.cuMemcpyPeerAsync(memory, fixture->context, fixture->memory, fixture->context, 4096, stream),
                     EMU_INVALID_CONTEXT);
    OK(cuda.cuMemcpyPeerAsync(memory, other, fixture->memory, fixture->context, MIB / 2, stream));
    OK(cuda.cuMemcpyDtoHAsync(fixture->pinned + MIB / 2, memory, MIB / 4, stream));
    for (int i = 0; i < 10000; i++) {
        assert_int_equal(cuda.count("copies peer"), before);
        sched_yield();
    }
    let_go(word);
    OK(cuda.cuStreamSynchronize(stream));
    assert_memory_equal(fixture->pinned, fixture->pinned + MIB / 2, MIB / 4);
    assert_int_equal(cuda.count("copies peer"), before + 1);
    OK(cuda.cuMemFree(memory));
    OK(cuda.cuStreamDestroy(stream));
    OK(cuda.cuCtxPopCurrent(NULL));
    OK(cuda.cuDevicePrimaryCtxRelease(2));
}

static void a_paused_gpu_does_nothing(void **state)
{
    struct fixture *fixture = *state;
    uint64_t ended;

    cuda.pause(DEVICE, 1);
    ended = cuda.count("operations");
    memset(fixture->pinned, 5, 4096);
    OK(cuda.cuMemcpyHtoDAsync(fixture->memory, fixture->pinned, 4096, fixture->stream));
    OK(cuda.cuMemcpyDtoHAsync(fixture->pinned + 4096, fixture->memory, 4096, fixture->stream));
    OK(cuda.cuEventRecord(fixture->event, fixture->stream));
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(cuda.cuEventQuery(fixture->event), EMU_NOT_READY);
        sched_yield();
    }
    assert_int_equal(cuda.count("operations"), ended);
    assert_int_equal(fixture->pinned[4096], 0);
    cuda.pause(DEVICE, 0);
    until_done(fixture->event);
    assert_int_equal(cuda.count("operations"), ended + 3);
    assert_memory_equal(fixture->pinned, fixture->pinned + 4096, 4096);
}

/* Lets the device go on once somebody waits for it. */
static void *go_on_when_waited_for(void *argument)
{
    const uint64_t *waits = argument;

    while (cuda.count("synchronise") == *waits)
        sched_yield();
    cuda.pause(DEVICE, 0);
    return NULL;
}

static void letting_memory_go_waits(void **state)
{
    struct fixture *fixture = *state;
    unsigned char *pinned = pages(MIB);
    emu_pointer other;
    pthread_t thread;

    OK(cuda.cuMemAlloc(&other, MIB));
    OK(cuda.cuMemHostRegister(pinned, MIB, 1));
    for (int i = 0; i < 2; i++) {
        uint64_t waits = cuda.count("synchronise");
        cuda.pause(DEVICE, 1);
        OK(cuda.cuMemcpyHtoDAsync(fixture->memory, pinned, MIB, fixture->stream));
        assert_int_equal(pthread_create(&thread, NULL, go_on_when_waited_for, &waits), 0);
        if (i == 0)
            OK(cuda.cuMemFree(other)); /* waits for copies of any memory of the device */
        else
            OK(cuda.cuMemHostUnregister(pinned));
        assert_int_equal(cuda.count("pending"), 0);
        pthread_join(thread, NULL);
    }
    munmap(pinned, MIB);
}

/* --- several threads --- */

#define THREADS 4
#define TURNS 200

struct worker {
    pthread_t thread;
    int device;
    struct CUctx_st *context;
    emu_pointer memory;
    int wrong;
};

/* Sends a pattern through a GPU, cut into pieces, and compares what comes back. */
static void *go_round(void *argument)
{
    struct worker *worker = argument;
    struct CUstream_st *stream;
    struct CUevent_st *event;
    unsigned char *pinned = pages(2 * 65536);
    emu_pointer second;
    unsigned int seed = (unsigned int)worker->device;

    worker->wrong += cuda.cuCtxPushCurrent(worker->context) != EMU_OK;
    worker->wrong += cuda.cuStreamCreate(&stream, EMU_STREAM_NON_BLOCKING) != EMU_OK;
    worker->wrong += cuda.cuEventCreate(&event, 2) != EMU_OK;
    worker->wrong += cuda.cuMemHostRegister(pinned, 2 * 65536, 1) != EMU_OK;
    worker->wrong += cuda.cuMemAlloc(&second, 65536) != EMU_OK;
    for (int turn = 0; turn < TURNS && worker->wrong == 0; turn++) {
        size_t cut = 1 + (size_t)rand_r(&seed) % 65535;
        memset(pinned, turn + worker->device, 65536);
        worker->wrong += cuda.cuMemcpyHtoDAsync(worker->memory, pinned, cut, stream) != EMU_OK;
        worker->wrong += cuda.cuMemcpyHtoDAsync(worker->memory + cut, pinned + cut, 65536 - cut, stream) != EMU_OK;
        worker->wrong += cuda.cuMemcpyDtoDAsync(second, worker->memory, 65536, stream) != EMU_OK;
        worker->wrong += cuda.cuMemcpyDtoHAsync(pinned + 65536, second, 65536, stream) != EMU_OK;
        worker->wrong += cuda.cuEventRecord(event, stream) != EMU_OK;
        while (cuda.cuEventQuery(event) == EMU_NOT_READY)
            sched_yield();
        worker->wrong += memcmp(pinned, pinned + 65536, 65536) != 0;
    }
    worker->wrong += cuda.cuMemFree(second) != EMU_OK;
    worker->wrong += cuda.cuMemHostUnregister(pinned) != EMU_OK;
    worker->wrong += cuda.cuEventDestroy(event) != EMU_OK;
    worker->wrong += cuda.cuStreamDestroy(stream) != EMU_OK;
    munmap(pinned, 2 * 65536);
    return NULL;
}

static void threads_do_not_disturb_each_other(void **state)
{
    (void)state;
    struct worker workers[THREADS];

    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.device = 4 + i / 2}; /* two on each */
        OK(cuda.cuDevicePrimaryCtxRetain(&workers[i].context, workers[i].device));
        OK(cuda.cuCtxPushCurrent(workers[i].context));
        OK(cuda.cuMemAlloc(&workers[i].memory, 65536));
        OK(cuda.cuCtxPopCurrent(NULL));
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&workers[i].thread, NULL, go_round, &workers[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        assert_int_equal(workers[i].wrong, 0);
    }
    for (int i = 0; i < THREADS; i++)
        OK(cuda.cuDevicePrimaryCtxRelease(workers[i].device)); /* and the memory goes with the last one */
    assert_int_equal(cuda.count("allocated"), 0);
}

/* A stream and an event that are destroyed with work in them finish it. */
static void what_is_destroyed_finishes(void **state)
{
    struct fixture *fixture = *state;
    uint32_t *word = (uint32_t *)(fixture->pinned + MIB - 64);
    struct CUstream_st *stream;
    struct CUevent_st *event;

    OK(cuda.cuStreamCreate(&stream, EMU_STREAM_NON_BLOCKING));
    OK(cuda.cuEventCreate(&event, 2));
    hold(stream, word);
    memset(fixture->pinned, 3, 64);
    OK(cuda.cuMemcpyHtoDAsync(fixture->memory, fixture->pinned, 64, stream));
    OK(cuda.cuMemcpyDtoHAsync(fixture->pinned + 64, fixture->memory, 64, stream));
    OK(cuda.cuEventRecord(event, stream));
    OK(cuda.cuEventDestroy(event));
    OK(cuda.cuStreamDestroy(stream));
    assert_int_equal(cuda.cuStreamDestroy(stream), EMU_INVALID_HANDLE);
    assert_int_equal(cuda.cuEventQuery(event), EMU_INVALID_HANDLE);
    let_go(word);
    while (cuda.count("pending") > 0)
        sched_yield();
    assert_memory_equal(fixture->pinned, fixture->pinned + 64, 64);
}

int main(void)
{
    emulated_load();
    if (cuda.cuInit(0) != EMU_OK)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(only_streams_keep_order, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_default_stream_waits_for_those_that_heed_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(devices_wait_for_each_other_by_events, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_paused_gpu_does_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(letting_memory_go_waits, set_up, tear_down),
        cmocka_unit_test(threads_do_not_disturb_each_other),
        cmocka_unit_test_setup_teardown(what_is_destroyed_finishes, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
