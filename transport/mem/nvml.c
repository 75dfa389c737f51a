#include "mem/nvml.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mem/nvml_parts.h"

#define LIBRARY "libnvidia-ml.so.1"
#define SPARE_PROCESSES 16 /* more than the library has counted */

static const struct {
    unsigned long long bit;
    const char *word; /* NULL: no loss of speed that anyone must explain */
    bool held_back;   /* the GPU is slower than it was set to be */
} reasons_known[] = {
    {0x001, NULL, false}, /* idle: the clocks rise with the work */
    {0x002, "application clocks set", false},
    {0x004, "power cap", true},
    {0x008, "hardware slowdown", true},
    {0x010, "sync boost", true},
    {0x020, "thermal (software)", true},
    {0x040, "thermal (hardware)", true},
    {0x080, "power brake", true},
    {0x100, "display clocks set", false},
};

static bool holds_back(unsigned long long reasons)
{
    for (size_t i = 0; i < sizeof reasons_known / sizeof *reasons_known; i++)
        if (reasons_known[i].held_back && (reasons & reasons_known[i].bit))
            return true;
    return false;
}

void wf_nvml_throttle_words(unsigned long long reasons, char *text, unsigned long size)
{
    size_t used = 0;

    snprintf(text, size, "none");
    for (size_t i = 0; i < sizeof(reasons_known) / sizeof(*reasons_known); i++) {
        int more;
        if (!(reasons & reasons_known[i].bit))
            continue;
        reasons &= ~reasons_known[i].bit;
        if (!reasons_known[i].word)
            continue;
        more = snprintf(text + used, size - used, "%s%s", used ? ", " : "", reasons_known[i].word);
        if (more < 0 || (size_t)more >= size - used)
            return;
        used += (size_t)more;
    }
    if (reasons)
        snprintf(text + used, size - used, "%sothers (0x%llx)", used ? ", " : "", reasons);
}

static void look_up_nvml(struct wf_nvml *nvml)
{
    struct wf_nvml_api *api = &nvml->api;

#define LOOK_UP(name, parameters) *(void **)&api->name = dlsym(nvml->library, #name);
    WF_NVML_FUNCTIONS(LOOK_UP)
#undef LOOK_UP
    *(void **)&api->nvmlErrorString = dlsym(nvml->library, "nvmlErrorString");
}

const char *wf_nvml_words(const struct wf_nvml *nvml, wf_nvml_result result)
{
    const char *text = nvml->api.nvmlErrorString ? nvml->api.nvmlErrorString(result) : NULL;

    return text ? text : "no reason given";
}

int wf_nvml_open(struct wf_nvml **out, struct wf_status *status)
{
    struct wf_nvml *nvml = calloc(1, sizeof(*nvml));
    wf_nvml_result result;
    int code;

    if (!nvml)
        return wf_fail(status, -ENOMEM, "no memory for " LIBRARY);
    nvml->library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!nvml->library) {
        free(nvml);
        return wf_fail(status, -ENODEV, "no " LIBRARY);
    }
    look_up_nvml(nvml);
    if (!nvml->api.nvmlInit_v2 || !nvml->api.nvmlShutdown || !nvml->api.nvmlDeviceGetHandleByPciBusId_v2)
        code = wf_fail(status, -ENODEV, LIBRARY " is too old: it cannot find GPUs by PCI address");
    else if ((result = nvml->api.nvmlInit_v2()) != 0)
        code = wf_fail(status, -ENODEV, "nvmlInit: %s (%u)", wf_nvml_words(nvml, result), result);
    else
        code = 0;
    if (code) {
        dlclose(nvml->library);
        free(nvml);
        return code;
    }
    if (!nvml->api.nvmlSystemGetDriverVersion ||
        nvml->api.nvmlSystemGetDriverVersion(nvml->driver, sizeof(nvml->driver)))
        nvml->driver[0] = '\0';
    *out = nvml;
    return 0;
}

void wf_nvml_close(struct wf_nvml *nvml)
{
    if (!nvml)
        return;
    nvml->api.nvmlShutdown();
    dlclose(nvml->library);
    free(nvml);
}

const char *wf_nvml_driver(const struct wf_nvml *nvml)
{
    return nvml->driver;
}

static int clock_of(const struct wf_nvml_api *api, wf_nvml_device device, unsigned int clock)
{
    unsigned int mhz;

    if (!api->nvmlDeviceGetClockInfo || api->nvmlDeviceGetClockInfo(device, clock, &mhz))
        return WF_NVML_UNKNOWN;
    return (int)mhz;
}

/* The name of the question changed between versions of the library. */
static void read_reasons(const struct wf_nvml_api *api, wf_nvml_device device, struct wf_nvml_state *state)
{
    wf_nvml_result (*ask)(wf_nvml_device device, unsigned long long *reasons) =
        api->nvmlDeviceGetCurrentClocksEventReasons ? api->nvmlDeviceGetCurrentClocksEventReasons
                                                    : api->nvmlDeviceGetCurrentClocksThrottleReasons;
    unsigned long long reasons = 0;

    if (!ask || ask(device, &reasons) != 0)
        return;
    state->reasons = reasons;
    state->reasons_known = true;
    state->held_back = holds_back(reasons);
    wf_nvml_throttle_words(reasons, state->throttling, sizeof state->throttling);
}

int wf_nvml_find(const struct wf_nvml *nvml, const char *pci, wf_nvml_device *out, struct wf_status *status)
{
    wf_nvml_result result = nvml->api.nvmlDeviceGetHandleByPciBusId_v2(pci, out);

    return result ? wf_fail(status, -ENODEV, "no GPU at PCI address '%s': %s", pci, wf_nvml_words(nvml, result)) : 0;
}

int wf_nvml_read(struct wf_nvml *nvml, const char *pci, struct wf_nvml_state *out, struct wf_status *status)
{
    const struct wf_nvml_api *api = &nvml->api;
    struct wf_nvml_state state = {
        .celsius = WF_NVML_UNKNOWN, .power_mw = WF_NVML_UNKNOWN, .free_bytes = WF_NVML_UNKNOWN};
    wf_nvml_memory memory;
    wf_nvml_device device;
    unsigned int value;
    int result = wf_nvml_find(nvml, pci, &device, status);

    if (result)
        return result;
    if (!api->nvmlDeviceGetName || api->nvmlDeviceGetName(device, state.name, sizeof(state.name)))
        state.name[0] = '\0';
    if (api->nvmlDeviceGetTemperature && !api->nvmlDeviceGetTemperature(device, WF_NVML_SENSOR_GPU, &value))
        state.celsius = (int)value;
    if (api->nvmlDeviceGetPowerUsage && !api->nvmlDeviceGetPowerUsage(device, &value))
        state.power_mw = (int)value;
    if (api->nvmlDeviceGetMemoryInfo && !api->nvmlDeviceGetMemoryInfo(device, &memory))
        state.free_bytes = (int64_t)memory.free;
    state.sm_mhz = clock_of(api, device, WF_NVML_CLOCK_SM);
    state.memory_mhz = clock_of(api, device, WF_NVML_CLOCK_MEMORY);
    read_reasons(api, device, &state);
    *out = state;
    return 0;
}

/* Processes may start between the answer that says how many there are and the next question. */
int wf_nvml_processes(struct wf_nvml *nvml, const char *pci, uint32_t *pids, int max)
{
    wf_nvml_process *processes = NULL;
    wf_nvml_result answer = WF_NVML_INSUFFICIENT_SIZE;
    wf_nvml_device device;
    unsigned int count = 0;
    int result = wf_nvml_find(nvml, pci, &device, NULL);

    if (result)
        return result;
    if (!nvml->api.nvmlDeviceGetComputeRunningProcesses_v3)
        return -EOPNOTSUPP;
    for (int tries = 0; tries < 4 && answer == WF_NVML_INSUFFICIENT_SIZE; tries++) {
        free(processes);
        count += SPARE_PROCESSES;
        processes = calloc(count, sizeof *processes);
        if (!processes)
            return -ENOMEM;
        answer = nvml->api.nvmlDeviceGetComputeRunningProcesses_v3(device, &count, processes);
    }
    for (unsigned int i = 0; answer == 0 && i < count && i < (unsigned int)max; i++)
        pids[i] = processes[i].pid;
    free(processes);
    if (answer)
        return answer == WF_NVML_NO_PERMISSION ? -EPERM : answer == WF_NVML_NOT_SUPPORTED ? -EOPNOTSUPP : -EIO;
    return (int)count;
}
