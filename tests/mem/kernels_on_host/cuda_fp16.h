/*
 * In place of CUDA's header of this name: what transport/mem/kernels.cu needs so that a C++ compiler takes it. Its
 * threads share nothing and wait for nobody, so they may as well run one after the other.
 */
#ifndef WEFT_TESTS_KERNELS_ON_HOST_FP16_H
#define WEFT_TESTS_KERNELS_ON_HOST_FP16_H

#include <stdint.h>

extern "C" {
#include "kernel_reference.h"
}

#define __global__
#define __device__

struct place {
    unsigned int x, y, z;
};
static place threadIdx, blockIdx, blockDim, gridDim;

struct alignas(16) uint4 {
    unsigned int x, y, z, w;
};

struct __half {
    uint16_t bits;
};

static inline float __half2float(__half value)
{
    return wf_float16_to_float32(value.bits);
}

static inline __half __float2half_rn(float value)
{
    return {wf_float32_to_float16(value)};
}

#endif
