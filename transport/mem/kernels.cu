/*
 * kernels.cu: what GPUs compute for Weft. Built to a fatbin and embedded where nvcc is found; cuda_kernels.h says what
 * each does. Names and parameters are those that cuda_kernels.c launches.
 */
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

/* struct wf_gather_piece of kernel_types.h */
struct piece {
    uint64_t address;
    uint64_t offset;
    uint64_t bytes;
};

static const unsigned int slice_bytes = 8192; /* what a warp moves before it looks for more; a multiple of 16 */

/* One warp copies `bytes` in units of T, to which both addresses and `bytes` are aligned. Four loads of each lane are
 * under way before the first store: a single one would leave the memory waiting. */
template <typename T> static __device__ void move_units(char *to, const char *from, uint64_t bytes, unsigned int lane)
{
    T *target = (T *)to;
    const T *source = (const T *)from;
    uint64_t count = bytes / sizeof(T);
    uint64_t i = lane;

    for (; i + 96 < count; i += 128) {
        T a = source[i], b = source[i + 32], c = source[i + 64], d = source[i + 96];
        target[i] = a;
        target[i + 32] = b;
        target[i + 64] = c;
        target[i + 96] = d;
    }
    for (; i < count; i += 32)
        target[i] = source[i];
}

/* One warp copies `bytes` between any addresses: as wide as the two are aligned alike. */
static __device__ void move(char *to, const char *from, uint64_t bytes, unsigned int lane)
{
    uint64_t apart = (uint64_t)to ^ (uint64_t)from;
    unsigned int unit = apart & 3 ? 1 : apart & 15 ? 4 : 16;
    uint64_t head = (unit - ((uint64_t)to & (unit - 1))) & (unit - 1);

    if (head > bytes)
        head = bytes;
    uint64_t body = (bytes - head) & ~(uint64_t)(unit - 1);
    move_units<unsigned char>(to, from, head, lane);
    if (unit == 16)
        move_units<uint4>(to + head, from + head, body, lane);
    else if (unit == 4)
        move_units<unsigned int>(to + head, from + head, body, lane);
    else
        move_units<unsigned char>(to + head, from + head, body, lane);
    move_units<unsigned char>(to + head + body, from + head + body, bytes - head - body, lane);
}

/* Blocks of 32 by 8 threads, a warp a piece along x; along y the slices of long pieces. */
static __device__ void move_pieces(const piece *pieces, unsigned int count, char *contiguous, bool gather)
{
    unsigned int index = blockIdx.x * blockDim.y + threadIdx.y;

    if (index >= count)
        return;
    piece mine = pieces[index];
    char *apart = (char *)mine.address;
    char *place = contiguous + mine.offset;
    for (uint64_t at = (uint64_t)blockIdx.y * slice_bytes; at < mine.bytes; at += (uint64_t)gridDim.y * slice_bytes) {
        uint64_t bytes = mine.bytes - at < slice_bytes ? mine.bytes - at : slice_bytes;
        if (gather)
            move(place + at, apart + at, bytes, threadIdx.x);
        else
            move(apart + at, place + at, bytes, threadIdx.x);
    }
}

extern "C" __global__ void weft_gather(const piece *pieces, unsigned int count, char *to)
{
    move_pieces(pieces, count, to, true);
}

extern "C" __global__ void weft_scatter(const piece *pieces, unsigned int count, char *from)
{
    move_pieces(pieces, count, from, false);
}

static __device__ float add(float a, float b)
{
    return a + b;
}

static __device__ __half add(__half a, __half b)
{
    return __float2half_rn(__half2float(a) + __half2float(b));
}

static __device__ __nv_bfloat16 add(__nv_bfloat16 a, __nv_bfloat16 b)
{
    return __float2bfloat16_rn(__bfloat162float(a) + __bfloat162float(b));
}

/* Unsigned: its overflow is defined. */
static __device__ unsigned int add(unsigned int a, unsigned int b)
{
    return a + b;
}

/* Sixteen bytes at a time where both are aligned to that. */
template <typename T> static __device__ void sum(T *to, const T *from, uint64_t count)
{
    const unsigned int wide = 16 / sizeof(T);
    uint64_t first = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    uint64_t stride = (uint64_t)gridDim.x * blockDim.x;
    uint64_t vectors = (((uint64_t)to | (uint64_t)from) & 15) == 0 ? count / wide : 0;

    for (uint64_t i = first; i < vectors; i += stride) {
        uint4 a = ((uint4 *)to)[i], b = ((const uint4 *)from)[i];
        T *x = (T *)&a;
        const T *y = (const T *)&b;
#pragma unroll
        for (unsigned int k = 0; k < wide; k++)
            x[k] = add(x[k], y[k]);
        ((uint4 *)to)[i] = a;
    }
    for (uint64_t i = vectors * wide + first; i < count; i += stride)
        to[i] = add(to[i], from[i]);
}

extern "C" __global__ void weft_sum_float32(float *to, const float *from, uint64_t count)
{
    sum(to, from, count);
}

extern "C" __global__ void weft_sum_float16(__half *to, const __half *from, uint64_t count)
{
    sum(to, from, count);
}

extern "C" __global__ void weft_sum_bfloat16(__nv_bfloat16 *to, const __nv_bfloat16 *from, uint64_t count)
{
    sum(to, from, count);
}

extern "C" __global__ void weft_sum_int32(unsigned int *to, const unsigned int *from, uint64_t count)
{
    sum(to, from, count);
}
