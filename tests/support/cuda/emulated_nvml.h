/* emulated_nvml.h: what Weft asks of NVML, without NVML's own header; compared with that in prototypes.c, where it is.
 */
#ifndef WEFT_TESTS_CUDA_EMULATED_NVML_H
#define WEFT_TESTS_CUDA_EMULATED_NVML_H

#include "emulated.h"

struct nvmlDevice_st;
struct nvmlPciInfo_st;

typedef unsigned int emu_nvml_result;

enum {
    EMU_NVML_OK = 0,
    EMU_NVML_UNINITIALIZED = 1,
    EMU_NVML_INVALID_ARGUMENT = 2,
    EMU_NVML_NOT_FOUND = 6,
    EMU_NVML_INSUFFICIENT_SIZE = 7,
    EMU_NVML_GPU_IS_LOST = 15,
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
WEFT_EMULATED_EXPORT emu_nvml_result nvmlDeviceGetCurrentClocksEventReasons(struct nvmlDevice_st *device,
                                                                            unsigned long long *reasons);
WEFT_EMULATED_EXPORT emu_nvml_result nvmlDeviceGetCurrentClocksThrottleReasons(struct nvmlDevice_st *device,
                                                                               unsigned long long *reasons);

#endif
