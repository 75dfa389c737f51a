/*
 * driver.h: the driver's functions as cuda.h declares them, without cuda.h. Handles have its tags, so that a compiler
 * that sees both headers compares every prototype (tests/support/cuda/prototypes.c). Enumerations are unsigned int, as
 * their compatible type is.
 */
#ifndef WEFT_TESTS_CUDA_DRIVER_H
#define WEFT_TESTS_CUDA_DRIVER_H

#include <stddef.h>
#include <stdint.h>

#include "emulated.h"

struct CUctx_st;
struct CUevent_st;
struct CUfunc_st;
struct CUgraph_st;
struct CUmemcpyAttributes_st;
struct CUmod_st;
struct CUstream_st;
struct CUuuid_st;

typedef unsigned int emu_result;
typedef unsigned long long emu_pointer;

enum {
    EMU_OK = 0,
    EMU_INVALID_VALUE = 1,
    EMU_OUT_OF_MEMORY = 2,
    EMU_NOT_INITIALIZED = 3,
    EMU_DEVICE_UNAVAILABLE = 46,
    EMU_NO_DEVICE = 100,
    EMU_INVALID_DEVICE = 101,
    EMU_INVALID_CONTEXT = 201,
    EMU_NO_BINARY_FOR_GPU = 209,
    EMU_ECC_UNCORRECTABLE = 214,
    EMU_INVALID_HANDLE = 400,
    EMU_NOT_FOUND = 500,
    EMU_NOT_READY = 600,
    EMU_PEER_ACCESS_ALREADY_ENABLED = 704,
    EMU_CONTEXT_IS_DESTROYED = 709,
    EMU_HOST_MEMORY_ALREADY_REGISTERED = 712,
    EMU_HOST_MEMORY_NOT_REGISTERED = 713,
    EMU_LAUNCH_FAILED = 719,
    EMU_NOT_SUPPORTED = 801,
    EMU_STREAM_CAPTURE_UNSUPPORTED = 900,
    EMU_STREAM_CAPTURE_INVALIDATED = 901,
    EMU_STREAM_CAPTURE_IMPLICIT = 906,
    EMU_CAPTURED_EVENT = 907,
    EMU_UNKNOWN = 999,
};

/* A thread's mode, and a stream's state. */
enum { EMU_CAPTURE_GLOBAL = 0, EMU_CAPTURE_THREAD_LOCAL = 1, EMU_CAPTURE_RELAXED = 2 };
enum { EMU_CAPTURE_NONE = 0, EMU_CAPTURE_ACTIVE = 1, EMU_CAPTURE_INVALIDATED = 2 };

enum {
    EMU_MEMORYTYPE_HOST = 1,
    EMU_MEMORYTYPE_DEVICE = 2,
    EMU_STREAM_NON_BLOCKING = 1,
    EMU_NO_TIMING = 2,
    EMU_REGISTER_PORTABLE = 1,
    EMU_REGISTER_MAPPED = 2,
    EMU_HANDLE_DMA_BUF_FD = 1,
    EMU_RANGE_OVER_PCIE = 1,
    EMU_WAIT_GEQ = 0,
    EMU_WAIT_EQ = 1,
    EMU_WAIT_AND = 2,
    EMU_WAIT_NOR = 3,
    EMU_SYMBOL_FOUND = 0,
    EMU_SYMBOL_NOT_FOUND = 1,
    EMU_SYMBOL_VERSION_NOT_SUFFICIENT = 2,
    EMU_SOURCE_IN_STREAM_ORDER = 1,
    EMU_SOURCE_DURING_CALL = 2,
    EMU_SOURCE_ANY = 3,
};

enum {
    EMU_POINTER_CONTEXT = 1,
    EMU_POINTER_MEMORY_TYPE = 2,
    EMU_POINTER_DEVICE_POINTER = 3,
    EMU_POINTER_HOST_POINTER = 4,
    EMU_POINTER_SYNC_MEMOPS = 6,
    EMU_POINTER_BUFFER_ID = 7,
    EMU_POINTER_IS_MANAGED = 8,
    EMU_POINTER_DEVICE_ORDINAL = 9,
    EMU_POINTER_IS_LEGACY_IPC_CAPABLE = 10,
    EMU_POINTER_RANGE_START = 11,
    EMU_POINTER_RANGE_SIZE = 12,
    EMU_POINTER_MAPPED = 13,
    EMU_POINTER_ALLOWED_HANDLE_TYPES = 14,
    EMU_POINTER_IS_GPU_DIRECT_RDMA_CAPABLE = 15,
    EMU_POINTER_ACCESS_FLAGS = 16,
    EMU_POINTER_MEMPOOL_HANDLE = 17,
    EMU_POINTER_MAPPING_SIZE = 18,
    EMU_POINTER_MAPPING_BASE = 19,
    EMU_POINTER_BLOCK_ID = 20,
    EMU_POINTER_IS_HW_DECOMPRESS_CAPABLE = 21,
};

#define EMU_API WEFT_EMULATED_EXPORT

EMU_API emu_result cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags,
                                       unsigned int *status);
EMU_API emu_result cuInit(unsigned int flags);
EMU_API emu_result cuDriverGetVersion(int *version);
EMU_API emu_result cuGetErrorName(emu_result error, const char **text);
EMU_API emu_result cuGetErrorString(emu_result error, const char **text);

EMU_API emu_result cuDeviceGetCount(int *count);
EMU_API emu_result cuDeviceGet(int *device, int ordinal);
EMU_API emu_result cuDeviceGetName(char *name, int length, int device);
EMU_API emu_result cuDeviceTotalMem_v2(size_t *bytes, int device);
EMU_API emu_result cuDeviceGetPCIBusId(char *address, int length, int device);
EMU_API emu_result cuDeviceGetAttribute(int *value, unsigned int attribute, int device);
EMU_API emu_result cuDeviceGetUuid_v2(struct CUuuid_st *uuid, int device);
EMU_API emu_result cuDeviceCanAccessPeer(int *can, int device, int peer);

EMU_API emu_result cuDevicePrimaryCtxRetain(struct CUctx_st **context, int device);
EMU_API emu_result cuDevicePrimaryCtxRelease_v2(int device);
EMU_API emu_result cuCtxPushCurrent_v2(struct CUctx_st *context);
EMU_API emu_result cuCtxPopCurrent_v2(struct CUctx_st **context);
EMU_API emu_result cuCtxGetCurrent(struct CUctx_st **context);
EMU_API emu_result cuCtxSetCurrent(struct CUctx_st *context);
EMU_API emu_result cuCtxGetDevice(int *device);
EMU_API emu_result cuCtxSynchronize(void);
EMU_API emu_result cuCtxEnablePeerAccess(struct CUctx_st *peer, unsigned int flags);

EMU_API emu_result cuStreamCreate(struct CUstream_st **stream, unsigned int flags);
EMU_API emu_result cuStreamDestroy_v2(struct CUstream_st *stream);
EMU_API emu_result cuStreamQuery(struct CUstream_st *stream);
EMU_API emu_result cuStreamSynchronize(struct CUstream_st *stream);
EMU_API emu_result cuStreamWaitEvent(struct CUstream_st *stream, struct CUevent_st *event, unsigned int flags);
EMU_API emu_result cuStreamWaitValue32_v2(struct CUstream_st *stream, emu_pointer address, uint32_t value,
                                          unsigned int flags);
EMU_API emu_result cuThreadExchangeStreamCaptureMode(unsigned int *wanted);
EMU_API emu_result cuStreamIsCapturing(struct CUstream_st *stream, unsigned int *state);
EMU_API emu_result cuStreamBeginCapture_v2(struct CUstream_st *stream, unsigned int wanted);
EMU_API emu_result cuStreamEndCapture(struct CUstream_st *stream, struct CUgraph_st **graph);
EMU_API emu_result cuEventCreate(struct CUevent_st **event, unsigned int flags);
EMU_API emu_result cuEventDestroy_v2(struct CUevent_st *event);
EMU_API emu_result cuEventRecord(struct CUevent_st *event, struct CUstream_st *stream);
EMU_API emu_result cuEventQuery(struct CUevent_st *event);
EMU_API emu_result cuEventSynchronize(struct CUevent_st *event);
EMU_API emu_result cuEventElapsedTime(float *milliseconds, struct CUevent_st *from, struct CUevent_st *to);

EMU_API emu_result cuMemGetInfo_v2(size_t *free_bytes, size_t *all_bytes);
EMU_API emu_result cuMemAlloc_v2(emu_pointer *address, size_t bytes);
EMU_API emu_result cuMemFree_v2(emu_pointer address);
EMU_API emu_result cuMemHostRegister_v2(void *base, size_t bytes, unsigned int flags);
EMU_API emu_result cuMemHostUnregister(void *base);
EMU_API emu_result cuMemHostGetDevicePointer_v2(emu_pointer *address, void *base, unsigned int flags);
EMU_API emu_result cuMemGetAddressRange_v2(emu_pointer *base, size_t *bytes, emu_pointer address);
EMU_API emu_result cuPointerGetAttribute(void *data, unsigned int attribute, emu_pointer address);
EMU_API emu_result cuPointerGetAttributes(unsigned int count, unsigned int *attributes, void **data,
                                          emu_pointer address);
EMU_API emu_result cuMemGetHandleForAddressRange(void *handle, emu_pointer address, size_t bytes, unsigned int type,
                                                 unsigned long long flags);

EMU_API emu_result cuMemcpyHtoDAsync_v2(emu_pointer to, const void *from, size_t bytes, struct CUstream_st *stream);
EMU_API emu_result cuMemcpyDtoHAsync_v2(void *to, emu_pointer from, size_t bytes, struct CUstream_st *stream);
EMU_API emu_result cuMemcpyDtoDAsync_v2(emu_pointer to, emu_pointer from, size_t bytes, struct CUstream_st *stream);
EMU_API emu_result cuMemcpyPeerAsync(emu_pointer to, struct CUctx_st *to_context, emu_pointer from,
                                     struct CUctx_st *from_context, size_t bytes, struct CUstream_st *stream);
EMU_API emu_result cuMemcpy(emu_pointer to, emu_pointer from, size_t bytes);
EMU_API emu_result cuMemcpyBatchAsync(emu_pointer *to, emu_pointer *from, size_t *bytes, size_t count,
                                      struct CUmemcpyAttributes_st *attributes, size_t *indices, size_t attribute_count,
                                      size_t *failed, struct CUstream_st *stream);
EMU_API emu_result cuMemcpyBatchAsync_v2(emu_pointer *to, emu_pointer *from, size_t *bytes, size_t count,
                                         struct CUmemcpyAttributes_st *attributes, size_t *indices,
                                         size_t attribute_count, struct CUstream_st *stream);

EMU_API emu_result cuModuleLoadData(struct CUmod_st **module, const void *image);
EMU_API emu_result cuModuleUnload(struct CUmod_st *module);
EMU_API emu_result cuModuleGetFunction(struct CUfunc_st **function, struct CUmod_st *module, const char *name);
EMU_API emu_result cuLaunchKernel(struct CUfunc_st *function, unsigned int grid_x, unsigned int grid_y,
                                  unsigned int grid_z, unsigned int block_x, unsigned int block_y, unsigned int block_z,
                                  unsigned int shared_bytes, struct CUstream_st *stream, void **arguments,
                                  void **extra);

#endif
