/*
 * cuda_kernels.h: the kernels of kernels.cu, on one device. A build without nvcc has none, and a driver may refuse them
 * (it is older than nvcc, or emulated). Kernels only make gathering faster: without them each piece is one copy.
 */
#ifndef WF_MEM_CUDA_KERNELS_H
#define WF_MEM_CUDA_KERNELS_H

#include <stdbool.h>

#include "mem/cuda_api.h"
#include "mem/kernel_types.h"

/* Owner: the device. Constant once loaded. */
struct wf_cuda_kernels {
    wf_cu_module module; /* NULL: none */
    wf_cu_function gather;
    wf_cu_function scatter;
    wf_cu_function sum[WF_NUMBERS];
};

/* Does this build have kernels? */
bool wf_cuda_kernels_built(void);

/*
 * All calls: the device's context must be current. A call that launches does not wait: the memory of its arguments must
 * stay until the stream has run the kernel.
 */

/* Loads all or none; returns the driver's result. WF_CU_NOT_SUPPORTED: the build has none, or the driver loads none. */
wf_cu_result wf_cuda_kernels_load(const struct wf_cuda_api *api, struct wf_cuda_kernels *out);
/* Does nothing if no kernel is loaded. */
void wf_cuda_kernels_unload(const struct wf_cuda_api *api, struct wf_cuda_kernels *kernels);

/*
 * Each call is one launch. Its result is equal, bit by bit, to that of tests/support/kernel_reference.c:
 *
 *     gather: to[offset, offset + bytes) = from[0, bytes) of each piece;  scatter: the reverse
 *     sum:    to[i] = to[i] + from[i], rounded to the nearest, ties to even
 *
 * `pieces`: memory that the device reads; `longest`: bytes of the longest piece.
 */
wf_cu_result wf_cuda_gather(const struct wf_cuda_api *api, const struct wf_cuda_kernels *kernels, wf_cu_stream stream,
                            wf_cu_memory to, wf_cu_memory pieces, unsigned int count, uint64_t longest);
wf_cu_result wf_cuda_scatter(const struct wf_cuda_api *api, const struct wf_cuda_kernels *kernels, wf_cu_stream stream,
                             wf_cu_memory from, wf_cu_memory pieces, unsigned int count, uint64_t longest);
wf_cu_result wf_cuda_sum(const struct wf_cuda_api *api, const struct wf_cuda_kernels *kernels, wf_cu_stream stream,
                         enum wf_number type, wf_cu_memory to, wf_cu_memory from, uint64_t count);

#endif
