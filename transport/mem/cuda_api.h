/*
 * cuda_api.h: the part of the CUDA driver's binary interface that Weft uses, in Weft's own types: a build needs neither
 * CUDA's headers nor its libraries. tests/unit/cuda_prototypes_test.sh compares each prototype and structure with the
 * real headers if they are installed.
 *
 * The list has every function once: its name, the version of CUDA that has this prototype (cuGetProcAddress returns the
 * function with the prototype of that version), whether Weft can work without it, and its parameters.
 */
#ifndef WF_MEM_CUDA_API_H
#define WF_MEM_CUDA_API_H

#include <stddef.h>
#include <stdint.h>

typedef unsigned int wf_cu_result;       /* WF_CU_SUCCESS or an error */
typedef int wf_cu_device;                /* a handle, from an ordinal */
typedef unsigned long long wf_cu_memory; /* an address of device memory */
typedef struct CUctx_st *wf_cu_context;
typedef struct CUstream_st *wf_cu_stream; /* NULL: the default stream of the current context */
typedef struct CUevent_st *wf_cu_event;
typedef struct CUmod_st *wf_cu_module;
typedef struct CUfunc_st *wf_cu_function;

/* Results that the code tests. All other results only become text for a person. */
enum {
    WF_CU_SUCCESS = 0,
    WF_CU_INVALID_VALUE = 1,
    WF_CU_OUT_OF_MEMORY = 2,
    WF_CU_DEVICE_UNAVAILABLE = 46, /* taken by another process in exclusive mode, or gone */
    WF_CU_NO_DEVICE = 100,
    WF_CU_INVALID_CONTEXT = 201,
    WF_CU_NOT_READY = 600,
    WF_CU_ALREADY_REGISTERED = 712,
    WF_CU_NOT_SUPPORTED = 801,
    WF_CU_CAPTURE_IMPLICIT = 906, /* the default stream cannot be used while a stream that waits for it is captured */
};

enum {
    WF_CU_STREAM_NON_BLOCKING = 1,
    WF_CU_EVENT_DISABLE_TIMING = 2,
    WF_CU_REGISTER_PORTABLE = 1,
    WF_CU_REGISTER_MAPPED = 2, /* devices may use the memory, at the address of cuMemHostGetDevicePointer */
    WF_CU_WAIT_VALUE_GEQ = 0,  /* cyclic: the signed difference is not negative */
    WF_CU_HANDLE_DMA_BUF_FD = 1,
    WF_CU_RANGE_OVER_PCIE = 1, /* a flag of cuMemGetHandleForAddressRange, since 12.8 */
    WF_CU_ACCESS_ORDER_STREAM = 1,
    WF_CU_CAPTURE_RELAXED = 2,     /* a thread's mode: captures of other threads do not restrict it */
    WF_CU_CAPTURE_STATUS_NONE = 0, /* a stream's state */
};

/* Attributes of a device (cuDeviceGetAttribute). */
enum { WF_CU_DEVICE_DMA_BUF_SUPPORTED = 124 };

/* Attributes of an address (cuPointerGetAttributes), each with the type of its value. */
enum {
    WF_CU_POINTER_CONTEXT = 1,        /* wf_cu_context; NULL for memory without a context: pools, mappings */
    WF_CU_POINTER_MEMORY_TYPE = 2,    /* unsigned: WF_CU_MEMORY_...; 0: not CUDA's */
    WF_CU_POINTER_BUFFER_ID = 7,      /* uint64_t */
    WF_CU_POINTER_IS_MANAGED = 8,     /* unsigned */
    WF_CU_POINTER_DEVICE_ORDINAL = 9, /* int */
    WF_CU_POINTER_RANGE_START = 11,   /* wf_cu_memory; for reserved addresses, the start of the reservation */
    WF_CU_POINTER_RANGE_SIZE = 12,    /* size_t */
    WF_CU_POINTER_BLOCK_ID = 20,      /* uint64_t; of the physical memory behind a mapping */
};
enum { WF_CU_MEMORY_HOST = 1, WF_CU_MEMORY_DEVICE = 2 };

/* The layout of struct CUmemcpyAttributes_st. */
struct wf_cu_copy_attributes {
    unsigned int source_order;
    unsigned int source_kind;
    int source_id;
    unsigned int destination_kind;
    int destination_id;
    unsigned int flags;
};

/* X(name, version, need, parameters): `need` is REQUIRED or OPTIONAL. */
#define WF_CUDA_FUNCTIONS(X)                                                                                           \
    X(cuInit, 2000, REQUIRED, (unsigned int flags))                                                                    \
    X(cuGetErrorName, 6000, REQUIRED, (wf_cu_result error, const char **name))                                         \
    X(cuGetErrorString, 6000, REQUIRED, (wf_cu_result error, const char **text))                                       \
    X(cuDriverGetVersion, 2020, REQUIRED, (int *version))                                                              \
    X(cuDeviceGetCount, 2000, REQUIRED, (int *count))                                                                  \
    X(cuDeviceGet, 2000, REQUIRED, (wf_cu_device * device, int ordinal))                                               \
    X(cuDeviceGetName, 2000, REQUIRED, (char *name, int length, wf_cu_device device))                                  \
    X(cuDeviceTotalMem, 3020, REQUIRED, (size_t * bytes, wf_cu_device device))                                         \
    X(cuDeviceGetPCIBusId, 4010, REQUIRED, (char *text, int length, wf_cu_device device))                              \
    X(cuDeviceGetAttribute, 2000, REQUIRED, (int *value, unsigned int attribute, wf_cu_device device))                 \
    X(cuDevicePrimaryCtxRetain, 7000, REQUIRED, (wf_cu_context * context, wf_cu_device device))                        \
    X(cuDevicePrimaryCtxRelease, 11000, REQUIRED, (wf_cu_device device))                                               \
    X(cuCtxPushCurrent, 4000, REQUIRED, (wf_cu_context context))                                                       \
    X(cuCtxPopCurrent, 4000, REQUIRED, (wf_cu_context * context))                                                      \
    X(cuStreamCreate, 2000, REQUIRED, (wf_cu_stream * stream, unsigned int flags))                                     \
    X(cuStreamDestroy, 4000, REQUIRED, (wf_cu_stream stream))                                                          \
    X(cuStreamSynchronize, 2000, REQUIRED, (wf_cu_stream stream))                                                      \
    X(cuStreamWaitValue32, 11070, OPTIONAL,                                                                            \
      (wf_cu_stream stream, wf_cu_memory address, uint32_t value, unsigned int flags))                                 \
    X(cuStreamIsCapturing, 10000, REQUIRED, (wf_cu_stream stream, unsigned int *state))                                \
    X(cuThreadExchangeStreamCaptureMode, 10010, REQUIRED, (unsigned int *mode))                                        \
    X(cuEventCreate, 2000, REQUIRED, (wf_cu_event * event, unsigned int flags))                                        \
    X(cuEventDestroy, 4000, REQUIRED, (wf_cu_event event))                                                             \
    X(cuEventRecord, 2000, REQUIRED, (wf_cu_event event, wf_cu_stream stream))                                         \
    X(cuEventQuery, 2000, REQUIRED, (wf_cu_event event))                                                               \
    X(cuEventElapsedTime, 2000, OPTIONAL, (float *milliseconds, wf_cu_event from, wf_cu_event to))                     \
    X(cuMemGetInfo, 3020, OPTIONAL, (size_t * free_bytes, size_t * all_bytes))                                         \
    X(cuMemAlloc, 3020, REQUIRED, (wf_cu_memory * memory, size_t bytes))                                               \
    X(cuMemFree, 3020, REQUIRED, (wf_cu_memory memory))                                                                \
    X(cuMemHostRegister, 6050, REQUIRED, (void *base, size_t bytes, unsigned int flags))                               \
    X(cuMemHostUnregister, 4000, REQUIRED, (void *base))                                                               \
    X(cuMemHostGetDevicePointer, 3020, REQUIRED, (wf_cu_memory * address, void *base, unsigned int flags))             \
    X(cuMemcpyHtoDAsync, 3020, REQUIRED, (wf_cu_memory to, const void *from, size_t bytes, wf_cu_stream stream))       \
    X(cuMemcpyDtoHAsync, 3020, REQUIRED, (void *to, wf_cu_memory from, size_t bytes, wf_cu_stream stream))             \
    X(cuMemcpyDtoDAsync, 3020, REQUIRED, (wf_cu_memory to, wf_cu_memory from, size_t bytes, wf_cu_stream stream))      \
    X(cuMemcpyPeerAsync, 4000, REQUIRED,                                                                               \
      (wf_cu_memory to, wf_cu_context to_context, wf_cu_memory from, wf_cu_context from_context, size_t bytes,         \
       wf_cu_stream stream))                                                                                           \
    X(cuMemcpyBatchAsync, 12080, OPTIONAL,                                                                             \
      (wf_cu_memory * to, wf_cu_memory * from, size_t * bytes, size_t count,                                           \
       struct CUmemcpyAttributes_st * attributes, size_t * firsts, size_t attribute_count, size_t * failed,            \
       wf_cu_stream stream))                                                                                           \
    X(cuPointerGetAttributes, 7000, REQUIRED,                                                                          \
      (unsigned int count, unsigned int *attributes, void **values, wf_cu_memory address))                             \
    X(cuMemGetAddressRange, 3020, REQUIRED, (wf_cu_memory * base, size_t * bytes, wf_cu_memory address))               \
    X(cuMemGetHandleForAddressRange, 11070, OPTIONAL,                                                                  \
      (void *handle, wf_cu_memory base, size_t bytes, unsigned int type, unsigned long long flags))                    \
    X(cuDeviceCanAccessPeer, 4000, REQUIRED, (int *able, wf_cu_device device, wf_cu_device peer))                      \
    X(cuCtxEnablePeerAccess, 4000, REQUIRED, (wf_cu_context peer, unsigned int flags))                                 \
    X(cuModuleLoadData, 2000, OPTIONAL, (wf_cu_module * module, const void *image))                                    \
    X(cuModuleUnload, 2000, OPTIONAL, (wf_cu_module module))                                                           \
    X(cuModuleGetFunction, 2000, OPTIONAL, (wf_cu_function * function, wf_cu_module module, const char *name))         \
    X(cuFuncLoad, 12040, OPTIONAL, (wf_cu_function function))                                                          \
    X(cuLaunchKernel, 4000, OPTIONAL,                                                                                  \
      (wf_cu_function function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z, unsigned int block_x,   \
       unsigned int block_y, unsigned int block_z, unsigned int shared_bytes, wf_cu_stream stream, void **parameters,  \
       void **extra))

struct CUmemcpyAttributes_st;

/* The functions, by their names. An OPTIONAL function may be NULL. */
struct wf_cuda_api {
#define WF_CUDA_MEMBER(name, version, need, parameters) wf_cu_result(*name) parameters;
    WF_CUDA_FUNCTIONS(WF_CUDA_MEMBER)
#undef WF_CUDA_MEMBER
};

/* The only function that is looked up in the library by name. */
typedef wf_cu_result (*wf_cu_get_proc_address)(const char *name, void **function, int version, uint64_t flags,
                                               unsigned int *found);
#define WF_CUDA_GET_PROC_ADDRESS "cuGetProcAddress_v2"

#endif
