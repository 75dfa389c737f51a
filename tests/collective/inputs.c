#include "inputs.h"

#include <math.h>
#include <string.h>

uint64_t inputs_random(uint64_t *state)
{
    uint64_t x = *state += 0x9E3779B97F4A7C15;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9;
    x = (x ^ x >> 27) * 0x94D049BB133111EB;
    return x ^ x >> 31;
}

static double special(uint64_t random)
{
    static const double values[] = {0.0,   -0.0,  INFINITY, -INFINITY, NAN,   6e-8,
                                    -6e-8, 1e-40, -1e-40,   5e-324,    65504, 1.0};
    return values[random % (sizeof values / sizeof values[0])];
}

static void fill_one(enum inputs inputs, enum weft_type type, void *array, uint64_t at, uint64_t random)
{
    uint64_t width = weft_type_bytes(type);
    if (inputs == INPUTS_WHOLE)
        reference_write(type, array, at, (double)(random % 16));
    else if (inputs == INPUTS_REAL && type <= WEFT_BFLOAT16)
        reference_write(type, array, at, ldexp((double)(random >> 40) / (1 << 24) - 0.5, (int)(random % 17) - 8));
    else if (inputs == INPUTS_SPECIAL && type <= WEFT_BFLOAT16 && random % 4 == 0)
        reference_write(type, array, at, special(random >> 8));
    else
        memcpy((char *)array + at * width, &random, width);
}

void inputs_fill(enum inputs inputs, enum weft_type type, void *array, uint64_t count, uint64_t seed)
{
    for (uint64_t i = 0; i < count; i++)
        fill_one(inputs, type, array, i, inputs_random(&seed));
}
