/* Compiled, never run: each prototype and value of mem/nvml_api.h is what nvml.h says. */
#include <nvml.h>
#include <stddef.h>

#include "mem/nvml_api.h"

/* Some have younger names: the old ones are asked for, since old libraries have only these. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

/* Newer headers wrap the handle into a structure of that one pointer: it is passed the same way. */
_Static_assert(sizeof(nvmlDevice_t) == sizeof(wf_nvml_device), "a handle is a pointer");
#define wf_nvml_device nvmlDevice_t

#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #ours)
#define SAME_PLACE(type, ours, theirs_type, theirs) SAME(offsetof(type, ours), offsetof(theirs_type, theirs))
SAME(sizeof(wf_nvml_address), sizeof(nvmlPciInfo_t));
SAME_PLACE(wf_nvml_address, domain, nvmlPciInfo_t, domain);
SAME_PLACE(wf_nvml_address, bus, nvmlPciInfo_t, bus);
SAME_PLACE(wf_nvml_address, device, nvmlPciInfo_t, device);
SAME_PLACE(wf_nvml_address, text, nvmlPciInfo_t, busId);
SAME(sizeof(wf_nvml_process), sizeof(nvmlProcessInfo_t));
SAME_PLACE(wf_nvml_process, pid, nvmlProcessInfo_t, pid);
SAME_PLACE(wf_nvml_process, bytes, nvmlProcessInfo_t, usedGpuMemory);
SAME_PLACE(wf_nvml_process, gpu_instance, nvmlProcessInfo_t, gpuInstanceId);
#define wf_nvml_address nvmlPciInfo_t
#define wf_nvml_process nvmlProcessInfo_t

#define CHECK(name, parameters)                                                                                        \
    void check_##name(void);                                                                                           \
    void check_##name(void)                                                                                            \
    {                                                                                                                  \
        wf_nvml_result(*ours) parameters = &name;                                                                      \
        (void)ours;                                                                                                    \
    }
WF_NVML_FUNCTIONS(CHECK)

void check_words(void);
void check_words(void)
{
    const char *(*ours)(wf_nvml_result) = &nvmlErrorString;
    (void)ours;
}

SAME(0, NVML_SUCCESS);
SAME(WF_NVML_INVALID_ARGUMENT, NVML_ERROR_INVALID_ARGUMENT);
SAME(WF_NVML_NOT_SUPPORTED, NVML_ERROR_NOT_SUPPORTED);
SAME(WF_NVML_NO_PERMISSION, NVML_ERROR_NO_PERMISSION);
SAME(WF_NVML_INSUFFICIENT_SIZE, NVML_ERROR_INSUFFICIENT_SIZE);
SAME(WF_NVML_SENSOR_GPU, NVML_TEMPERATURE_GPU);
SAME(WF_NVML_CLOCK_GRAPHICS, NVML_CLOCK_GRAPHICS);
SAME(WF_NVML_CLOCK_SM, NVML_CLOCK_SM);
SAME(WF_NVML_CLOCK_MEMORY, NVML_CLOCK_MEM);
SAME(WF_NVML_LINK_ACTIVE, NVML_FEATURE_ENABLED);
SAME(WF_NVML_REMOTE_SWITCH, NVML_NVLINK_DEVICE_TYPE_SWITCH);
SAME(WF_NVML_SAME_BOARD, NVML_TOPOLOGY_INTERNAL);
SAME(WF_NVML_ONE_SWITCH, NVML_TOPOLOGY_SINGLE);
SAME(WF_NVML_SWITCHES, NVML_TOPOLOGY_MULTIPLE);
SAME(WF_NVML_HOST_BRIDGE, NVML_TOPOLOGY_HOSTBRIDGE);
SAME(WF_NVML_NUMA_NODE, NVML_TOPOLOGY_NODE);
SAME(WF_NVML_SYSTEM, NVML_TOPOLOGY_SYSTEM);
_Static_assert(WF_NVML_LINKS_MAX >= NVML_NVLINK_MAX_LINKS, "links");
/* Older headers have no list of versions. */
#if NVML_API_VERSION >= 13
SAME(WF_NVML_LINK_1_0, NVML_NVLINK_VERSION_1_0);
SAME(WF_NVML_LINK_2_0, NVML_NVLINK_VERSION_2_0);
SAME(WF_NVML_LINK_2_2, NVML_NVLINK_VERSION_2_2);
SAME(WF_NVML_LINK_3_0, NVML_NVLINK_VERSION_3_0);
SAME(WF_NVML_LINK_3_1, NVML_NVLINK_VERSION_3_1);
SAME(WF_NVML_LINK_4_0, NVML_NVLINK_VERSION_4_0);
SAME(WF_NVML_LINK_5_0, NVML_NVLINK_VERSION_5_0);
#endif
