/*
 * reference.h: what the collectives of weft_coll.h have to give, to the bit: one element after the other, in the order
 * of summation that the header says, with numbers converted by arithmetic. Knows of Weft what that header says, and
 * nothing else.
 */
#ifndef REFERENCE_H
#define REFERENCE_H

#include "collective/weft_coll.h"

struct reference {
    enum weft_collective kind;
    enum weft_type type;
    enum weft_op op;
    uint32_t size, root;
    int by;
    uint64_t count;
    const void *const *in; /* of every rank */
};

/* Elements of `in`, and of `out`, of each rank. */
uint64_t reference_in(const struct reference *reference);
uint64_t reference_out(const struct reference *reference);

/* What `rank` gets. */
void reference_result(const struct reference *reference, uint32_t rank, void *out);

/* An element as a number, and a number as an element. */
double reference_read(enum weft_type type, const void *array, uint64_t index);
void reference_write(enum weft_type type, void *array, uint64_t index, double value);

#endif
