#include "kernel_reference.h"

#include <string.h>

#define HALF_NAN 0x7E00
#define HALF_INFINITY 0x7C00

static uint32_t bits_of(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static float float_of(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* Drops the lowest `drop` bits (1 to 31): to the nearest, a tie to even. A carry out of the fraction raises the
 * exponent, as it should. */
static uint32_t round_off(uint32_t bits, int drop)
{
    uint32_t rest = bits & ((UINT32_C(1) << drop) - 1);
    uint32_t half = UINT32_C(1) << (drop - 1);
    uint32_t kept = bits >> drop;

    return kept + (rest > half || (rest == half && (kept & 1)));
}

float wf_float16_to_float32(uint16_t bits)
{
    uint32_t sign = (uint32_t)(bits & 0x8000) << 16;
    uint32_t exponent = bits >> 10 & 0x1F;
    uint32_t fraction = bits & 0x3FF;

    if (exponent == 0x1F)
        return float_of(sign | 0x7F800000 | fraction << 13);
    if (exponent)
        return float_of(sign | (exponent + 112) << 23 | fraction << 13);
    /* A subnormal number is a multiple of 2^-24, which float32 holds as a normal one. */
    return float_of(sign | bits_of((float)fraction * 0x1p-24F));
}

uint16_t wf_float32_to_float16(float value)
{
    uint32_t bits = bits_of(value);
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    uint32_t magnitude = bits & 0x7FFFFFFF;
    int exponent = (int)(magnitude >> 23) - 127;

    if (magnitude > 0x7F800000)
        return HALF_NAN;
    if (exponent > 15)
        return sign | HALF_INFINITY;
    if (exponent >= -14) /* rounding may carry into infinity, whose bits follow those of the largest number */
        return (uint16_t)(sign | round_off(magnitude - (UINT32_C(112) << 23), 13));
    if (exponent < -25) /* less than half of the smallest subnormal number */
        return sign;
    return (uint16_t)(sign | round_off((magnitude & 0x7FFFFF) | 0x800000, -exponent - 1));
}

float wf_bfloat16_to_float32(uint16_t bits)
{
    return float_of((uint32_t)bits << 16);
}

uint16_t wf_float32_to_bfloat16(float value)
{
    uint32_t bits = bits_of(value);

    if ((bits & 0x7FFFFFFF) > 0x7F800000) /* rounding could carry it out of the numbers that are none */
        return 0x7FFF;
    return (uint16_t)round_off(bits, 16);
}

void wf_reference_gather(void *to, const struct wf_gather_piece *pieces, int count)
{
    for (int i = 0; i < count; i++)
        memcpy((char *)to + pieces[i].offset, (const void *)(uintptr_t)pieces[i].address, pieces[i].bytes);
}

void wf_reference_scatter(const void *from, const struct wf_gather_piece *pieces, int count)
{
    for (int i = 0; i < count; i++)
        memcpy((void *)(uintptr_t)pieces[i].address, (const char *)from + pieces[i].offset, pieces[i].bytes);
}

void wf_reference_sum(enum wf_number type, void *to, const void *from, uint64_t count)
{
    switch (type) {
    case WF_NUMBER_FLOAT32:
        for (uint64_t i = 0; i < count; i++)
            ((float *)to)[i] += ((const float *)from)[i];
        break;
    case WF_NUMBER_FLOAT16:
        for (uint64_t i = 0; i < count; i++)
            ((uint16_t *)to)[i] = wf_float32_to_float16(wf_float16_to_float32(((const uint16_t *)to)[i]) +
                                                        wf_float16_to_float32(((const uint16_t *)from)[i]));
        break;
    case WF_NUMBER_BFLOAT16:
        for (uint64_t i = 0; i < count; i++)
            ((uint16_t *)to)[i] = wf_float32_to_bfloat16(wf_bfloat16_to_float32(((const uint16_t *)to)[i]) +
                                                         wf_bfloat16_to_float32(((const uint16_t *)from)[i]));
        break;
    case WF_NUMBER_INT32:
        for (uint64_t i = 0; i < count; i++)
            ((uint32_t *)to)[i] += ((const uint32_t *)from)[i];
        break;
    case WF_NUMBERS:
        break;
    }
}
