/* Compiled, never run: each type, value and prototype of mem/cuda_api.h is what the headers of CUDA say. */
#include <cuda.h>
#include <cudaTypedefs.h>

#include "mem/cuda_api.h"

#define CHECK(name, version, need, parameters)                                                                         \
    void check_##name(PFN_##name##_v##version theirs);                                                                 \
    void check_##name(PFN_##name##_v##version theirs)                                                                  \
    {                                                                                                                  \
        wf_cu_result(*ours) parameters = theirs;                                                                       \
        (void)ours;                                                                                                    \
    }
WF_CUDA_FUNCTIONS(CHECK)

void check_get_proc_address(PFN_cuGetProcAddress_v12000 theirs);
void check_get_proc_address(PFN_cuGetProcAddress_v12000 theirs)
{
    wf_cu_get_proc_address ours = theirs;
    (void)ours;
}

#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #ours)
SAME(WF_CU_SUCCESS, CUDA_SUCCESS);
SAME(WF_CU_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE);
SAME(WF_CU_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
SAME(WF_CU_DEVICE_UNAVAILABLE, CUDA_ERROR_DEVICE_UNAVAILABLE);
SAME(WF_CU_NO_DEVICE, CUDA_ERROR_NO_DEVICE);
SAME(WF_CU_INVALID_CONTEXT, CUDA_ERROR_INVALID_CONTEXT);
SAME(WF_CU_NOT_READY, CUDA_ERROR_NOT_READY);
SAME(WF_CU_ALREADY_REGISTERED, CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
SAME(WF_CU_NOT_SUPPORTED, CUDA_ERROR_NOT_SUPPORTED);
SAME(WF_CU_CAPTURE_IMPLICIT, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
SAME(WF_CU_CAPTURE_RELAXED, CU_STREAM_CAPTURE_MODE_RELAXED);
SAME(WF_CU_CAPTURE_STATUS_NONE, CU_STREAM_CAPTURE_STATUS_NONE);
SAME(WF_CU_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING);
SAME(WF_CU_EVENT_DISABLE_TIMING, CU_EVENT_DISABLE_TIMING);
SAME(WF_CU_REGISTER_PORTABLE, CU_MEMHOSTREGISTER_PORTABLE);
SAME(WF_CU_REGISTER_MAPPED, CU_MEMHOSTREGISTER_DEVICEMAP);
SAME(WF_CU_WAIT_VALUE_GEQ, CU_STREAM_WAIT_VALUE_GEQ);
SAME(WF_CU_HANDLE_DMA_BUF_FD, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD);
#if CUDA_VERSION >= 12080
SAME(WF_CU_RANGE_OVER_PCIE, CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE);
#endif
SAME(WF_CU_ACCESS_ORDER_STREAM, CU_MEMCPY_SRC_ACCESS_ORDER_STREAM);
SAME(WF_CU_DEVICE_DMA_BUF_SUPPORTED, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED);
SAME(WF_CU_POINTER_CONTEXT, CU_POINTER_ATTRIBUTE_CONTEXT);
SAME(WF_CU_POINTER_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
SAME(WF_CU_POINTER_BUFFER_ID, CU_POINTER_ATTRIBUTE_BUFFER_ID);
SAME(WF_CU_POINTER_BLOCK_ID, CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID);
SAME(WF_CU_POINTER_IS_MANAGED, CU_POINTER_ATTRIBUTE_IS_MANAGED);
SAME(WF_CU_POINTER_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
SAME(WF_CU_POINTER_RANGE_START, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR);
SAME(WF_CU_POINTER_RANGE_SIZE, CU_POINTER_ATTRIBUTE_RANGE_SIZE);
SAME(WF_CU_MEMORY_HOST, CU_MEMORYTYPE_HOST);
SAME(WF_CU_MEMORY_DEVICE, CU_MEMORYTYPE_DEVICE);

#define SAME_PLACE(ours, theirs)                                                                                       \
    SAME(offsetof(struct wf_cu_copy_attributes, ours), offsetof(struct CUmemcpyAttributes_st, theirs))
SAME(sizeof(struct wf_cu_copy_attributes), sizeof(struct CUmemcpyAttributes_st));
SAME_PLACE(source_order, srcAccessOrder);
SAME_PLACE(source_kind, srcLocHint.type);
SAME_PLACE(source_id, srcLocHint.id);
SAME_PLACE(destination_kind, dstLocHint.type);
SAME_PLACE(destination_id, dstLocHint.id);
SAME_PLACE(flags, flags);

/* The sources of the kernels and of their launches share these numbers. */
SAME(sizeof(CUdeviceptr), sizeof(wf_cu_memory));
SAME(sizeof(CUdevice), sizeof(wf_cu_device));
