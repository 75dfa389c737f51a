/* What the environment says to the emulated driver, and the NVML beside it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <time.h>

#include "emulated_child.h"
#include "emulated_nvml.h"

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

/* Whatever the order of allocating and freeing. Addresses go round many times: the GPU has 2 MiB. */
static void keep_apart(void)
{
    enum { BLOCKS = 24, GUARD = 64 * KIB };
    struct {
        emu_pointer base;
        size_t bytes;
    } blocks[BLOCKS] = {{0, 0}};
    unsigned int seed = 1;
    size_t refused = 0;

    (void)use_first(0);
    for (int turn = 0; turn < 5000; turn++) {
        int at = rand_r(&seed) % BLOCKS;
        size_t bytes = (size_t)(rand_r(&seed) % (rand_r(&seed) % 8 == 0 ? 1 << 19 : 1 << 16)) + 1;
        emu_pointer base;
        if (blocks[at].base != 0) {
            OK(cuda.cuMemFree(blocks[at].base));
            blocks[at].base = 0;
            continue;
        }
        emu_result result = cuda.cuMemAlloc(&base, bytes);
        if (result == EMU_OUT_OF_MEMORY) {
            refused++;
            continue;
        }
        OK(result);
        for (int i = 0; i < BLOCKS; i++)
            CHECK(blocks[i].base == 0 || base >= blocks[i].base + blocks[i].bytes + GUARD ||
                  base + bytes + GUARD <= blocks[i].base);
        blocks[at].base = base;
        blocks[at].bytes = bytes;
    }
    CHECK(refused > 0 && refused < 2000);
}

static void allocations_keep_apart(void **state)
{
    (void)state;
    runs_well(keep_apart, "WEFT_EMULATED_MEMORY", "2M");
}

static void old_driver(void)
{
    void *library = dlopen(EMULATED_CUDA, RTLD_NOW | RTLD_LOCAL), *found;
    __typeof__(cuGetProcAddress_v2) *get;
    unsigned int status;
    static const char *const optional[] = {"cuMemcpyBatchAsync", "cuStreamWaitValue32", "cuMemGetHandleForAddressRange",
                                           "cuModuleLoadData",   "cuLaunchKernel",      "cuEventElapsedTime",
                                           "cuMemGetInfo"};

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

static void export_memory(void)
{
    int able = access("/dev/udmabuf", R_OK | W_OK) == 0;
    struct gpu gpu = use_first(0);
    emu_pointer first = gpu.memory / 4096 * 4096;
    int said, fd = -1;

    OK(cuda.cuDeviceGetAttribute(&said, 124, 0)); /* DMA_BUF_SUPPORTED */
    CHECK(said == able);
    if (!able) {
        CHECK(cuda.cuMemGetHandleForAddressRange(&fd, first, PIECE, 1, 0) == EMU_NOT_SUPPORTED);
        return;
    }
    OK(cuda.cuMemGetHandleForAddressRange(&fd, first, PIECE, 1, 1));
    CHECK(lseek(fd, 0, SEEK_END) == PIECE); /* a dma-buf tells its size so */
    CHECK(cuda.cuMemGetHandleForAddressRange(&fd, first + 1, PIECE, 1, 0) == EMU_INVALID_VALUE);
    CHECK(cuda.cuMemGetHandleForAddressRange(&fd, first, 16 * PIECE, 1, 0) == EMU_INVALID_VALUE);
    CHECK(cuda.cuMemGetHandleForAddressRange(&fd, first, PIECE, 2, 0) == EMU_INVALID_VALUE);
}

static void memory_is_exported_where_the_kernel_can(void **state)
{
    (void)state;
    runs_well(export_memory, "WEFT_EMULATED_UDMABUF", "1");
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
    FUNCTION(nvmlDeviceGetComputeRunningProcesses_v3);
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
    CHECK(nvmlDeviceGetComputeRunningProcesses_v3_(device, &count, NULL) == EMU_NVML_OK && count == 0);
    (void)use_first(1);
    CHECK(nvmlDeviceGetComputeRunningProcesses_v3_(device, &count, NULL) == EMU_NVML_INSUFFICIENT_SIZE && count == 1);
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
        cmocka_unit_test(a_rate_is_kept_to),
        cmocka_unit_test(allocations_touch_without_gaps),
        cmocka_unit_test(allocations_keep_apart),
        cmocka_unit_test(an_old_driver_lacks_what_came_later),
        cmocka_unit_test(memory_is_exported_where_the_kernel_can),
        cmocka_unit_test(addresses_come_from_the_environment),
        cmocka_unit_test(a_forked_child_has_no_driver),
        cmocka_unit_test(nvml_knows_the_same_gpus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
