/*
 * emulated_child.h: tests of the emulated driver that need a process of their own, since a driver is loaded once, its
 * environment is read then, and some of them crash. Behind cmocka.h.
 */
#ifndef WEFT_TESTS_UNIT_EMULATED_CHILD_H
#define WEFT_TESTS_UNIT_EMULATED_CHILD_H

#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "emulated_cuda.h"

#define KIB 1024
#define PIECE (64 * KIB)

/* In the child: says which line, and ends it. */
#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "line %d: not so: %s\n", __LINE__, #condition);                                            \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)
#define OK(call) CHECK((call) == EMU_OK)

struct outcome {
    int status;
    char said[16384];
};

/* Runs `body` in a child with "NAME=value" in its environment (NULL: nothing). */
static inline struct outcome in_child(void (*body)(void), const char *name, const char *value)
{
    struct outcome outcome = {0};
    size_t used = 0;
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        signal(SIGSEGV, SIG_DFL); /* cmocka's would go on with the next test */
        signal(SIGBUS, SIG_DFL);
        signal(SIGABRT, SIG_DFL);
        if (name)
            setenv(name, value, 1);
        body();
        _exit(0);
    }
    close(ends[1]);
    for (;;) {
        ssize_t got = read(ends[0], outcome.said + used, sizeof(outcome.said) - 1 - used);
        if (got <= 0)
            break;
        used += (size_t)got;
    }
    close(ends[0]);
    assert_int_equal(waitpid(child, &outcome.status, 0), child);
    return outcome;
}

static inline void runs_well(void (*body)(void), const char *name, const char *value)
{
    struct outcome outcome = in_child(body, name, value);

    if (!WIFEXITED(outcome.status) || WEXITSTATUS(outcome.status) != 0)
        fail_msg("status %#x: %s", outcome.status, outcome.said);
}

/* --- in the child: a GPU in use --- */

struct gpu {
    struct CUctx_st *context;
    struct CUstream_st *stream;
    struct CUevent_st *event;
    emu_pointer memory;    /* PIECE, filled with the device's number + 1 */
    unsigned char *pinned; /* 4 PIECE, 0x77; with a word behind it that streams wait for */
    uint32_t *word;
};

static inline struct gpu use(int device)
{
    struct gpu gpu;
    unsigned char filled[PIECE];

    OK(cuda.cuDevicePrimaryCtxRetain(&gpu.context, device));
    OK(cuda.cuCtxPushCurrent(gpu.context));
    OK(cuda.cuStreamCreate(&gpu.stream, EMU_STREAM_NON_BLOCKING));
    OK(cuda.cuEventCreate(&gpu.event, 2));
    OK(cuda.cuMemAlloc(&gpu.memory, PIECE));
    gpu.pinned = mmap(NULL, 5 * PIECE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(gpu.pinned != MAP_FAILED);
    memset(gpu.pinned, 0x77, (size_t)(4 * PIECE));
    OK(cuda.cuMemHostRegister(gpu.pinned, 5 * PIECE, EMU_REGISTER_PORTABLE | EMU_REGISTER_MAPPED));
    gpu.word = (uint32_t *)(gpu.pinned + 4 * PIECE);
    memset(filled, device + 1, PIECE);
    OK(cuda.cuMemcpy(gpu.memory, (uintptr_t)filled, PIECE));
    return gpu;
}

static inline struct gpu use_first(int device)
{
    emulated_load();
    OK(cuda.cuInit(0));
    return use(device);
}

static inline emu_result done(struct CUevent_st *event)
{
    emu_result result;

    while ((result = cuda.cuEventQuery(event)) == EMU_NOT_READY)
        sched_yield();
    return result;
}

/* Copies out to the first, second, ... part of the pinned memory. */
static inline emu_result copy_out(const struct gpu *gpu, int part)
{
    return cuda.cuMemcpyDtoHAsync(gpu->pinned + part * PIECE, gpu->memory, PIECE, gpu->stream);
}

static inline emu_result copy_in(const struct gpu *gpu)
{
    return cuda.cuMemcpyHtoDAsync(gpu->memory, gpu->pinned, PIECE, gpu->stream);
}

static inline int all_are(const unsigned char *bytes, unsigned char value)
{
    for (int i = 0; i < PIECE; i++)
        if (bytes[i] != value)
            return 0;
    return 1;
}

/* The GPU does what it should. */
static inline void works(const struct gpu *gpu, int device)
{
    memset(gpu->pinned, 0, PIECE);
    OK(copy_out(gpu, 0));
    OK(cuda.cuEventRecord(gpu->event, gpu->stream));
    OK(done(gpu->event));
    CHECK(all_are(gpu->pinned, (unsigned char)(device + 1)));
}

#endif
