/*
 * numbers.h: numbers as bits. By integers as far as it goes, so that compilers make vectors of it; no type that gcc 11
 * lacks.
 */
#ifndef WF_COLL_NUMBERS_H
#define WF_COLL_NUMBERS_H

#include <stdint.h>
#include <string.h>

static inline float wf_float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t wf_bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline double wf_double_of(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint64_t wf_bits_of_double(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* The exponent moves from bias 15 to 127. A denormal number is the part of 2^-14 that it is: subtracted from one that
 * has it in its lowest bits, which is exact. */
static inline float wf_float_of_half(uint16_t half)
{
    uint32_t magnitude = (uint32_t)(half & 0x7FFF) << 13, exponent = magnitude & 0x0F800000;
    uint32_t normal = magnitude + (112u << 23), special = magnitude + (224u << 23);
    uint32_t denormal = wf_bits_of(wf_float_of(magnitude + (113u << 23)) - wf_float_of(113u << 23));
    uint32_t bits = exponent == 0x0F800000 ? special : exponent == 0 ? denormal : normal;
    return wf_float_of(bits | (uint32_t)(half & 0x8000) << 16);
}

/* To nearest, ties to even. What is below 2^-14 is rounded by the addition of 0.5, whose lowest bit is 2^-24. */
static inline uint16_t wf_half_of_float(float value)
{
    uint32_t bits = wf_bits_of(value), magnitude = bits & 0x7FFFFFFF;
    uint32_t normal = (magnitude - (112u << 23) + 0xFFF + (magnitude >> 13 & 1)) >> 13;
    uint32_t denormal = wf_bits_of(wf_float_of(magnitude) + 0.5f) - wf_bits_of(0.5f);
    uint32_t half = magnitude >= 0x47800000 ? 0x7C00 : magnitude < 0x38800000 ? denormal : normal;
    half |= bits >> 16 & 0x8000;
    return (uint16_t)(magnitude > 0x7F800000 ? 0x7E00 : half);
}

static inline float wf_float_of_bfloat(uint16_t value)
{
    return wf_float_of((uint32_t)value << 16);
}

static inline uint16_t wf_bfloat_of_float(float value)
{
    uint32_t bits = wf_bits_of(value);
    uint32_t rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
    return (uint16_t)((bits & 0x7FFFFFFF) > 0x7F800000 ? 0x7FC0 : rounded);
}

/* The one NaN. */
static inline float wf_float_clean(float value)
{
    uint32_t bits = wf_bits_of(value);
    return wf_float_of((bits & 0x7FFFFFFF) > 0x7F800000 ? 0x7FC00000 : bits);
}

static inline double wf_double_clean(double value)
{
    uint64_t bits = wf_bits_of_double(value);
    return wf_double_of((bits & INT64_MAX) > 0x7FF0000000000000 ? 0x7FF8000000000000 : bits);
}

#endif
