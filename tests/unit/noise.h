/*
 * noise.h: noise of simulated measurements, from a seed.
 */
#ifndef WF_TEST_NOISE_H
#define WF_TEST_NOISE_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "bench/words/random.h"

static inline double share(uint64_t *random)
{
    return ((double)(bench_random_next(random) >> 11) + 0.5) / 9007199254740992.0;
}

static inline double normal(uint64_t *random)
{
    double length = sqrt(-2 * log(share(random)));

    return length * cos(2 * 3.14159265358979 * share(random));
}

/* Of a standard deviation of 1. */
static inline double noise(uint64_t *random, bool tails)
{
    double value = normal(random), squares = 0;

    if (!tails)
        return value;
    for (int i = 0; i < 3; i++) {
        double next = normal(random);
        squares += next * next;
    }
    return value / sqrt(squares);
}

#endif
