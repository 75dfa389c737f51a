/*
 * reduce.h: arrays of the types of weft_coll.h, two made one.
 *
 *     the bits of a result depend on the elements, and on nothing else: not on the machine, the length or the place
 *
 * Sums are rounded to the type, to nearest; 16-bit types are added as float32. A result that is no number is the quiet
 * NaN without sign and payload. Knows of no group.
 */
#ifndef WF_COLL_REDUCE_H
#define WF_COLL_REDUCE_H

#include <stdbool.h>
#include <stdint.h>

#include "collective/weft_coll.h"

#define WF_REDUCE_TYPES 7
#define WF_REDUCE_OPS 4

/* Bytes of one element; 0: no such type. */
uint64_t wf_reduce_width(enum weft_type type);

/* out[i] = left[i] op right[i]; WEFT_AVG adds. `out` may be `left` or `right`, and overlaps them in no other way. */
void wf_reduce(enum weft_type type, enum weft_op op, void *out, const void *left, const void *right, uint64_t count);

/* values[i] /= by: what is left to do for an average. */
void wf_reduce_divide(enum weft_type type, void *values, uint64_t count, uint32_t by);

/* "avx2" or "plain": what runs here. Both give the same bits. */
const char *wf_reduce_kernels(void);

/* As wf_reduce() and wf_reduce_divide(), on any machine. For tests. */
void wf_reduce_plain(enum weft_type type, enum weft_op op, void *out, const void *left, const void *right,
                     uint64_t count);
void wf_reduce_divide_plain(enum weft_type type, void *values, uint64_t count, uint32_t by);

#endif
