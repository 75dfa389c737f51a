/* The C references of the kernels: rounding against the neighbours of every number, sums, gather and scatter. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "kernel_reference.h"

static uint64_t random_state = 1;

/* xorshift64* (Marsaglia, Vigna). */
static uint64_t random_next(void)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return random_state * 0x2545F4914F6CDD1Dull;
}

static float float_of(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* A number from its parts, by the formula of IEEE 754 rather than by moving bits. */
static double value_of_half(uint16_t bits)
{
    int exponent = bits >> 10 & 0x1F, fraction = bits & 0x3FF;
    double magnitude = exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);

    return bits & 0x8000 ? -magnitude : magnitude;
}

static void half_holds_its_numbers(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits <= 0xFFFF; bits++) {
        float value = wf_float16_to_float32((uint16_t)bits);
        bool finite = (bits & 0x7C00) != 0x7C00;

        if (finite) {
            assert_true((double)value == value_of_half((uint16_t)bits));
            assert_int_equal(wf_float32_to_float16(value), bits);
        } else if (bits & 0x3FF) {
            assert_true(isnan(value));
            assert_true(isnan(wf_float16_to_float32(wf_float32_to_float16(value))));
        } else {
            assert_true(isinf(value) && !signbit(value) == !(bits & 0x8000));
            assert_int_equal(wf_float32_to_float16(value), bits);
        }
    }
}

/* Between each number and the next one: below the middle, at it, and above. */
static void half_rounds_to_nearest_even(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits < 0x7BFF; bits++) {
        float low = wf_float16_to_float32((uint16_t)bits), high = wf_float16_to_float32((uint16_t)(bits + 1));
        float middle = (float)(((double)low + (double)high) / 2); /* exact: float32 has 13 bits more */
        uint32_t even = bits & 1 ? bits + 1 : bits;

        assert_int_equal(wf_float32_to_float16(middle), even);
        assert_int_equal(wf_float32_to_float16(-middle), even | 0x8000);
        assert_int_equal(wf_float32_to_float16(nextafterf(middle, 0)), bits);
        assert_int_equal(wf_float32_to_float16(nextafterf(middle, INFINITY)), bits + 1);
    }
    /* 65504 is the largest; from the middle to what would be next, it is infinity. */
    assert_int_equal(wf_float32_to_float16(65519.996F), 0x7BFF);
    assert_int_equal(wf_float32_to_float16(65520), 0x7C00);
    assert_int_equal(wf_float32_to_float16(1e30F), 0x7C00);
    assert_int_equal(wf_float32_to_float16(-1e30F), 0xFC00);
    assert_int_equal(wf_float32_to_float16(1e-40F), 0);
    assert_int_equal(wf_float32_to_float16(-1e-40F), 0x8000);
}

static void bfloat_rounds_to_nearest_even(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits < 0x7F80; bits++) {
        uint32_t low = bits << 16, even = bits & 1 ? bits + 1 : bits;

        assert_int_equal(wf_float32_to_bfloat16(float_of(low)), bits);
        assert_int_equal(wf_float32_to_bfloat16(float_of(low | 0x7FFF)), bits);
        assert_int_equal(wf_float32_to_bfloat16(float_of(low | 0x8000)), even);
        assert_int_equal(wf_float32_to_bfloat16(float_of(low | 0x80008000)), even | 0x8000);
        assert_int_equal(wf_float32_to_bfloat16(float_of(low | 0x8001)), bits + 1);
        assert_true(wf_bfloat16_to_float32((uint16_t)bits) == float_of(low));
    }
    assert_int_equal(wf_float32_to_bfloat16(INFINITY), 0x7F80);
    for (uint32_t fraction = 1; fraction < 0x800000; fraction = fraction * 3 + 1)
        assert_true(isnan(wf_bfloat16_to_float32(wf_float32_to_bfloat16(float_of(0x7F800000 | fraction)))));
}

static void sums(void **state)
{
    float f32[] = {1, -2.5F, 1e30F, 0x1p-149F}, f32_more[] = {2, 2.5F, 1e30F, 0x1p-149F};
    const float f32_sum[] = {3, 0, 2e30F, 0x1p-148F};
    uint16_t f16[] = {0x3C00, 0x6800, 0x7BFF, 0x0001}, f16_more[] = {0x3C00, 0x3C00, 0x7BFF, 0x0001};
    const uint16_t f16_sum[] = {0x4000, 0x6800, 0x7C00, 0x0002}; /* 2048 + 1 is a tie, and stays */
    uint16_t bf16[] = {0x3F80, 0x4380, 0x4381}, bf16_more[] = {0x3F80, 0x3F80, 0x3F80};
    const uint16_t bf16_sum[] = {0x4000, 0x4380, 0x4382}; /* 256 + 1 stays, 258 + 1 rises: both are ties */
    int32_t i32[] = {1, -5, INT32_MAX, INT32_MIN}, i32_more[] = {2, 5, 1, -1};
    const int32_t i32_sum[] = {3, 0, INT32_MIN, INT32_MAX};

    (void)state;
    wf_reference_sum(WF_NUMBER_FLOAT32, f32, f32_more, 4);
    assert_memory_equal(f32, f32_sum, sizeof(f32));
    wf_reference_sum(WF_NUMBER_FLOAT16, f16, f16_more, 4);
    assert_memory_equal(f16, f16_sum, sizeof(f16));
    wf_reference_sum(WF_NUMBER_BFLOAT16, bf16, bf16_more, 3);
    assert_memory_equal(bf16, bf16_sum, sizeof(bf16));
    wf_reference_sum(WF_NUMBER_INT32, i32, i32_more, 4);
    assert_memory_equal(i32, i32_sum, sizeof(i32));
    wf_reference_sum(WF_NUMBER_INT32, i32, i32_more, 0);
    assert_memory_equal(i32, i32_sum, sizeof(i32));
    for (int type = 0; type < WF_NUMBERS; type++)
        assert_int_equal(wf_number_bytes(type), type == WF_NUMBER_FLOAT16 || type == WF_NUMBER_BFLOAT16 ? 2 : 4);
}

#define PLAIN 20000
#define PIECES 64

/* Pieces of random sizes, shuffled over `source`, in a row in `to`; what lies between them is not touched. */
static void gathers_and_scatters(void **state)
{
    static unsigned char source[PIECES * 512], back[PIECES * 512], to[PLAIN], expected[PLAIN];
    struct wf_gather_piece pieces[PIECES];

    (void)state;
    for (int round = 0; round < 50; round++) {
        uint64_t at = 0;
        for (size_t i = 0; i < sizeof(source); i++)
            source[i] = (unsigned char)random_next();
        memset(to, 0xEE, sizeof(to));
        memset(expected, 0xEE, sizeof(expected));
        memset(back, 0, sizeof(back));
        for (int i = 0; i < PIECES; i++) {
            int place = (i * 37 + round) % PIECES; /* 37 and 64 have no divisor in common */
            uint64_t bytes = random_next() % 300, gap = random_next() % 10;
            const unsigned char *from = source + place * 512 + random_next() % 200;
            at += gap;
            pieces[i] = (struct wf_gather_piece){.address = (uintptr_t)from, .offset = at, .bytes = bytes};
            for (uint64_t k = 0; k < bytes; k++)
                expected[at + k] = from[k];
            at += bytes;
        }
        wf_reference_gather(to, pieces, PIECES);
        assert_memory_equal(to, expected, sizeof(to));
        for (int i = 0; i < PIECES; i++)
            pieces[i].address += (uint64_t)(back - source);
        wf_reference_scatter(to, pieces, PIECES);
        for (int i = 0; i < PIECES; i++) {
            const unsigned char *there = (const unsigned char *)(uintptr_t)pieces[i].address;
            assert_memory_equal(there, source + (there - back), pieces[i].bytes);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(half_holds_its_numbers),        cmocka_unit_test(half_rounds_to_nearest_even),
        cmocka_unit_test(bfloat_rounds_to_nearest_even), cmocka_unit_test(sums),
        cmocka_unit_test(gathers_and_scatters),
    };

    return cmocka_run_group_tests_name("references of the kernels", tests, NULL, NULL);
}
