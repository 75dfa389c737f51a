/* The emulated libnvidia-ml.so.1: the GPUs of the emulated driver, with readings that no real one has. */
#include "emulated_nvml.h"
#include "internal.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define CELSIUS 11
#define CLOCK_MHZ 111
#define MILLIWATTS 1111
#define IDLE 1 /* the reason for low clocks: there is nothing to do */

struct nvmlDevice_st {
    int index;
};

/* nvmlPciInfo_t */
struct nvmlPciInfo_st {
    char short_address[16]; /* "0000:18:00.0" */
    unsigned int domain, bus, device, ids, subsystem_ids;
    char address[32]; /* "00000000:18:00.0" */
};

const int weft_emulated_driver = 1;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int users; /* inits less shutdowns */
static struct emu_world world;
static struct nvmlDevice_st handles[EMU_DEVICES_MAX];

emu_nvml_result nvmlInit_v2(void)
{
    emu_nvml_result result = EMU_NVML_OK;

    pthread_mutex_lock(&lock);
    if (users == 0 && emu_settings_read(&world) != EMU_OK)
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
    *count = (unsigned int)world.device_count;
    return EMU_NVML_OK;
}

emu_nvml_result nvmlDeviceGetHandleByIndex_v2(unsigned int index, struct nvmlDevice_st **device)
{
    if (!is_ready())
        return EMU_NVML_UNINITIALIZED;
    if (!device || index >= (unsigned int)world.device_count)
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
    for (int i = 0; i < world.device_count; i++)
        if (strcasecmp(address, world.devices[i].address) == 0) {
            *device = &handles[i];
            return EMU_NVML_OK;
        }
    return EMU_NVML_NOT_FOUND;
}

/* The driver knows who is lost, where it is loaded; this library comes without it, too. */
static bool is_lost(int index)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    void *hook = driver ? dlsym(driver, "weft_emulated_lost") : NULL;
    int (*lost)(int);

    memcpy(&lost, &hook, sizeof(lost));
    return lost && lost(index) != 0;
}

static emu_nvml_result check(const struct nvmlDevice_st *device, const void *out)
{
    if (!is_ready())
        return EMU_NVML_UNINITIALIZED;
    if (!device || !out || device < handles || device >= handles + world.device_count)
        return EMU_NVML_INVALID_ARGUMENT;
    return is_lost(device->index) ? EMU_NVML_GPU_IS_LOST : EMU_NVML_OK;
}

emu_nvml_result nvmlDeviceGetName(struct nvmlDevice_st *device, char *name, unsigned int length)
{
    emu_nvml_result result = check(device, name);
    return result != EMU_NVML_OK ? result : put_text(name, length, world.devices[device->index].name);
}

emu_nvml_result nvmlDeviceGetPciInfo_v3(struct nvmlDevice_st *device, struct nvmlPciInfo_st *info)
{
    emu_nvml_result result = check(device, info);

    if (result != EMU_NVML_OK)
        return result;
    *info = (struct nvmlPciInfo_st){0};
    snprintf(info->short_address, sizeof(info->short_address), "%s", world.devices[device->index].address);
    snprintf(info->address, sizeof(info->address), "0000%s", world.devices[device->index].address);
    sscanf(info->short_address, "%x:%x:%x", &info->domain, &info->bus, &info->device);
    return EMU_NVML_OK;
}

static emu_nvml_result put_number(const struct nvmlDevice_st *device, unsigned int *out, unsigned int number)
{
    emu_nvml_result result = check(device, out);

    if (result == EMU_NVML_OK)
        *out = number;
    return result;
}

emu_nvml_result nvmlDeviceGetTemperature(struct nvmlDevice_st *device, unsigned int sensor, unsigned int *celsius)
{
    return sensor != 0 ? EMU_NVML_INVALID_ARGUMENT : put_number(device, celsius, CELSIUS);
}

emu_nvml_result nvmlDeviceGetClockInfo(struct nvmlDevice_st *device, unsigned int clock, unsigned int *mhz)
{
    return clock > 3 ? EMU_NVML_INVALID_ARGUMENT : put_number(device, mhz, CLOCK_MHZ);
}

emu_nvml_result nvmlDeviceGetPowerUsage(struct nvmlDevice_st *device, unsigned int *milliwatts)
{
    return put_number(device, milliwatts, MILLIWATTS);
}

emu_nvml_result nvmlDeviceGetCurrentClocksEventReasons(struct nvmlDevice_st *device, unsigned long long *reasons)
{
    emu_nvml_result result = check(device, reasons);

    if (result == EMU_NVML_OK)
        *reasons = IDLE;
    return result;
}

emu_nvml_result nvmlDeviceGetCurrentClocksThrottleReasons(struct nvmlDevice_st *device, unsigned long long *reasons)
{
    return nvmlDeviceGetCurrentClocksEventReasons(device, reasons);
}
