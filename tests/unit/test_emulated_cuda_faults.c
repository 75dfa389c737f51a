/*
 * What the emulated driver does when something is wrong: memory that is touched, copies that fail, a GPU that is lost;
 * and what the environment says. Each in a process of its own, since a driver is loaded once.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "emulated_cuda.h"
#include "emulated_nvml.h"

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
    char said[4096];
};

/* Runs `body` in a child with "NAME=value" in its environment (NULL: nothing). */
static struct outcome in_child(void (*body)(void), const char *name, const char *value)
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

static void runs_well(void (*body)(void), const char *name, const char *value)
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

static struct gpu use(int device)
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
    OK(cuda.cuMemHostRegister(gpu.pinned, 5 * PIECE, 1));
    gpu.word = (uint32_t *)(gpu.pinned + 4 * PIECE);
    memset(filled, device + 1, PIECE);
    OK(cuda.cuMemcpy(gpu.memory, (uintptr_t)filled, PIECE));
    return gpu;
}

static struct gpu use_first(int device)
{
    emulated_load();
    OK(cuda.cuInit(0));
    return use(device);
}

static emu_result done(struct CUevent_st *event)
{
    emu_result result;

    while ((result = cuda.cuEventQuery(event)) == EMU_NOT_READY)
        sched_yield();
    return result;
}

/* Copies out to the first, second, ... part of the pinned memory. */
static emu_result copy_out(const struct gpu *gpu, int part)
{
    return cuda.cuMemcpyDtoHAsync(gpu->pinned + part * PIECE, gpu->memory, PIECE, gpu->stream);
}

static emu_result copy_in(const struct gpu *gpu)
{
    return cuda.cuMemcpyHtoDAsync(gpu->memory, gpu->pinned, PIECE, gpu->stream);
}

static int all_are(const unsigned char *bytes, unsigned char value)
{
    for (int i = 0; i < PIECE; i++)
        if (bytes[i] != value)
            return 0;
    return 1;
}

/* The GPU does what it should. */
static void works(const struct gpu *gpu, int device)
{
    memset(gpu->pinned, 0, PIECE);
    OK(copy_out(gpu, 0));
    OK(cuda.cuEventRecord(gpu->event, gpu->stream));
    OK(done(gpu->event));
    CHECK(all_are(gpu->pinned, (unsigned char)(device + 1)));
}

/* --- memory that the processor must not touch --- */

static void touch(void)
{
    struct gpu gpu = use_first(3);
    volatile char *device_memory = (char *)(uintptr_t)gpu.memory;

    device_memory[100] = 1;
    _exit(7);
}

static void a_touch_ends_the_process(void **state)
{
    (void)state;
    struct outcome outcome = in_child(touch, NULL, NULL);

    assert_false(WIFEXITED(outcome.status) && (WEXITSTATUS(outcome.status) == 0 || WEXITSTATUS(outcome.status) == 7));
    assert_non_null(strstr(outcome.said, "the processor touched memory of emulated GPU 3 at 0x"));
}

static void former(int signal)
{
    (void)signal;
    _exit(42);
}

static void touch_with_handler(void)
{
    signal(SIGSEGV, former);
    touch();
}

static void whoever_handled_it_before_does(void **state)
{
    (void)state;
    struct outcome outcome = in_child(touch_with_handler, NULL, NULL);

    assert_true(WIFEXITED(outcome.status) && WEXITSTATUS(outcome.status) == 42);
    assert_non_null(strstr(outcome.said, "the processor touched memory of emulated GPU 3 at 0x"));
}

static void hand_to_kernel(void)
{
    struct gpu gpu = use_first(0);
    int ends[2];

    CHECK(pipe(ends) == 0);
    CHECK(write(ends[1], (void *)(uintptr_t)gpu.memory, 16) == -1 && errno == EFAULT);
    CHECK(write(ends[1], "0123456789abcdef", 16) == 16);
    CHECK(read(ends[0], (void *)(uintptr_t)gpu.memory, 16) == -1 && errno == EFAULT);
    works(&gpu, 0);
}

static void the_kernel_refuses_it(void **state)
{
    (void)state;
    runs_well(hand_to_kernel, NULL, NULL);
}

/* What a copy refers to is unmapped before it is done. */
static void take_away(void)
{
    struct gpu gpu = use_first(2);

    *gpu.word = 0;
    OK(cuda.cuStreamWaitValue32(gpu.stream, (uintptr_t)gpu.word, 1, EMU_WAIT_GEQ));
    OK(copy_out(&gpu, 0));
    munmap(gpu.pinned, PIECE);
    __atomic_store_n(gpu.word, 1, __ATOMIC_RELEASE);
    cuda.cuStreamSynchronize(gpu.stream);
    _exit(7);
}

static void memory_that_goes_too_early_ends_the_process(void **state)
{
    (void)state;
    struct outcome outcome = in_child(take_away, NULL, NULL);

    assert_false(WIFEXITED(outcome.status) && (WEXITSTATUS(outcome.status) == 0 || WEXITSTATUS(outcome.status) == 7));
    assert_non_null(strstr(outcome.said, "a copy of emulated GPU 2 refers to host memory that is gone"));
}

/* --- faults --- */

static void fail_launch(void)
{
    struct gpu gpu = use_first(1), other = use(2);
    emu_pointer more;

    CHECK(cuda.fault("launch:device=1,way=out,at=2") == 0);
    *gpu.word = 0;
    OK(cuda.cuStreamWaitValue32(gpu.stream, (uintptr_t)gpu.word, 1, EMU_WAIT_GEQ));
    OK(copy_in(&gpu));       /* another way: does not count */
    OK(copy_out(&other, 0)); /* another GPU: neither */
    OK(copy_out(&gpu, 1));
    OK(copy_out(&gpu, 2));
    OK(copy_out(&gpu, 3));
    OK(cuda.cuEventRecord(gpu.event, gpu.stream));
    __atomic_store_n(gpu.word, 1, __ATOMIC_RELEASE);
    CHECK(done(gpu.event) == EMU_LAUNCH_FAILED);
    CHECK(cuda.count("failed") == 2);
    CHECK(all_are(gpu.pinned + PIECE, 0x77));                                      /* what went in came out */
    CHECK(gpu.pinned[3 * PIECE - 1] == 0x77 || gpu.pinned[3 * PIECE - 1] == 0xA5); /* no more than half came */
    CHECK(all_are(gpu.pinned + 3 * PIECE, 0x77));                                  /* was dropped */
    CHECK(copy_out(&gpu, 1) == EMU_LAUNCH_FAILED);
    CHECK(cuda.cuStreamSynchronize(gpu.stream) == EMU_LAUNCH_FAILED);
    OK(cuda.cuCtxPushCurrent(gpu.context));
    CHECK(cuda.cuMemAlloc(&more, 1) == EMU_LAUNCH_FAILED);
    OK(cuda.cuCtxPopCurrent(NULL));
    works(&other, 2);
    OK(cuda.cuDevicePrimaryCtxRelease(1));
    CHECK(cuda.contexts(1) == 0 && cuda.count("pending") == 0);
}

static void a_failed_launch_stays(void **state)
{
    (void)state;
    runs_well(fail_launch, NULL, NULL);
}

static void lose_in_copy(void)
{
    struct gpu gpu = use_first(1), other = use(2);
    struct CUctx_st *again;

    CHECK(cuda.fault("lost:device=1,way=out,at=2") == 0);
    OK(copy_out(&gpu, 1));
    OK(copy_out(&gpu, 2));
    for (int i = 0; i < 20; i++)
        (void)copy_out(&gpu, 3);
    (void)cuda.cuMemcpyPeerAsync(other.memory, other.context, gpu.memory, gpu.context, PIECE, other.stream);
    (void)cuda.cuEventRecord(gpu.event, gpu.stream);
    CHECK(done(gpu.event) == EMU_UNKNOWN);
    CHECK(all_are(gpu.pinned + PIECE, 2));
    CHECK(gpu.pinned[2 * PIECE] == 2 && gpu.pinned[3 * PIECE - 1] != 2); /* half of it came */
    CHECK(all_are(gpu.pinned + 3 * PIECE, 0x77));
    CHECK(cuda.cuEventQuery(gpu.event) == EMU_UNKNOWN);
    CHECK(copy_in(&gpu) == EMU_UNKNOWN);
    CHECK(cuda.cuDevicePrimaryCtxRetain(&again, 1) == EMU_DEVICE_UNAVAILABLE);
    /* The other GPU may have failed with what it read from the lost one, but not for good. */
    emu_result result = cuda.cuStreamSynchronize(other.stream);
    CHECK(result == EMU_OK || result == EMU_UNKNOWN);
    OK(cuda.cuStreamSynchronize(other.stream));
    CHECK(cuda.cuMemcpyPeerAsync(other.memory, other.context, gpu.memory, gpu.context, PIECE, other.stream) == EMU_OK);
    CHECK(cuda.cuStreamSynchronize(other.stream) == EMU_UNKNOWN);
    OK(cuda.cuDevicePrimaryCtxRelease(1));
    CHECK(cuda.fault("heal") == 0);
    struct gpu healed = use(1);
    works(&healed, 1);
}

static void a_lost_gpu_writes_nothing_any_more(void **state)
{
    (void)state;
    runs_well(lose_in_copy, NULL, NULL);
}

/* Lost while copies of it are under way, from another thread than theirs. */
static void lose_now(void)
{
    struct gpu gpu = use_first(4), other = use(5);
    unsigned char before[4 * PIECE];

    for (int i = 0; i < 200; i++) {
        OK(copy_out(&gpu, i % 4));
        OK(cuda.cuMemcpyPeerAsync(other.memory, other.context, gpu.memory, gpu.context, PIECE, other.stream));
    }
    CHECK(cuda.fault("lost:device=4") == 0);
    memcpy(before, gpu.pinned, sizeof(before));
    CHECK(copy_out(&gpu, 0) == EMU_UNKNOWN);
    while (cuda.count("pending") > 0)
        sched_yield();
    CHECK(memcmp(before, gpu.pinned, sizeof(before)) == 0);
    CHECK(cuda.cuStreamSynchronize(other.stream) == EMU_UNKNOWN);
    OK(cuda.cuStreamSynchronize(other.stream));
}

static void a_gpu_is_lost_at_once(void **state)
{
    (void)state;
    runs_well(lose_now, NULL, NULL);
}

static void fail_once(void)
{
    struct gpu gpu = use_first(0);

    OK(copy_in(&gpu)); /* the pinned memory's pattern */
    OK(copy_out(&gpu, 1));
    OK(copy_out(&gpu, 2)); /* the second one out, which the environment is about */
    OK(cuda.cuEventRecord(gpu.event, gpu.stream));
    CHECK(done(gpu.event) == EMU_ECC_UNCORRECTABLE);
    CHECK(cuda.count("failed") == 1);
    OK(cuda.cuEventRecord(gpu.event, gpu.stream));
    OK(done(gpu.event));
    CHECK(cuda.fault("refuse:at=1;copy:at=1,code=700") ==
          0); /* each counts: both are for the next, one after another */
    CHECK(copy_out(&gpu, 1) == EMU_OUT_OF_MEMORY);
    CHECK(cuda.count("pending") == 0);
    OK(copy_out(&gpu, 1));
    CHECK(cuda.cuStreamSynchronize(gpu.stream) == 700);
    OK(cuda.cuStreamSynchronize(gpu.stream));
    OK(copy_out(&gpu, 3));
    OK(cuda.cuStreamSynchronize(gpu.stream));
    CHECK(all_are(gpu.pinned + 3 * PIECE, 0x77));
}

static void one_copy_fails_alone(void **state)
{
    (void)state;
    runs_well(fail_once, "WEFT_EMULATED_FAULT", "copy:device=0,way=out,at=2");
}

static void run_out(void)
{
    struct gpu gpu = use_first(0);
    emu_pointer a, b;
    unsigned char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(cuda.fault("alloc:device=0,at=2;register:at=1") == 0);
    OK(cuda.cuMemAlloc(&a, 4096));
    CHECK(cuda.cuMemAlloc(&b, 4096) == EMU_OUT_OF_MEMORY);
    OK(cuda.cuMemAlloc(&b, 4096));
    CHECK(cuda.cuMemHostRegister(page, 4096, 0) == EMU_OUT_OF_MEMORY);
    OK(cuda.cuMemHostRegister(page, 4096, 0));
    OK(cuda.cuMemFree(b));
    CHECK(cuda.cuMemAlloc(&b, 64 << 20) == EMU_OUT_OF_MEMORY); /* there are 64 MiB in all */
    OK(cuda.cuMemAlloc(&b, 48 << 20));
    OK(cuda.cuMemFree(b));
    OK(cuda.cuMemAlloc(&b, 48 << 20)); /* elsewhere, or there once more */
    works(&gpu, 0);
    CHECK(cuda.fault("alloc:at=1;clear") == 0);
    CHECK(cuda.fault("launch:device=9") == -EINVAL && cuda.fault("lost") == -EINVAL && cuda.fault("what") == -EINVAL);
    CHECK(cuda.fault("alloc:way=in") == -EINVAL && cuda.fault("copy:at=0") == -EINVAL);
}

static void memory_runs_out(void **state)
{
    (void)state;
    runs_well(run_out, "WEFT_EMULATED_MEMORY", "64M");
}

/* --- the environment --- */

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* 64 KiB at 1 MiB/s: 62 ms and not less, one after another in one direction, also of two streams. */
static void keep_to_rate(void)
{
    struct gpu gpu = use_first(0);
    struct CUstream_st *stream;
    struct CUevent_st *event;

    OK(cuda.cuStreamCreate(&stream, EMU_STREAM_NON_BLOCKING));
    OK(cuda.cuEventCreate(&event, 2));
    int64_t start = now_ms();
    OK(copy_out(&gpu, 1));
    OK(cuda.cuEventRecord(gpu.event, gpu.stream));
    OK(cuda.cuMemcpyDtoHAsync(gpu.pinned + 2 * PIECE, gpu.memory, PIECE, stream));
    OK(cuda.cuEventRecord(event, stream));
    emu_result first, second;
    do {
        first = cuda.cuEventQuery(gpu.event);
        second = cuda.cuEventQuery(event);
    } while (first == EMU_NOT_READY && second == EMU_NOT_READY);
    CHECK(now_ms() - start >= 62);
    OK(done(gpu.event));
    OK(done(event));
    CHECK(now_ms() - start >= 124);
    CHECK(all_are(gpu.pinned + PIECE, 1) && all_are(gpu.pinned + 2 * PIECE, 1));
}

static void a_rate_is_kept_to(void **state)
{
    (void)state;
    runs_well(keep_to_rate, "WEFT_EMULATED_RATE", "1M");
}

static void leave_no_gaps(void)
{
    struct gpu gpu = use_first(0);
    emu_pointer next;

    OK(cuda.cuMemAlloc(&next, PIECE));
    CHECK(next == gpu.memory + PIECE);
    emu_pointer base;
    size_t bytes;
    OK(cuda.cuMemGetAddressRange(&base, &bytes, next - 1));
    CHECK(base == gpu.memory && bytes == PIECE);
    CHECK(copy_out(&gpu, 0) == EMU_OK);
    CHECK(cuda.cuMemcpyDtoHAsync(gpu.pinned, gpu.memory, 2 * PIECE, gpu.stream) == EMU_INVALID_VALUE);
}

static void allocations_touch_without_gaps(void **state)
{
    (void)state;
    runs_well(leave_no_gaps, "WEFT_EMULATED_GUARD", "0");
}

static void old_driver(void)
{
    void *library = dlopen(EMULATED_CUDA, RTLD_NOW | RTLD_LOCAL), *found;
    __typeof__(cuGetProcAddress_v2) *get;
    unsigned int status;
    static const char *const optional[] = {"cuMemcpyBatchAsync", "cuStreamWaitValue32", "cuMemGetHandleForAddressRange",
                                           "cuModuleLoadData", "cuLaunchKernel"};

    CHECK(library);
    *(void **)&get = emulated_hook(library, "cuGetProcAddress_v2");
    for (size_t i = 0; i < sizeof(optional) / sizeof(optional[0]); i++) {
        OK(get(optional[i], &found, 13000, 0, &status));
        CHECK(!found && status == EMU_SYMBOL_NOT_FOUND);
    }
    OK(get("cuMemcpyHtoDAsync", &found, 3020, 0, &status));
    CHECK(found);
}

static void an_old_driver_lacks_what_came_later(void **state)
{
    (void)state;
    runs_well(old_driver, "WEFT_EMULATED_OLD", "1");
}

static void take_topology(void)
{
    char address[16];
    int count;

    emulated_load();
    OK(cuda.cuInit(0));
    OK(cuda.cuDeviceGetCount(&count));
    CHECK(count == 8);
    OK(cuda.cuDeviceGetPCIBusId(address, sizeof(address), 0));
    CHECK(strcmp(address, "0000:04:00.0") == 0);
    OK(cuda.cuDeviceGetPCIBusId(address, sizeof(address), 7));
    CHECK(strcmp(address, "0000:c5:00.0") == 0);
}

static void take_list(void)
{
    char address[16];
    int count;

    setenv("WEFT_EMULATED_GPUS", "3", 1);
    emulated_load();
    OK(cuda.cuInit(0));
    OK(cuda.cuDeviceGetCount(&count));
    CHECK(count == 3);
    OK(cuda.cuDeviceGetPCIBusId(address, sizeof(address), 1));
    CHECK(strcmp(address, "0001:42:1f.0") == 0);
    OK(cuda.cuDeviceGetPCIBusId(address, sizeof(address), 2));
    CHECK(strcmp(address, "f000:02:00.0") == 0);
}

static void refuse(void)
{
    emulated_load();
    CHECK(cuda.cuInit(0) == EMU_INVALID_VALUE);
}

static void addresses_come_from_the_environment(void **state)
{
    (void)state;
    runs_well(take_topology, "WEFT_EMULATED_TOPOLOGY", TOPOLOGIES "/a3-highgpu-8g.xml");
    runs_well(take_list, "WEFT_EMULATED_PCI", "0000:18:00.0,0001:42:1f.0");
    runs_well(refuse, "WEFT_EMULATED_PCI", "0000:18:00.0,nonsense");
    runs_well(refuse, "WEFT_EMULATED_TOPOLOGY", "/nowhere.xml");
    runs_well(refuse, "WEFT_EMULATED_RATE", "fast");
    runs_well(refuse, "WEFT_EMULATED_GPUS", "65");
    runs_well(refuse, "WEFT_EMULATED_FAULT", "earthquake");
}

static void no_driver_after_fork(void)
{
    int status, count;

    (void)use_first(0);
    pid_t child = fork();
    if (child == 0)
        _exit(cuda.cuDeviceGetCount(&count) == EMU_NOT_INITIALIZED && cuda.cuInit(0) == EMU_NOT_INITIALIZED ? 0 : 1);
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void a_forked_child_has_no_driver(void **state)
{
    (void)state;
    runs_well(no_driver_after_fork, NULL, NULL);
}

/* --- NVML --- */

static void read_nvml(void)
{
    void *library = dlopen(EMULATED_NVML, RTLD_NOW | RTLD_LOCAL);
    CHECK(library && *(const int *)emulated_hook(library, "weft_emulated_driver") == 1);
#define FUNCTION(name) __typeof__(name) *const name##_ = (__typeof__(name) *)emulated_hook(library, #name)
    FUNCTION(nvmlInit_v2);
    FUNCTION(nvmlShutdown);
    FUNCTION(nvmlErrorString);
    FUNCTION(nvmlSystemGetDriverVersion);
    FUNCTION(nvmlDeviceGetCount_v2);
    FUNCTION(nvmlDeviceGetHandleByIndex_v2);
    FUNCTION(nvmlDeviceGetHandleByPciBusId_v2);
    FUNCTION(nvmlDeviceGetName);
    FUNCTION(nvmlDeviceGetPciInfo_v3);
    FUNCTION(nvmlDeviceGetTemperature);
    FUNCTION(nvmlDeviceGetClockInfo);
    FUNCTION(nvmlDeviceGetPowerUsage);
    FUNCTION(nvmlDeviceGetCurrentClocksEventReasons);
    FUNCTION(nvmlDeviceGetCurrentClocksThrottleReasons);
    struct nvmlDevice_st *device, *again;
    unsigned int count, value;
    unsigned long long reasons;
    char text[96], info[68];

    CHECK(nvmlDeviceGetCount_v2_(&count) == EMU_NVML_UNINITIALIZED);
    CHECK(nvmlShutdown_() == EMU_NVML_UNINITIALIZED);
    CHECK(nvmlInit_v2_() == EMU_NVML_OK);
    CHECK(nvmlDeviceGetCount_v2_(&count) == EMU_NVML_OK && count == 8);
    CHECK(nvmlDeviceGetHandleByPciBusId_v2_("0000:3A:00.0", &device) == EMU_NVML_OK);
    CHECK(nvmlDeviceGetHandleByPciBusId_v2_("00000000:3a:00.0", &again) == EMU_NVML_OK && device == again);
    CHECK(nvmlDeviceGetHandleByIndex_v2_(1, &again) == EMU_NVML_OK && device == again);
    CHECK(nvmlDeviceGetHandleByPciBusId_v2_("0000:3b:00.0", &again) == EMU_NVML_NOT_FOUND);
    CHECK(nvmlDeviceGetName_(device, text, sizeof(text)) == EMU_NVML_OK && strstr(text, "Weft emulated GPU"));
    CHECK(nvmlDeviceGetName_(device, text, 5) == EMU_NVML_INSUFFICIENT_SIZE);
    CHECK(nvmlSystemGetDriverVersion_(text, sizeof(text)) == EMU_NVML_OK && strstr(text, "emulated"));
    CHECK(nvmlDeviceGetPciInfo_v3_(device, (struct nvmlPciInfo_st *)(void *)info) == EMU_NVML_OK);
    CHECK(strcmp(info, "0000:3a:00.0") == 0 && strcmp(info + 36, "00000000:3a:00.0") == 0);
    CHECK(nvmlDeviceGetTemperature_(device, 0, &value) == EMU_NVML_OK && value > 0);
    CHECK(nvmlDeviceGetClockInfo_(device, 1, &value) == EMU_NVML_OK && value > 0);
    CHECK(nvmlDeviceGetPowerUsage_(device, &value) == EMU_NVML_OK && value > 0);
    CHECK(nvmlDeviceGetCurrentClocksEventReasons_(device, &reasons) == EMU_NVML_OK && reasons == 1);
    CHECK(nvmlDeviceGetCurrentClocksThrottleReasons_(device, &reasons) == EMU_NVML_OK && reasons == 1);
    (void)use_first(1);
    CHECK(cuda.fault("lost:device=1") == 0);
    CHECK(nvmlDeviceGetTemperature_(device, 0, &value) == EMU_NVML_GPU_IS_LOST);
    CHECK(strcmp(nvmlErrorString_(EMU_NVML_GPU_IS_LOST), "GPU is lost") == 0);
    CHECK(nvmlShutdown_() == EMU_NVML_OK);
}

static void nvml_knows_the_same_gpus(void **state)
{
    (void)state;
    runs_well(read_nvml, NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_touch_ends_the_process),
        cmocka_unit_test(whoever_handled_it_before_does),
        cmocka_unit_test(the_kernel_refuses_it),
        cmocka_unit_test(memory_that_goes_too_early_ends_the_process),
        cmocka_unit_test(a_failed_launch_stays),
        cmocka_unit_test(a_lost_gpu_writes_nothing_any_more),
        cmocka_unit_test(a_gpu_is_lost_at_once),
        cmocka_unit_test(one_copy_fails_alone),
        cmocka_unit_test(memory_runs_out),
        cmocka_unit_test(a_rate_is_kept_to),
        cmocka_unit_test(allocations_touch_without_gaps),
        cmocka_unit_test(an_old_driver_lacks_what_came_later),
        cmocka_unit_test(addresses_come_from_the_environment),
        cmocka_unit_test(a_forked_child_has_no_driver),
        cmocka_unit_test(nvml_knows_the_same_gpus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
