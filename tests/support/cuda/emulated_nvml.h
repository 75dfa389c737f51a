/*
 * emulated_nvml.h: what Weft asks of NVML, without NVML's own header; compared with that in prototypes.c, where it is.
 *
 * A test changes what a GPU says while a program runs, and sees what the program does to it, by the files of the folder
 * that WEFT_EMULATED_NVML_STATE names. They are looked for at every question; N is the GPU's number:
 *
 *     gpuN.reasons      why its clocks are reduced, in the library's bits [1: idle]
 *     gpuN.celsius      its temperature [11]
 *     gpuN.mhz          the clock of its processors [111, or what they are locked to]
 *     gpuN.processes    processes that use it, besides this one where it retains the context
 *     gpuN.refuse       is there: its clocks may not be locked or unlocked (NO_PERMISSION)
 *     gpuN.locked       written when its clocks are locked ("1410 1410"), removed when they are unlocked
 *
 * Without a folder nobody can lock clocks (NOT_SUPPORTED). How GPUs are connected: nvml_links.c.
 */
#ifndef WEFT_TESTS_CUDA_EMULATED_NVML_H
#define WEFT_TESTS_CUDA_EMULATED_NVML_H

#include "emulated.h"

struct nvmlDevice_st;
struct nvmlMemory_st;
struct nvmlPciInfo_st;
struct nvmlProcessInfo_v2_st;

typedef unsigned int emu_nvml_result;

enum {
    EMU_NVML_OK = 0,
    EMU_NVML_UNINITIALIZED = 1,
    EMU_NVML_INVALID_ARGUMENT = 2,
    EMU_NVML_NOT_SUPPORTED = 3,
    EMU_NVML_NO_PERMISSION = 4,
    EMU_NVML_NOT_FOUND = 6,
    EMU_NVML_INSUFFICIENT_SIZE = 7,
    EMU_NVML_GPU_IS_LOST = 15,
    EMU_NVML_UNKNOWN = 999,
};

WEFT_EMULATED_EXPORT emu_nvml_result nvmlInit_v2(void);
WEFT_EMULATED_EXPORT emu_nvml_result nvmlShutdown(void);
WEFT_EMULATED_EXPORT const char *nvmlErrorString(emu_nvml_result result);
WEFT_EMULATED_EXPORT emu_nvml_result nvmlSystemGetDriverVersion(char *version, unsigned int length);
WEFT_EMULATED_EXPORT emu_nvml_result nvmlDeviceGetCount_v2(unsigned int *count);
WEFT_EMULATED_EXPORT emu_nvml_result nvmlDeviceGetHandleByIndex_v2(unsigned int index, struct nvmlDevice_st **device);
WEFT_EMULATED_EXPORT emu_nvml_result nvmlDeviceGetHandleByPciBusId_v2(const char *address,
                                                                      struct nvmlDevice_st **device);
WEFT_EMULATED_EXPORT emu_nvml_result nvmlDeviceGetName(struct nvmlDevice_st *device, char *name, unsigned int length);
WEFT_EMULATED_EXPORT emu_nvml_result nvmlDeviceGetPciInfo_v3(struct nvmlDevice_st *device, struct nvmlPciInfo_st *info);
WEFT_EMULATED_EXPORT emu_nvml_result nvmlDeviceGetTemperature(struct nvmlDevice_st *device, unsigned int sensor,
                                                              unsigned int *celsius);
WEFT_EMULATED_EXPORT emu_nvml_result nvmlDeviceGetClockInfo(struct nvmlDevice_st *device, unsigned int clock,
                                                            unsigned int *mhz);
WEFT_EMULATED_EXPORT emu_nvml_result nvmlDeviceGetPowerUsage(struct nvmlDevice_st *device, unsigned int *milliwatts);
WEFT_EMULATED_EXPORT emu_nvml_result nvmlDeviceGetMemoryInfo(struct nvmlDevice_st *device,
                                                             struct nvmlMemory_st *memory);
WEFT_EMULATED_EXPORT emu_nvml_result nvmlDeviceGetCurrentClocksEventReasons(struct nvmlDevice_st *device,
                                                                            unsigned long long *reasons);
WEFT_EMULATED_EXPORT emu_nvml_result nvmlDeviceGetCurrentClocksThrottleReasons(struct nvmlDevice_st *device,
                                                                               unsigned long long *reasons);
WEFT_EMULATED_EXPORT emu_nvml_result nvmlDeviceGetMaxClockInfo(struct nvmlDevice_st *device, unsigned int clock,
                                                               unsigned int *mhz);
WEFT_EMULATED_EXPORT emu_nvml_result nvmlDeviceGetComputeRunningProcesses_v3(struct nvmlDevice_st *device,
                                                                             unsigned int *count,
                                                                             struct nvmlProcessInfo_v2_st *infos);
WEFT_EMULATED_EXPORT emu_nvml_result nvmlDeviceSetGpuLockedClocks(struct nvmlDevice_st *device, unsigned int least_mhz,
                                                                  unsigned int most_mhz);
WEFT_EMULATED_EXPORT emu_nvml_result nvmlDeviceResetGpuLockedClocks(struct nvmlDevice_st *device);
WEFT_EMULATED_EXPORT emu_nvml_result nvmlDeviceGetCurrPcieLinkGeneration(struct nvmlDevice_st *device,
                                                                         unsigned int *generation);
WEFT_EMULATED_EXPORT emu_nvml_result nvmlDeviceGetCurrPcieLinkWidth(struct nvmlDevice_st *device, unsigned int *lanes);
WEFT_EMULATED_EXPORT emu_nvml_result nvmlDeviceGetMaxPcieLinkGeneration(struct nvmlDevice_st *device,
                                                                        unsigned int *generation);
WEFT_EMULATED_EXPORT emu_nvml_result nvmlDeviceGetMaxPcieLinkWidth(struct nvmlDevice_st *device, unsigned int *lanes);
WEFT_EMULATED_EXPORT emu_nvml_result nvmlDeviceGetNvLinkState(struct nvmlDevice_st *device, unsigned int link,
                                                              unsigned int *active);
WEFT_EMULATED_EXPORT emu_nvml_result nvmlDeviceGetNvLinkVersion(struct nvmlDevice_st *device, unsigned int link,
                                                                unsigned int *version);
WEFT_EMULATED_EXPORT emu_nvml_result nvmlDeviceGetNvLinkRemotePciInfo_v2(struct nvmlDevice_st *device,
                                                                         unsigned int link,
                                                                         struct nvmlPciInfo_st *remote);
WEFT_EMULATED_EXPORT emu_nvml_result nvmlDeviceGetNvLinkRemoteDeviceType(struct nvmlDevice_st *device,
                                                                         unsigned int link, unsigned int *type);
WEFT_EMULATED_EXPORT emu_nvml_result nvmlDeviceGetTopologyCommonAncestor(struct nvmlDevice_st *one,
                                                                         struct nvmlDevice_st *other,
                                                                         unsigned int *level);

#endif
