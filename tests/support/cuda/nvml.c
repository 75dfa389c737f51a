/* The emulated libnvidia-ml.so.1: the GPUs of the emulated driver, with readings that no real one has. */
#include "nvml_internal.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define CELSIUS 11
#define CLOCK_MHZ 111
#define MOST_MHZ 1111
#define MILLIWATTS 1111
#define USED (11ull << 20)
#define IDLE 1 /* the reason for low clocks: there is nothing to do */
#define PIDS 64

const int weft_emulated_driver = 1;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int users; /* inits less shutdowns */
static struct nvmlDevice_st handles[EMU_DEVICES_MAX];
struct emu_world emu_nvml_world;

emu_nvml_result nvmlInit_v2(void)
{
    emu_nvml_result result = EMU_NVML_OK;

    pthread_mutex_lock(&lock);
    if (users == 0 && emu_settings_read(&emu_nvml_world) != EMU_OK)
        result = EMU_NVML_INVALID_ARGUMENT;
    for (int i = 0; i < EMU_DEVICES_MAX; i++)
        handles[i].index = i;
    users += result == EMU_NVML_OK;
    pthread_mutex_unlock(&lock);
    return result;
}

emu_nvml_result nvmlShutdown(void)
{
    emu_nvml_result result = EMU_NVML_OK;

    pthread_mutex_lock(&lock);
    if (users > 0)
        users--;
    else
        result = EMU_NVML_UNINITIALIZED;
    pthread_mutex_unlock(&lock);
    return result;
}

static bool is_ready(void)
{
    bool ready;

    pthread_mutex_lock(&lock);
    ready = users > 0;
    pthread_mutex_unlock(&lock);
    return ready;
}

const char *nvmlErrorString(emu_nvml_result result)
{
    static const struct {
        emu_nvml_result result;
        const char *text;
    } texts[] = {
        {EMU_NVML_OK, "Success"},
        {EMU_NVML_UNINITIALIZED, "Uninitialized"},
        {EMU_NVML_INVALID_ARGUMENT, "Invalid Argument"},
        {EMU_NVML_NOT_SUPPORTED, "Not Supported"},
        {EMU_NVML_NO_PERMISSION, "Insufficient Permissions"},
        {EMU_NVML_NOT_FOUND, "Not Found"},
        {EMU_NVML_INSUFFICIENT_SIZE, "Insufficient Size"},
        {EMU_NVML_GPU_IS_LOST, "GPU is lost"},
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (texts[i].result == result)
            return texts[i].text;
    return "Unknown Error";
}

static emu_nvml_result put_text(char *out, unsigned int length, const char *text)
{
    if (!out)
        return EMU_NVML_INVALID_ARGUMENT;
    if (strlen(text) >= length)
        return EMU_NVML_INSUFFICIENT_SIZE;
    memcpy(out, text, strlen(text) + 1);
    return EMU_NVML_OK;
}

emu_nvml_result nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
    return is_ready() ? put_text(version, length, "0.0 (Weft emulated)") : EMU_NVML_UNINITIALIZED;
}

emu_nvml_result nvmlDeviceGetCount_v2(unsigned int *count)
{
    if (!is_ready())
        return EMU_NVML_UNINITIALIZED;
    if (!count)
        return EMU_NVML_INVALID_ARGUMENT;
    *count = (unsigned int)emu_nvml_world.device_count;
    return EMU_NVML_OK;
}

emu_nvml_result nvmlDeviceGetHandleByIndex_v2(unsigned int index, struct nvmlDevice_st **device)
{
    if (!is_ready())
        return EMU_NVML_UNINITIALIZED;
    if (!device || index >= (unsigned int)emu_nvml_world.device_count)
        return EMU_NVML_INVALID_ARGUMENT;
    *device = &handles[index];
    return EMU_NVML_OK;
}

/* The domain has four digits here and eight there. */
emu_nvml_result nvmlDeviceGetHandleByPciBusId_v2(const char *address, struct nvmlDevice_st **device)
{
    if (!is_ready())
        return EMU_NVML_UNINITIALIZED;
    if (!address || !device)
        return EMU_NVML_INVALID_ARGUMENT;
    if (strncmp(address, "0000", 4) == 0 && strlen(address) == strlen("00000000:18:00.0"))
        address += 4;
    for (int i = 0; i < emu_nvml_world.device_count; i++)
        if (strcasecmp(address, emu_nvml_world.devices[i].address) == 0) {
            *device = &handles[i];
            return EMU_NVML_OK;
        }
    return EMU_NVML_NOT_FOUND;
}

/* The driver knows who is lost and what is retained, where it is loaded; this library comes without it, too. `without`:
 * the answer then. */
static int ask_driver(const char *name, int index, int without)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    void *hook = driver ? dlsym(driver, name) : NULL;
    int (*question)(int);

    memcpy(&question, &hook, sizeof(question));
    return question ? question(index) : without;
}

emu_nvml_result emu_nvml_check(const struct nvmlDevice_st *device, const void *out)
{
    if (!is_ready())
        return EMU_NVML_UNINITIALIZED;
    if (!device || !out || device < handles || device >= handles + emu_nvml_world.device_count)
        return EMU_NVML_INVALID_ARGUMENT;
    return ask_driver("weft_emulated_lost", device->index, 0) != 0 ? EMU_NVML_GPU_IS_LOST : EMU_NVML_OK;
}

emu_nvml_result nvmlDeviceGetName(struct nvmlDevice_st *device, char *name, unsigned int length)
{
    emu_nvml_result result = emu_nvml_check(device, name);
    return result != EMU_NVML_OK ? result : put_text(name, length, emu_nvml_world.devices[device->index].name);
}

emu_nvml_result nvmlDeviceGetPciInfo_v3(struct nvmlDevice_st *device, struct nvmlPciInfo_st *info)
{
    emu_nvml_result result = emu_nvml_check(device, info);

    if (result != EMU_NVML_OK)
        return result;
    emu_nvml_address(device->index, info);
    return EMU_NVML_OK;
}

void emu_nvml_address(int index, struct nvmlPciInfo_st *info)
{
    *info = (struct nvmlPciInfo_st){0};
    snprintf(info->short_address, sizeof(info->short_address), "%s", emu_nvml_world.devices[index].address);
    snprintf(info->address, sizeof(info->address), "0000%s", emu_nvml_world.devices[index].address);
    sscanf(info->short_address, "%x:%x:%x", &info->domain, &info->bus, &info->device);
}

emu_nvml_result emu_nvml_put(const struct nvmlDevice_st *device, unsigned int *out, unsigned int number)
{
    emu_nvml_result result = emu_nvml_check(device, out);

    if (result == EMU_NVML_OK)
        *out = number;
    return result;
}

/* What a test says of the GPU, or what it has by itself. */
static unsigned int said(const struct nvmlDevice_st *device, const char *what, unsigned int otherwise)
{
    unsigned long long number;

    return emu_nvml_number(device->index, what, &number) ? (unsigned int)number : otherwise;
}

emu_nvml_result nvmlDeviceGetTemperature(struct nvmlDevice_st *device, unsigned int sensor, unsigned int *celsius)
{
    emu_nvml_result result = sensor != 0 ? EMU_NVML_INVALID_ARGUMENT : emu_nvml_check(device, celsius);

    return result != EMU_NVML_OK ? result : emu_nvml_put(device, celsius, said(device, "celsius", CELSIUS));
}

/* Locked clocks are those of the graphics processor; where a test names a clock, that is it all the same. */
emu_nvml_result nvmlDeviceGetClockInfo(struct nvmlDevice_st *device, unsigned int clock, unsigned int *mhz)
{
    emu_nvml_result result = clock > 3 ? EMU_NVML_INVALID_ARGUMENT : emu_nvml_check(device, mhz);
    unsigned int least, most = CLOCK_MHZ;

    if (result != EMU_NVML_OK)
        return result;
    if (clock > 1)
        return emu_nvml_put(device, mhz, CLOCK_MHZ);
    if (emu_nvml_locked(device->index, &least, &most) && most > MOST_MHZ)
        most = MOST_MHZ;
    return emu_nvml_put(device, mhz, said(device, "mhz", most));
}

emu_nvml_result nvmlDeviceGetMaxClockInfo(struct nvmlDevice_st *device, unsigned int clock, unsigned int *mhz)
{
    return clock > 3 ? EMU_NVML_INVALID_ARGUMENT : emu_nvml_put(device, mhz, MOST_MHZ);
}

emu_nvml_result nvmlDeviceGetPowerUsage(struct nvmlDevice_st *device, unsigned int *milliwatts)
{
    return emu_nvml_put(device, milliwatts, MILLIWATTS);
}

/* What the driver has given away it alone knows: a part that no program has ever used is told as used. */
emu_nvml_result nvmlDeviceGetMemoryInfo(struct nvmlDevice_st *device, struct nvmlMemory_st *memory)
{
    emu_nvml_result result = emu_nvml_check(device, memory);
    unsigned long long total = emu_nvml_world.settings.memory;

    if (result == EMU_NVML_OK)
        *memory = (struct nvmlMemory_st){.total = total, .free = total - USED, .used = USED};
    return result;
}

emu_nvml_result nvmlDeviceGetCurrentClocksEventReasons(struct nvmlDevice_st *device, unsigned long long *reasons)
{
    emu_nvml_result result = emu_nvml_check(device, reasons);

    if (result == EMU_NVML_OK && !emu_nvml_number(device->index, "reasons", reasons))
        *reasons = IDLE;
    return result;
}

emu_nvml_result nvmlDeviceGetCurrentClocksThrottleReasons(struct nvmlDevice_st *device, unsigned long long *reasons)
{
    return nvmlDeviceGetCurrentClocksEventReasons(device, reasons);
}

/* This process where it holds the GPU's context, and those that a test names. */
emu_nvml_result nvmlDeviceGetComputeRunningProcesses_v3(struct nvmlDevice_st *device, unsigned int *count,
                                                        struct nvmlProcessInfo_v2_st *infos)
{
    emu_nvml_result result = emu_nvml_check(device, count);
    unsigned int pids[PIDS], found = 0;

    if (result != EMU_NVML_OK)
        return result;
    if (ask_driver("weft_emulated_contexts", device->index, 0) > 0)
        pids[found++] = (unsigned int)getpid();
    found += emu_nvml_numbers(device->index, "processes", pids + found, PIDS - found);
    unsigned int room = *count;
    *count = found;
    if (room < found)
        return EMU_NVML_INSUFFICIENT_SIZE;
    if (!infos && found > 0)
        return EMU_NVML_INVALID_ARGUMENT;
    for (unsigned int i = 0; i < found; i++)
        infos[i] = (struct nvmlProcessInfo_v2_st){.pid = pids[i], .bytes = 1, .gpu_instance = ~0U, .instance = ~0U};
    return EMU_NVML_OK;
}

emu_nvml_result nvmlDeviceSetGpuLockedClocks(struct nvmlDevice_st *device, unsigned int least_mhz,
                                             unsigned int most_mhz)
{
    emu_nvml_result result = emu_nvml_check(device, device);

    if (result == EMU_NVML_OK && (least_mhz == 0 || least_mhz > most_mhz))
        result = EMU_NVML_INVALID_ARGUMENT;
    return result != EMU_NVML_OK ? result : emu_nvml_lock(device->index, least_mhz, most_mhz);
}

emu_nvml_result nvmlDeviceResetGpuLockedClocks(struct nvmlDevice_st *device)
{
    emu_nvml_result result = emu_nvml_check(device, device);

    return result != EMU_NVML_OK ? result : emu_nvml_unlock(device->index);
}
