/*
 * kernel_types.h: types of the parameters of the kernels in kernels.cu.
 */
#ifndef WF_MEM_KERNEL_TYPES_H
#define WF_MEM_KERNEL_TYPES_H

#include <stdint.h>

enum wf_number {
    WF_NUMBER_FLOAT32,
    WF_NUMBER_FLOAT16,  /* IEEE 754 binary16 */
    WF_NUMBER_BFLOAT16, /* the upper half of a float32 */
    WF_NUMBER_INT32,    /* wraps around */
    WF_NUMBERS,
};

/* Bytes of one number: 4 or 2. */
static inline int wf_number_bytes(enum wf_number type)
{
    return type == WF_NUMBER_FLOAT16 || type == WF_NUMBER_BFLOAT16 ? 2 : 4;
}

/* One of many pieces, with its place in contiguous memory. kernels.cu has the same layout. */
struct wf_gather_piece {
    uint64_t address; /* of the piece */
    uint64_t offset;  /* in the contiguous memory */
    uint64_t bytes;   /* 0: the piece is empty */
};

#endif
