/*
 * random.h: SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014): the n-th number of
 * a stream is mix(seed + n * golden), so that any part of a stream can be made without the parts before it.
 */
#ifndef WF_BENCH_RANDOM_H
#define WF_BENCH_RANDOM_H

#include <stdint.h>

#define BENCH_GOLDEN 0x9E3779B97F4A7C15ull

static inline uint64_t bench_random_mix(uint64_t value)
{
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9ull;
    value = (value ^ (value >> 27)) * 0x94D049BB133111EBull;
    return value ^ (value >> 31);
}

static inline uint64_t bench_random_next(uint64_t *state)
{
    *state += BENCH_GOLDEN;
    return bench_random_mix(*state);
}

#endif
