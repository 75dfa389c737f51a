/*
 * nvml_internal.h: what the files of the emulated management library share.
 *
 *     nvml.c: what there is of a GPU; nvml_links.c: how it is connected; nvml_state.c: what a test says of it
 */
#ifndef WEFT_TESTS_CUDA_NVML_INTERNAL_H
#define WEFT_TESTS_CUDA_NVML_INTERNAL_H

#include "emulated_nvml.h"
#include "internal.h"

struct nvmlDevice_st {
    int index;
};

/* nvmlPciInfo_t */
struct nvmlMemory_st {
    unsigned long long total, free, used;
};

struct nvmlPciInfo_st {
    char short_address[16]; /* "0000:18:00.0" */
    unsigned int domain, bus, device, ids, subsystem_ids;
    char address[32]; /* "00000000:18:00.0" */
};

/* nvmlProcessInfo_t */
struct nvmlProcessInfo_v2_st {
    unsigned int pid;
    unsigned long long bytes;
    unsigned int gpu_instance, instance;
};

/* Written by the first nvmlInit, then constant. */
extern struct emu_world emu_nvml_world;

/* EMU_NVML_OK: the library is in use, `device` is one that is not lost, and `out` is not NULL. */
emu_nvml_result emu_nvml_check(const struct nvmlDevice_st *device, const void *out);
/* The same check, then the number. */
emu_nvml_result emu_nvml_put(const struct nvmlDevice_st *device, unsigned int *out, unsigned int number);
/* The address of a GPU that there is. */
void emu_nvml_address(int index, struct nvmlPciInfo_st *info);

/* --- nvml_state.c: the folder WEFT_EMULATED_NVML_STATE --- */

/* The numbers of a file (decimal, or 0x...), at most `max`: how many; 0: there is no such file. */
unsigned int emu_nvml_numbers(int index, const char *what, unsigned int *numbers, unsigned int max);
/* The first number of a file. False: there is none. */
bool emu_nvml_number(int index, const char *what, unsigned long long *number);
/* EMU_NVML_NOT_SUPPORTED: there is no folder; EMU_NVML_NO_PERMISSION: a test refuses it. */
emu_nvml_result emu_nvml_lock(int index, unsigned int least_mhz, unsigned int most_mhz);
emu_nvml_result emu_nvml_unlock(int index);
/* False: the clocks are not locked. */
bool emu_nvml_locked(int index, unsigned int *least_mhz, unsigned int *most_mhz);

#endif
