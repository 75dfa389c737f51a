/* Which functions the driver has, in which versions, and the names of its errors. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

/* The version is that of CUDA in which the prototype came; a younger one of the same name stands behind it. */
static const struct symbol {
    const char *name;
    int version;
    void *function;
    bool optional; /* an old driver lacks it */
} symbols[] = {
    {"cuGetProcAddress", 12000, (void *)cuGetProcAddress_v2, false},
    {"cuInit", 2000, (void *)cuInit, false},
    {"cuDriverGetVersion", 2020, (void *)cuDriverGetVersion, false},
    {"cuGetErrorName", 6000, (void *)cuGetErrorName, false},
    {"cuGetErrorString", 6000, (void *)cuGetErrorString, false},
    {"cuDeviceGetCount", 2000, (void *)cuDeviceGetCount, false},
    {"cuDeviceGet", 2000, (void *)cuDeviceGet, false},
    {"cuDeviceGetName", 2000, (void *)cuDeviceGetName, false},
    {"cuDeviceTotalMem", 3020, (void *)cuDeviceTotalMem_v2, false},
    {"cuDeviceGetPCIBusId", 4010, (void *)cuDeviceGetPCIBusId, false},
    {"cuDeviceGetAttribute", 2000, (void *)cuDeviceGetAttribute, false},
    {"cuDeviceGetUuid", 11040, (void *)cuDeviceGetUuid_v2, false},
    {"cuDeviceCanAccessPeer", 4000, (void *)cuDeviceCanAccessPeer, false},
    {"cuDevicePrimaryCtxRetain", 7000, (void *)cuDevicePrimaryCtxRetain, false},
    {"cuDevicePrimaryCtxRelease", 11000, (void *)cuDevicePrimaryCtxRelease_v2, false},
    {"cuCtxPushCurrent", 4000, (void *)cuCtxPushCurrent_v2, false},
    {"cuCtxPopCurrent", 4000, (void *)cuCtxPopCurrent_v2, false},
    {"cuCtxGetCurrent", 4000, (void *)cuCtxGetCurrent, false},
    {"cuCtxSetCurrent", 4000, (void *)cuCtxSetCurrent, false},
    {"cuCtxGetDevice", 2000, (void *)cuCtxGetDevice, false},
    {"cuCtxSynchronize", 2000, (void *)cuCtxSynchronize, false},
    {"cuCtxEnablePeerAccess", 4000, (void *)cuCtxEnablePeerAccess, false},
    {"cuStreamCreate", 2000, (void *)cuStreamCreate, false},
    {"cuStreamDestroy", 4000, (void *)cuStreamDestroy_v2, false},
    {"cuStreamQuery", 2000, (void *)cuStreamQuery, false},
    {"cuStreamSynchronize", 2000, (void *)cuStreamSynchronize, false},
    {"cuStreamWaitEvent", 3020, (void *)cuStreamWaitEvent, false},
    {"cuStreamWaitValue32", 11070, (void *)cuStreamWaitValue32_v2, true},
    {"cuThreadExchangeStreamCaptureMode", 10010, (void *)cuThreadExchangeStreamCaptureMode, false},
    {"cuStreamIsCapturing", 10000, (void *)cuStreamIsCapturing, false},
    {"cuStreamBeginCapture", 10010, (void *)cuStreamBeginCapture_v2, false},
    {"cuStreamEndCapture", 10000, (void *)cuStreamEndCapture, false},
    {"cuEventCreate", 2000, (void *)cuEventCreate, false},
    {"cuEventDestroy", 4000, (void *)cuEventDestroy_v2, false},
    {"cuEventRecord", 2000, (void *)cuEventRecord, false},
    {"cuEventQuery", 2000, (void *)cuEventQuery, false},
    {"cuEventSynchronize", 2000, (void *)cuEventSynchronize, false},
    {"cuEventElapsedTime", 2000, (void *)cuEventElapsedTime, true},
    {"cuMemGetInfo", 3020, (void *)cuMemGetInfo_v2, true},
    {"cuMemAlloc", 3020, (void *)cuMemAlloc_v2, false},
    {"cuMemFree", 3020, (void *)cuMemFree_v2, false},
    {"cuMemHostRegister", 6050, (void *)cuMemHostRegister_v2, false},
    {"cuMemHostUnregister", 4000, (void *)cuMemHostUnregister, false},
    {"cuMemHostGetDevicePointer", 3020, (void *)cuMemHostGetDevicePointer_v2, false},
    {"cuMemGetAddressRange", 3020, (void *)cuMemGetAddressRange_v2, false},
    {"cuMemGetHandleForAddressRange", 11070, (void *)cuMemGetHandleForAddressRange, true},
    {"cuPointerGetAttribute", 4000, (void *)cuPointerGetAttribute, false},
    {"cuPointerGetAttributes", 7000, (void *)cuPointerGetAttributes, false},
    {"cuMemcpyHtoDAsync", 3020, (void *)cuMemcpyHtoDAsync_v2, false},
    {"cuMemcpyDtoHAsync", 3020, (void *)cuMemcpyDtoHAsync_v2, false},
    {"cuMemcpyDtoDAsync", 3020, (void *)cuMemcpyDtoDAsync_v2, false},
    {"cuMemcpyPeerAsync", 4000, (void *)cuMemcpyPeerAsync, false},
    {"cuMemcpy", 4000, (void *)cuMemcpy, false},
    {"cuMemcpyBatchAsync", 12080, (void *)cuMemcpyBatchAsync, true},
    {"cuMemcpyBatchAsync", 13000, (void *)cuMemcpyBatchAsync_v2, true},
    {"cuModuleLoadData", 2000, (void *)cuModuleLoadData, true},
    {"cuModuleUnload", 2000, (void *)cuModuleUnload, true},
    {"cuModuleGetFunction", 2000, (void *)cuModuleGetFunction, true},
    {"cuLaunchKernel", 4000, (void *)cuLaunchKernel, true},
};
#define SYMBOLS (sizeof(symbols) / sizeof(symbols[0]))

bool emu_is_symbol(const char *name)
{
    for (size_t i = 0; i < SYMBOLS; i++)
        if (strcmp(symbols[i].name, name) == 0)
            return true;
    return false;
}

/* The youngest prototype that a caller of `version` knows. Not finding one is no error, but leaves NULL. */
emu_result cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags, unsigned int *status)
{
    const char *old = getenv("WEFT_EMULATED_OLD"); /* comes before cuInit */
    bool is_old = old && strcmp(old, "1") == 0;
    const struct symbol *found = NULL;
    bool known = false;

    if (!symbol || !function || flags > 2)
        return EMU_INVALID_VALUE;
    for (size_t i = 0; i < SYMBOLS; i++) {
        if (strcmp(symbols[i].name, symbol) != 0 || (is_old && symbols[i].optional))
            continue;
        known = true;
        if (version >= symbols[i].version)
            found = &symbols[i];
    }
    *function = found ? found->function : NULL;
    if (status)
        *status = found ? EMU_SYMBOL_FOUND : known ? EMU_SYMBOL_VERSION_NOT_SUFFICIENT : EMU_SYMBOL_NOT_FOUND;
    return EMU_OK;
}

/* Those that are given here, and some that a fault may be told to give. */
static const struct {
    emu_result error;
    const char *name, *text;
} errors[] = {
    {EMU_OK, "CUDA_SUCCESS", "no error"},
    {EMU_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {EMU_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {EMU_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {EMU_DEVICE_UNAVAILABLE, "CUDA_ERROR_DEVICE_UNAVAILABLE", "the device is unavailable"},
    {EMU_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "there is no device"},
    {EMU_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "there is no such device"},
    {EMU_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "no context is current, or it is none"},
    {EMU_NO_BINARY_FOR_GPU, "CUDA_ERROR_NO_BINARY_FOR_GPU", "the image holds no code for the device"},
    {EMU_ECC_UNCORRECTABLE, "CUDA_ERROR_ECC_UNCORRECTABLE", "an error in memory that could not be corrected"},
    {220, "CUDA_ERROR_NVLINK_UNCORRECTABLE", "an error of NVLink that could not be corrected"},
    {226, "CUDA_ERROR_CONTAINED", "an error that was contained to the process"},
    {EMU_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid handle"},
    {EMU_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "not found"},
    {EMU_NOT_READY, "CUDA_ERROR_NOT_READY", "not done yet"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an address that is not the program's"},
    {702, "CUDA_ERROR_LAUNCH_TIMEOUT", "the launch took too long"},
    {EMU_PEER_ACCESS_ALREADY_ENABLED, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "peer access was enabled before"},
    {EMU_CONTEXT_IS_DESTROYED, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "the context has been destroyed"},
    {EMU_HOST_MEMORY_ALREADY_REGISTERED, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", "registered before"},
    {EMU_HOST_MEMORY_NOT_REGISTERED, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", "not registered"},
    {EMU_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {EMU_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "not supported"},
    {EMU_STREAM_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "not while a stream is captured"},
    {EMU_STREAM_CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "the capture was spoilt before"},
    {EMU_STREAM_CAPTURE_IMPLICIT, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", "the default stream depends on a capture"},
    {EMU_CAPTURED_EVENT, "CUDA_ERROR_CAPTURED_EVENT", "the event was recorded in a stream that is captured"},
    {911, "CUDA_ERROR_EXTERNAL_DEVICE", "an error of a device outside of CUDA"},
    {EMU_UNKNOWN, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

static const char *describe(emu_result error, bool name)
{
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
        if (errors[i].error == error)
            return name ? errors[i].name : errors[i].text;
    return NULL;
}

emu_result cuGetErrorName(emu_result error, const char **text)
{
    if (!text)
        return EMU_INVALID_VALUE;
    *text = describe(error, true);
    return *text ? EMU_OK : EMU_INVALID_VALUE;
}

emu_result cuGetErrorString(emu_result error, const char **text)
{
    if (!text)
        return EMU_INVALID_VALUE;
    *text = describe(error, false);
    return *text ? EMU_OK : EMU_INVALID_VALUE;
}
