/*
 * nvml_api.h: the part of the management library's binary interface that Weft uses, in Weft's own types, as cuda_api.h
 * for the driver. X(name, parameters). A function that the library lacks is NULL.
 */
#ifndef WF_MEM_NVML_API_H
#define WF_MEM_NVML_API_H

typedef unsigned int wf_nvml_result; /* 0: success */
typedef struct nvmlDevice_st *wf_nvml_device;

/* Results that the code tests. All other results only become text for a person. */
enum {
    WF_NVML_INVALID_ARGUMENT = 2,
    WF_NVML_NOT_SUPPORTED = 3,
    WF_NVML_NO_PERMISSION = 4,
    WF_NVML_INSUFFICIENT_SIZE = 7,
};

enum { WF_NVML_SENSOR_GPU = 0, WF_NVML_CLOCK_GRAPHICS = 0, WF_NVML_CLOCK_SM = 1, WF_NVML_CLOCK_MEMORY = 2 };

/* Links of a GPU, and what is at the other end of one. */
enum { WF_NVML_LINKS_MAX = 36, WF_NVML_LINK_ACTIVE = 1, WF_NVML_REMOTE_SWITCH = 2 };

/* nvmlNvlinkVersion_t: no numbers of versions, but places in a list of them. */
enum {
    WF_NVML_LINK_1_0 = 1,
    WF_NVML_LINK_2_0,
    WF_NVML_LINK_2_2,
    WF_NVML_LINK_3_0,
    WF_NVML_LINK_3_1,
    WF_NVML_LINK_4_0,
    WF_NVML_LINK_5_0,
    WF_NVML_LINK_6_0,
};

/* nvmlGpuTopologyLevel_t */
enum {
    WF_NVML_SAME_BOARD = 0,
    WF_NVML_ONE_SWITCH = 10,
    WF_NVML_SWITCHES = 20,
    WF_NVML_HOST_BRIDGE = 30,
    WF_NVML_NUMA_NODE = 40,
    WF_NVML_SYSTEM = 50,
};

/* nvmlPciInfo_t */
typedef struct wf_nvml_address {
    char short_text[16];
    unsigned int domain, bus, device, ids, subsystem_ids;
    char text[32];
} wf_nvml_address;

/* nvmlProcessInfo_t of the third version of the question. */
typedef struct wf_nvml_process {
    unsigned int pid;
    unsigned long long bytes;
    unsigned int gpu_instance, compute_instance;
} wf_nvml_process;

/* nvmlMemory_t */
typedef struct wf_nvml_memory {
    unsigned long long total, free, used;
} wf_nvml_memory;

#define WF_NVML_FUNCTIONS(X)                                                                                           \
    X(nvmlInit_v2, (void))                                                                                             \
    X(nvmlShutdown, (void))                                                                                            \
    X(nvmlSystemGetDriverVersion, (char *text, unsigned int length))                                                   \
    X(nvmlDeviceGetHandleByPciBusId_v2, (const char *pci, wf_nvml_device *device))                                     \
    X(nvmlDeviceGetName, (wf_nvml_device device, char *text, unsigned int length))                                     \
    X(nvmlDeviceGetTemperature, (wf_nvml_device device, unsigned int sensor, unsigned int *celsius))                   \
    X(nvmlDeviceGetClockInfo, (wf_nvml_device device, unsigned int clock, unsigned int *mhz))                          \
    X(nvmlDeviceGetMaxClockInfo, (wf_nvml_device device, unsigned int clock, unsigned int *mhz))                       \
    X(nvmlDeviceGetMemoryInfo, (wf_nvml_device device, wf_nvml_memory * memory))                                       \
    X(nvmlDeviceGetPowerUsage, (wf_nvml_device device, unsigned int *milliwatts))                                      \
    X(nvmlDeviceGetCurrentClocksEventReasons, (wf_nvml_device device, unsigned long long *reasons))                    \
    X(nvmlDeviceGetCurrentClocksThrottleReasons, (wf_nvml_device device, unsigned long long *reasons))                 \
    X(nvmlDeviceGetComputeRunningProcesses_v3,                                                                         \
      (wf_nvml_device device, unsigned int *count, wf_nvml_process *processes))                                        \
    X(nvmlDeviceSetGpuLockedClocks, (wf_nvml_device device, unsigned int least_mhz, unsigned int most_mhz))            \
    X(nvmlDeviceResetGpuLockedClocks, (wf_nvml_device device))                                                         \
    X(nvmlDeviceGetCurrPcieLinkGeneration, (wf_nvml_device device, unsigned int *generation))                          \
    X(nvmlDeviceGetCurrPcieLinkWidth, (wf_nvml_device device, unsigned int *lanes))                                    \
    X(nvmlDeviceGetMaxPcieLinkGeneration, (wf_nvml_device device, unsigned int *generation))                           \
    X(nvmlDeviceGetMaxPcieLinkWidth, (wf_nvml_device device, unsigned int *lanes))                                     \
    X(nvmlDeviceGetNvLinkState, (wf_nvml_device device, unsigned int link, unsigned int *active))                      \
    X(nvmlDeviceGetNvLinkVersion, (wf_nvml_device device, unsigned int link, unsigned int *version))                   \
    X(nvmlDeviceGetNvLinkRemotePciInfo_v2, (wf_nvml_device device, unsigned int link, wf_nvml_address *remote))        \
    X(nvmlDeviceGetNvLinkRemoteDeviceType, (wf_nvml_device device, unsigned int link, unsigned int *type))             \
    X(nvmlDeviceGetTopologyCommonAncestor, (wf_nvml_device one, wf_nvml_device other, unsigned int *level))

struct wf_nvml_api {
#define WF_NVML_MEMBER(name, parameters) wf_nvml_result(*name) parameters;
    WF_NVML_FUNCTIONS(WF_NVML_MEMBER)
#undef WF_NVML_MEMBER
    const char *(*nvmlErrorString)(wf_nvml_result result);
};

#endif
