/*
 * emulated_cuda.h: the emulated driver (tests/support/cuda), loaded as Weft loads a driver: every function by
 * cuGetProcAddress in the version that is wanted, and the hooks by name.
 */
#ifndef WEFT_TESTS_UNIT_EMULATED_CUDA_H
#define WEFT_TESTS_UNIT_EMULATED_CUDA_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "driver.h"

/* name as asked for, version, the declaration that it must have */
#define EMULATED_SYMBOLS(X)                                                                                            \
    X(cuInit, 2000, cuInit)                                                                                            \
    X(cuDriverGetVersion, 2020, cuDriverGetVersion)                                                                    \
    X(cuDeviceGetCount, 2000, cuDeviceGetCount)                                                                        \
    X(cuDeviceGet, 2000, cuDeviceGet)                                                                                  \
    X(cuDeviceGetName, 2000, cuDeviceGetName)                                                                          \
    X(cuDeviceTotalMem, 3020, cuDeviceTotalMem_v2)                                                                     \
    X(cuDeviceGetPCIBusId, 4010, cuDeviceGetPCIBusId)                                                                  \
    X(cuDeviceGetAttribute, 2000, cuDeviceGetAttribute)                                                                \
    X(cuDeviceGetUuid, 11040, cuDeviceGetUuid_v2)                                                                      \
    X(cuDevicePrimaryCtxRetain, 7000, cuDevicePrimaryCtxRetain)                                                        \
    X(cuDevicePrimaryCtxRelease, 11000, cuDevicePrimaryCtxRelease_v2)                                                  \
    X(cuCtxPushCurrent, 4000, cuCtxPushCurrent_v2)                                                                     \
    X(cuCtxPopCurrent, 4000, cuCtxPopCurrent_v2)                                                                       \
    X(cuStreamCreate, 2000, cuStreamCreate)                                                                            \
    X(cuStreamDestroy, 4000, cuStreamDestroy_v2)                                                                       \
    X(cuStreamSynchronize, 2000, cuStreamSynchronize)                                                                  \
    X(cuStreamWaitEvent, 3020, cuStreamWaitEvent)                                                                      \
    X(cuStreamWaitValue32, 11070, cuStreamWaitValue32_v2)                                                              \
    X(cuThreadExchangeStreamCaptureMode, 10010, cuThreadExchangeStreamCaptureMode)                                     \
    X(cuStreamIsCapturing, 10000, cuStreamIsCapturing)                                                                 \
    X(cuStreamBeginCapture, 10010, cuStreamBeginCapture_v2)                                                            \
    X(cuStreamEndCapture, 10000, cuStreamEndCapture)                                                                   \
    X(cuEventCreate, 2000, cuEventCreate)                                                                              \
    X(cuEventDestroy, 4000, cuEventDestroy_v2)                                                                         \
    X(cuEventRecord, 2000, cuEventRecord)                                                                              \
    X(cuEventQuery, 2000, cuEventQuery)                                                                                \
    X(cuEventElapsedTime, 2000, cuEventElapsedTime)                                                                    \
    X(cuMemGetInfo, 3020, cuMemGetInfo_v2)                                                                             \
    X(cuMemAlloc, 3020, cuMemAlloc_v2)                                                                                 \
    X(cuMemFree, 3020, cuMemFree_v2)                                                                                   \
    X(cuMemHostRegister, 6050, cuMemHostRegister_v2)                                                                   \
    X(cuMemHostUnregister, 4000, cuMemHostUnregister)                                                                  \
    X(cuMemHostGetDevicePointer, 3020, cuMemHostGetDevicePointer_v2)                                                   \
    X(cuMemcpyHtoDAsync, 3020, cuMemcpyHtoDAsync_v2)                                                                   \
    X(cuMemcpyDtoHAsync, 3020, cuMemcpyDtoHAsync_v2)                                                                   \
    X(cuMemcpyDtoDAsync, 3020, cuMemcpyDtoDAsync_v2)                                                                   \
    X(cuMemcpyPeerAsync, 4000, cuMemcpyPeerAsync)                                                                      \
    X(cuMemcpy, 4000, cuMemcpy)                                                                                        \
    X(cuMemcpyBatchAsync, 13000, cuMemcpyBatchAsync_v2)                                                                \
    X(cuPointerGetAttribute, 4000, cuPointerGetAttribute)                                                              \
    X(cuPointerGetAttributes, 7000, cuPointerGetAttributes)                                                            \
    X(cuMemGetAddressRange, 3020, cuMemGetAddressRange_v2)                                                             \
    X(cuMemGetHandleForAddressRange, 11070, cuMemGetHandleForAddressRange)                                             \
    X(cuDeviceCanAccessPeer, 4000, cuDeviceCanAccessPeer)                                                              \
    X(cuCtxEnablePeerAccess, 4000, cuCtxEnablePeerAccess)                                                              \
    X(cuGetErrorName, 6000, cuGetErrorName)                                                                            \
    X(cuGetErrorString, 6000, cuGetErrorString)                                                                        \
    X(cuModuleLoadData, 2000, cuModuleLoadData)                                                                        \
    X(cuModuleUnload, 2000, cuModuleUnload)                                                                            \
    X(cuModuleGetFunction, 2000, cuModuleGetFunction)                                                                  \
    X(cuLaunchKernel, 4000, cuLaunchKernel)

#define EMULATED_FIELD(name, version, declaration) __typeof__(declaration) *name;

static struct {
    EMULATED_SYMBOLS(EMULATED_FIELD)
    __typeof__(cuGetProcAddress_v2) *get;
    __typeof__(weft_emulated_contexts) *contexts;
    __typeof__(weft_emulated_count) *count;
    __typeof__(weft_emulated_fault) *fault;
    __typeof__(weft_emulated_pause) *pause;
    __typeof__(weft_emulated_map) *map;
    __typeof__(weft_emulated_unmap) *unmap;
} cuda;

static void *emulated_hook(void *library, const char *name)
{
    void *found = dlsym(library, name);

    if (!found) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    return found;
}

static void *emulated_symbol(const char *name, int version)
{
    void *found = NULL;
    unsigned int status = 99;

    if (cuda.get(name, &found, version, 0, &status) != EMU_OK || !found || status != EMU_SYMBOL_FOUND) {
        fprintf(stderr, "%s %d: not there, status %u\n", name, version, status);
        exit(1);
    }
    return found;
}

/* Ends the process where something is missing. */
static void emulated_load(void)
{
    void *library = dlopen(EMULATED_CUDA, RTLD_NOW | RTLD_LOCAL);

    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    *(void **)&cuda.get = emulated_hook(library, "cuGetProcAddress_v2");
    *(void **)&cuda.contexts = emulated_hook(library, "weft_emulated_contexts");
    *(void **)&cuda.count = emulated_hook(library, "weft_emulated_count");
    *(void **)&cuda.fault = emulated_hook(library, "weft_emulated_fault");
    *(void **)&cuda.map = emulated_hook(library, "weft_emulated_map");
    *(void **)&cuda.unmap = emulated_hook(library, "weft_emulated_unmap");
    *(void **)&cuda.pause = emulated_hook(library, "weft_emulated_pause");
    if (*(const int *)emulated_hook(library, "weft_emulated_driver") != 1)
        exit(1);
#define EMULATED_FILL(name, version, declaration) *(void **)&cuda.name = emulated_symbol(#name, version);
    EMULATED_SYMBOLS(EMULATED_FILL)
}

#endif
