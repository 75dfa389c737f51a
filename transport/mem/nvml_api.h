/*
 * nvml_api.h: the part of the management library's binary interface that Weft uses, in Weft's own types, as cuda_api.h
 * for the driver. X(name, parameters). A function that the library lacks is NULL.
 */
#ifndef WF_MEM_NVML_API_H
#define WF_MEM_NVML_API_H

typedef unsigned int wf_nvml_result; /* 0: success */
typedef struct nvmlDevice_st *wf_nvml_device;

enum { WF_NVML_SENSOR_GPU = 0, WF_NVML_CLOCK_SM = 1, WF_NVML_CLOCK_MEMORY = 2 };

#define WF_NVML_FUNCTIONS(X)                                                                                           \
    X(nvmlInit_v2, (void))                                                                                             \
    X(nvmlShutdown, (void))                                                                                            \
    X(nvmlSystemGetDriverVersion, (char *text, unsigned int length))                                                   \
    X(nvmlDeviceGetHandleByPciBusId_v2, (const char *pci, wf_nvml_device *device))                                     \
    X(nvmlDeviceGetName, (wf_nvml_device device, char *text, unsigned int length))                                     \
    X(nvmlDeviceGetTemperature, (wf_nvml_device device, unsigned int sensor, unsigned int *celsius))                   \
    X(nvmlDeviceGetClockInfo, (wf_nvml_device device, unsigned int clock, unsigned int *mhz))                          \
    X(nvmlDeviceGetPowerUsage, (wf_nvml_device device, unsigned int *milliwatts))                                      \
    X(nvmlDeviceGetCurrentClocksEventReasons, (wf_nvml_device device, unsigned long long *reasons))                    \
    X(nvmlDeviceGetCurrentClocksThrottleReasons, (wf_nvml_device device, unsigned long long *reasons))

struct wf_nvml_api {
#define WF_NVML_MEMBER(name, parameters) wf_nvml_result(*name) parameters;
    WF_NVML_FUNCTIONS(WF_NVML_MEMBER)
#undef WF_NVML_MEMBER
    const char *(*nvmlErrorString)(wf_nvml_result result);
};

#endif
