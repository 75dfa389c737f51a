/*
 * reference.h: what the kernels of kernels.cu compute, in plain C, to the bit:
 *
 *     gather: to[offset, offset + bytes) = from[0, bytes) of each piece;  scatter: the reverse
 *     sum:    to[i] = to[i] + from[i], rounded to the nearest, ties to even
 *
 * Where a sum is no number, both say so, and with which bits is nobody's promise.
 */
#ifndef WF_MEM_REFERENCE_H
#define WF_MEM_REFERENCE_H

#include <stdint.h>

enum wf_number {
    WF_NUMBER_FLOAT32,
    WF_NUMBER_FLOAT16,  /* IEEE 754 binary16 */
    WF_NUMBER_BFLOAT16, /* the upper half of a float32 */
    WF_NUMBER_INT32,    /* wraps around */
    WF_NUMBERS,
};

/* One of many pieces with a place in contiguous memory. Of the same layout in kernels.cu. */
struct wf_gather_piece {
    uint64_t address; /* of the piece */
    uint64_t offset;  /* in the contiguous memory */
    uint64_t bytes;   /* 0: nothing */
};

/* No piece overlaps another in the memory that is written. */
void wf_reference_gather(void *to, const struct wf_gather_piece *pieces, int count);
void wf_reference_scatter(const void *from, const struct wf_gather_piece *pieces, int count);

/* `count` numbers, aligned as their size demands. */
void wf_reference_sum(enum wf_number type, void *to, const void *from, uint64_t count);

/* 4 or 2. */
int wf_number_bytes(enum wf_number type);

float wf_float16_to_float32(uint16_t bits);
uint16_t wf_float32_to_float16(float value);
float wf_bfloat16_to_float32(uint16_t bits);
uint16_t wf_float32_to_bfloat16(float value);

#endif
