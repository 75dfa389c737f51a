/*
 * kernels.h: the loops, which kernels_plain.c and kernels_avx2.c compile for their machines. Where WF_KERNELS_BODY is
 * defined, as the name of the table.
 */
#ifndef WF_COLL_KERNELS_H
#define WF_COLL_KERNELS_H

#include "collective/reduce/reduce.h"

typedef void wf_reduce_function(void *out, const void *left, const void *right, uint64_t count);
typedef void wf_divide_function(void *values, uint64_t count, uint32_t by);

struct wf_kernels {
    wf_reduce_function *reduce[WF_REDUCE_TYPES][WF_REDUCE_OPS];
    wf_divide_function *divide[WF_REDUCE_TYPES];
};

extern const struct wf_kernels wf_kernels_plain, wf_kernels_avx2;

#endif

#ifdef WF_KERNELS_BODY
#include "collective/reduce/numbers.h"

/* `out` is either input or apart from both: no turn of the loop needs another one. */
#ifdef __clang__
#pragma clang diagnostic ignored "-Wpass-failed" /* it says so of builds that optimise little */
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

#define LOOP(name, type, result)                                                                                       \
    static void name(void *to, const void *left, const void *right, uint64_t count)                                    \
    {                                                                                                                  \
        type *out = to;                                                                                                \
        const type *a = left, *b = right;                                                                              \
        INDEPENDENT                                                                                                    \
        for (uint64_t i = 0; i < count; i++)                                                                           \
            out[i] = (type)(result);                                                                                   \
    }

#define DIVIDE(name, type, result)                                                                                     \
    static void name(void *values, uint64_t count, uint32_t by)                                                        \
    {                                                                                                                  \
        type *v = values;                                                                                              \
        for (uint64_t i = 0; i < count; i++)                                                                           \
            v[i] = (type)(result);                                                                                     \
    }

/* Floats by their bits: in the order of `key` -0 comes before 0, and the NaN of either is the result. */
#define LESS_BITS(name, bits, key, magnitude, infinity, nan, relation)                                                 \
    static inline bits name##_one(bits a, bits b)                                                                      \
    {                                                                                                                  \
        key x = (key)(a ^ ((bits)((key)a >> (sizeof(key) * 8 - 1)) & (magnitude)));                                    \
        key y = (key)(b ^ ((bits)((key)b >> (sizeof(key) * 8 - 1)) & (magnitude)));                                    \
        bits best = x relation y ? a : b;                                                                              \
        return (((a & (magnitude)) > (infinity)) | ((b & (magnitude)) > (infinity))) ? (bits)(nan) : best;             \
    }                                                                                                                  \
    LOOP(name, bits, name##_one(a[i], b[i]))

#define HALF_SUM(a, b) wf_half_of_float(wf_float_of_half(a) + wf_float_of_half(b))
#define BFLOAT_SUM(a, b) wf_bfloat_of_float(wf_float_of_bfloat(a) + wf_float_of_bfloat(b))

LOOP(add_double, double, wf_double_clean(a[i] + b[i]))
LOOP(add_float, float, wf_float_clean(a[i] + b[i]))
LOOP(add_half, uint16_t, HALF_SUM(a[i], b[i]))
LOOP(add_bfloat, uint16_t, BFLOAT_SUM(a[i], b[i]))
LOOP(add_32, uint32_t, a[i] + b[i])
LOOP(add_64, uint64_t, a[i] + b[i])
LOOP(add_8, uint8_t, a[i] + b[i])

LESS_BITS(min_double, uint64_t, int64_t, UINT64_C(0x7FFFFFFFFFFFFFFF), UINT64_C(0x7FF0000000000000),
          UINT64_C(0x7FF8000000000000), <)
LESS_BITS(max_double, uint64_t, int64_t, UINT64_C(0x7FFFFFFFFFFFFFFF), UINT64_C(0x7FF0000000000000),
          UINT64_C(0x7FF8000000000000), >)
LESS_BITS(min_float, uint32_t, int32_t, 0x7FFFFFFFu, 0x7F800000u, 0x7FC00000u, <)
LESS_BITS(max_float, uint32_t, int32_t, 0x7FFFFFFFu, 0x7F800000u, 0x7FC00000u, >)
LESS_BITS(min_half, uint16_t, int16_t, 0x7FFF, 0x7C00, 0x7E00, <)
LESS_BITS(max_half, uint16_t, int16_t, 0x7FFF, 0x7C00, 0x7E00, >)
LESS_BITS(min_bfloat, uint16_t, int16_t, 0x7FFF, 0x7F80, 0x7FC0, <)
LESS_BITS(max_bfloat, uint16_t, int16_t, 0x7FFF, 0x7F80, 0x7FC0, >)
LOOP(min_32, int32_t, a[i] < b[i] ? a[i] : b[i])
LOOP(max_32, int32_t, a[i] > b[i] ? a[i] : b[i])
LOOP(min_64, int64_t, a[i] < b[i] ? a[i] : b[i])
LOOP(max_64, int64_t, a[i] > b[i] ? a[i] : b[i])
LOOP(min_8, uint8_t, a[i] < b[i] ? a[i] : b[i])
LOOP(max_8, uint8_t, a[i] > b[i] ? a[i] : b[i])

DIVIDE(divide_double, double, wf_double_clean(v[i] / (double)by))
DIVIDE(divide_float, float, wf_float_clean(v[i] / (float)by))
DIVIDE(divide_half, uint16_t, wf_half_of_float(wf_float_of_half(v[i]) / (float)by))
DIVIDE(divide_bfloat, uint16_t, wf_bfloat_of_float(wf_float_of_bfloat(v[i]) / (float)by))
DIVIDE(divide_32, int32_t, v[i] / (int64_t)by)
DIVIDE(divide_64, int64_t, v[i] / (int64_t)by)
DIVIDE(divide_8, uint8_t, v[i] / by)

const struct wf_kernels WF_KERNELS_BODY = {
    .reduce =
        {
            [WEFT_FLOAT64] = {add_double, min_double, max_double, add_double},
            [WEFT_FLOAT32] = {add_float, min_float, max_float, add_float},
            [WEFT_FLOAT16] = {add_half, min_half, max_half, add_half},
            [WEFT_BFLOAT16] = {add_bfloat, min_bfloat, max_bfloat, add_bfloat},
            [WEFT_INT32] = {add_32, min_32, max_32, add_32},
            [WEFT_INT64] = {add_64, min_64, max_64, add_64},
            [WEFT_UINT8] = {add_8, min_8, max_8, add_8},
        },
    .divide = {divide_double, divide_float, divide_half, divide_bfloat, divide_32, divide_64, divide_8},
};
#endif
