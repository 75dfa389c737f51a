/*
 * kernel_reference.h: what the kernels of kernels.cu compute (mem/cuda_kernels.h), in plain C, to the bit. Where a sum
 * is no number, both say so, and with which bits is nobody's promise.
 */
#ifndef WEFT_TESTS_KERNEL_REFERENCE_H
#define WEFT_TESTS_KERNEL_REFERENCE_H

#include "mem/kernel_types.h"

/* No piece overlaps another in the memory that is written. */
void wf_reference_gather(void *to, const struct wf_gather_piece *pieces, int count);
void wf_reference_scatter(const void *from, const struct wf_gather_piece *pieces, int count);

/* `count` numbers, aligned as their size demands. */
void wf_reference_sum(enum wf_number type, void *to, const void *from, uint64_t count);

float wf_float16_to_float32(uint16_t bits);
uint16_t wf_float32_to_float16(float value);
float wf_bfloat16_to_float32(uint16_t bits);
uint16_t wf_float32_to_bfloat16(float value);

#endif
