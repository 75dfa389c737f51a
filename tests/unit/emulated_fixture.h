/*
 * emulated_fixture.h: an emulated GPU in use, for tests in the process that loaded the driver; and what must be left
 * when such a test ends: nothing. Behind cmocka.h.
 */
#ifndef WEFT_TESTS_UNIT_EMULATED_FIXTURE_H
#define WEFT_TESTS_UNIT_EMULATED_FIXTURE_H

#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "emulated_cuda.h"

#define KIB 1024
#define MIB (1024 * KIB)

#define OK(call) assert_int_equal((call), EMU_OK)

/* Device 1 with its context current, pinned memory and device memory. */
struct fixture {
    struct CUctx_st *context;
    struct CUstream_st *stream;
    struct CUevent_st *event;
    unsigned char *pinned; /* MIB */
    emu_pointer memory;    /* MIB */
};
#define DEVICE 1

static inline void until_done(struct CUevent_st *event)
{
    emu_result result;

    while ((result = cuda.cuEventQuery(event)) == EMU_NOT_READY)
        sched_yield();
    OK(result);
}

static inline unsigned char *pages(size_t bytes)
{
    void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(base != MAP_FAILED);
    return base;
}

static inline int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));

    OK(cuda.cuDevicePrimaryCtxRetain(&fixture->context, DEVICE));
    OK(cuda.cuCtxPushCurrent(fixture->context));
    OK(cuda.cuStreamCreate(&fixture->stream, EMU_STREAM_NON_BLOCKING));
    OK(cuda.cuEventCreate(&fixture->event, 2));
    fixture->pinned = pages(MIB);
    OK(cuda.cuMemHostRegister(fixture->pinned, MIB, EMU_REGISTER_PORTABLE | EMU_REGISTER_MAPPED));
    OK(cuda.cuMemAlloc(&fixture->memory, MIB));
    *state = fixture;
    return 0;
}

static inline int tear_down(void **state)
{
    struct fixture *fixture = *state;

    OK(cuda.cuMemFree(fixture->memory));
    OK(cuda.cuMemHostUnregister(fixture->pinned));
    munmap(fixture->pinned, MIB);
    OK(cuda.cuEventDestroy(fixture->event));
    OK(cuda.cuStreamDestroy(fixture->stream));
    OK(cuda.cuCtxPopCurrent(NULL));
    OK(cuda.cuDevicePrimaryCtxRelease(DEVICE));
    assert_int_equal(cuda.contexts(DEVICE), 0);
    static const char *const levels[] = {"pending", "allocated", "registered", "streams", "events"};
    for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
        assert_int_equal(cuda.count(levels[i]), 0);
    free(fixture);
    return 0;
}

/* What is put into `stream` from now on waits for the word. */
static inline void hold(struct CUstream_st *stream, volatile uint32_t *word)
{
    *word = 0;
    OK(cuda.cuStreamWaitValue32(stream, (uintptr_t)word, 1, EMU_WAIT_GEQ));
}

static inline void let_go(volatile uint32_t *word)
{
    __atomic_store_n(word, 1, __ATOMIC_RELEASE);
}

#endif
