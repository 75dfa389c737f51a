/* inputs.h: arrays for tests of collectives, the same for a seed everywhere. */
#ifndef INPUTS_H
#define INPUTS_H

#include "reference.h"

enum inputs {
    INPUTS_REAL,    /* of any size between 2^-8 and 2^8, with a sign */
    INPUTS_WHOLE,   /* small whole numbers: exact in every order, in every type */
    INPUTS_SPECIAL, /* any bits; among them no numbers, infinities, denormals and zeros of both signs */
    INPUTS_KINDS,
};

void inputs_fill(enum inputs inputs, enum weft_type type, void *array, uint64_t count, uint64_t seed);

/* A random number, and the next state. */
uint64_t inputs_random(uint64_t *state);

#endif
