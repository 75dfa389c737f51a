#include "mem/nvml_parts.h"

#include <errno.h>

static int refused_clock(const struct wf_nvml *nvml, const char *what, const char *pci, wf_nvml_result result,
                         struct wf_status *status)
{
    if (result == WF_NVML_NO_PERMISSION)
        return wf_fail(status, -EPERM, "cannot %s the clocks of the GPU at %s: root is needed for it (%s)", what, pci,
                       wf_nvml_words(nvml, result));
    if (result == WF_NVML_NOT_SUPPORTED)
        return wf_fail(status, -EOPNOTSUPP, "cannot %s the clocks of the GPU at %s: it does not support that", what,
                       pci);
    return wf_fail(status, result == WF_NVML_INVALID_ARGUMENT ? -EINVAL : -EIO,
                   "cannot %s the clocks of the GPU at %s: %s (%u)", what, pci, wf_nvml_words(nvml, result), result);
}

static int no_function(const char *what, const char *pci, struct wf_status *status)
{
    return wf_fail(status, -EOPNOTSUPP,
                   "cannot %s the clocks of the GPU at %s: the management library of this driver is too old for it",
                   what, pci);
}

int wf_nvml_clock_range(struct wf_nvml *nvml, const char *pci, int *most_mhz, struct wf_status *status)
{
    wf_nvml_device device;
    unsigned int mhz;
    int result = wf_nvml_find(nvml, pci, &device, status);

    if (result)
        return result;
    if (!nvml->api.nvmlDeviceGetMaxClockInfo)
        return no_function("ask for", pci, status);
    wf_nvml_result answer = nvml->api.nvmlDeviceGetMaxClockInfo(device, WF_NVML_CLOCK_GRAPHICS, &mhz);
    if (answer)
        return refused_clock(nvml, "ask for", pci, answer, status);
    *most_mhz = (int)mhz;
    return 0;
}

int wf_nvml_lock_clocks(struct wf_nvml *nvml, const char *pci, int least_mhz, int most_mhz, struct wf_status *status)
{
    wf_nvml_device device;
    int result = wf_nvml_find(nvml, pci, &device, status);

    if (result)
        return result;
    if (least_mhz < 1 || most_mhz < least_mhz)
        return wf_fail(status, -EINVAL, "clocks from %d to %d MHz: name the lowest first, and at least 1 MHz",
                       least_mhz, most_mhz);
    if (!nvml->api.nvmlDeviceSetGpuLockedClocks || !nvml->api.nvmlDeviceResetGpuLockedClocks)
        return no_function("lock", pci, status);
    wf_nvml_result answer =
        nvml->api.nvmlDeviceSetGpuLockedClocks(device, (unsigned int)least_mhz, (unsigned int)most_mhz);
    return answer ? refused_clock(nvml, "lock", pci, answer, status) : 0;
}

int wf_nvml_unlock_clocks(struct wf_nvml *nvml, const char *pci, struct wf_status *status)
{
    wf_nvml_device device;
    int result = wf_nvml_find(nvml, pci, &device, status);

    if (result)
        return result;
    if (!nvml->api.nvmlDeviceResetGpuLockedClocks)
        return no_function("unlock", pci, status);
    wf_nvml_result answer = nvml->api.nvmlDeviceResetGpuLockedClocks(device);
    return answer ? refused_clock(nvml, "unlock", pci, answer, status) : 0;
}
