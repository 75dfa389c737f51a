/* As cuda_fp16.h beside it. */
#ifndef WEFT_TESTS_KERNELS_ON_HOST_BF16_H
#define WEFT_TESTS_KERNELS_ON_HOST_BF16_H

#include "cuda_fp16.h"

struct __nv_bfloat16 {
    uint16_t bits;
};

static inline float __bfloat162float(__nv_bfloat16 value)
{
    return wf_bfloat16_to_float32(value.bits);
}

static inline __nv_bfloat16 __float2bfloat16_rn(float value)
{
    return {wf_float32_to_bfloat16(value)};
}

#endif
