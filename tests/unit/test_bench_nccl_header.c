/* Our declarations of NCCL against its own header, at compile time, where that is installed; else skipped. */
#include <stddef.h>
#include <stdio.h>

#ifdef NCCL_HEADER
#include <nccl.h>

#define NCCL_OWN_TYPES
typedef ncclResult_t nccl_result;
typedef ncclDataType_t nccl_type;
typedef ncclRedOp_t nccl_op;
typedef ncclUniqueId nccl_id;
typedef ncclComm_t nccl_comm;
typedef cudaStream_t nccl_stream;
#include "bench/backends/nccl/library.h"

#define SAME_AS_DECLARED(name, arguments)                                                                              \
    _Static_assert(__builtin_types_compatible_p(ncclResult_t arguments, __typeof__(nccl##name)), "nccl" #name);
NCCL_FUNCTIONS(SAME_AS_DECLARED)
_Static_assert(__builtin_types_compatible_p(const char *(ncclResult_t), __typeof__(ncclGetErrorString)), "names");
_Static_assert(__builtin_types_compatible_p(const char *(ncclComm_t), __typeof__(ncclGetLastError)), "last");

/* What we take for int has its size; a communicator and a stream are pointers. */
_Static_assert(sizeof(ncclResult_t) == sizeof(int) && sizeof(ncclDataType_t) == sizeof(int) &&
                   sizeof(ncclRedOp_t) == sizeof(int),
               "enumerations");
_Static_assert(sizeof(ncclUniqueId) == NCCL_ID_BYTES && _Alignof(ncclUniqueId) == 1, "the unique id");
_Static_assert(sizeof(ncclComm_t) == sizeof(void *) && sizeof(cudaStream_t) == sizeof(void *), "handles");
_Static_assert((int)ncclSuccess == NCCL_SUCCESS && (int)ncclUnhandledCudaError == NCCL_UNHANDLED_CUDA_ERROR &&
                   (int)ncclRemoteError == NCCL_REMOTE_ERROR && (int)ncclInProgress == NCCL_IN_PROGRESS,
               "results");
_Static_assert((int)ncclInt8 == NCCL_INT8 && (int)ncclUint8 == NCCL_UINT8 && (int)ncclInt32 == NCCL_INT32 &&
                   (int)ncclInt64 == NCCL_INT64 && (int)ncclFloat16 == NCCL_FLOAT16 &&
                   (int)ncclFloat32 == NCCL_FLOAT32 && (int)ncclFloat64 == NCCL_FLOAT64 &&
                   (int)ncclBfloat16 == NCCL_BFLOAT16,
               "types");
_Static_assert((int)ncclSum == NCCL_SUM && (int)ncclMax == NCCL_MAX && (int)ncclMin == NCCL_MIN &&
                   (int)ncclAvg == NCCL_AVG,
               "reductions");

int main(void)
{
    printf("compared with nccl.h of NCCL %d.%d.%d\n", NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH);
    return 0;
}
#else
int main(void)
{
    printf("skipped: no nccl.h and cuda_runtime.h where this was built\n");
    return 77;
}
#endif
