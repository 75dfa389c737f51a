/* Which loops run here. */
#include "collective/reduce/reduce.h"

#include "collective/reduce/kernels.h"

static const struct wf_kernels *kernels(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2"))
        return &wf_kernels_avx2;
#endif
    return &wf_kernels_plain;
}

const char *wf_reduce_kernels(void)
{
    return kernels() == &wf_kernels_plain ? "plain" : "avx2";
}

uint64_t wf_reduce_width(enum weft_type type)
{
    static const uint8_t width[WF_REDUCE_TYPES] = {8, 4, 2, 2, 4, 8, 1};
    return (unsigned)type < WF_REDUCE_TYPES ? width[type] : 0;
}

void wf_reduce(enum weft_type type, enum weft_op op, void *out, const void *left, const void *right, uint64_t count)
{
    kernels()->reduce[type][op](out, left, right, count);
}

void wf_reduce_divide(enum weft_type type, void *values, uint64_t count, uint32_t by)
{
    kernels()->divide[type](values, count, by);
}

void wf_reduce_plain(enum weft_type type, enum weft_op op, void *out, const void *left, const void *right,
                     uint64_t count)
{
    wf_kernels_plain.reduce[type][op](out, left, right, count);
}

void wf_reduce_divide_plain(enum weft_type type, void *values, uint64_t count, uint32_t by)
{
    wf_kernels_plain.divide[type](values, count, by);
}
