/* test_reduce.c: the loops that run here, those of any processor, and the reference have the same bits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "collective/reduce/reduce.h"
#include "inputs.h"

#define COUNT 4099
#define BYTES ((COUNT + 8) * 8)

static _Alignas(64) char left[BYTES], right[BYTES], quick[BYTES], plain[BYTES], expected[BYTES];

/* By the reference: the sum of two members, in the order of a tree. */
static void expect(enum weft_type type, enum weft_op op, uint64_t count)
{
    const void *in[] = {left, right};
    struct reference what = {.kind = WEFT_ALL_REDUCE, .type = type, .op = op, .size = 2, .count = count, .in = in};
    reference_result(&what, 0, expected);
}

static void check(enum weft_type type, enum weft_op op, uint64_t count)
{
    uint64_t bytes = count * weft_type_bytes(type);
    expect(type, op, count);
    wf_reduce(type, op, quick, left, right, count);
    wf_reduce_plain(type, op, plain, left, right, count);
    if (op == WEFT_AVG) {
        wf_reduce_divide(type, quick, count, 2);
        wf_reduce_divide_plain(type, plain, count, 2);
    }
    if (memcmp(quick, plain, bytes) != 0 || memcmp(quick, expected, bytes) != 0)
        fail_msg("type %d, operation %d, %llu elements: %s, plain and the reference differ", (int)type, (int)op,
                 (unsigned long long)count, wf_reduce_kernels());
}

/* In place of either side the same is written. */
static void check_in_place(enum weft_type type, enum weft_op op, uint64_t count)
{
    uint64_t bytes = count * weft_type_bytes(type);
    wf_reduce(type, op, plain, left, right, count);
    memcpy(quick, left, bytes);
    wf_reduce(type, op, quick, quick, right, count);
    assert_memory_equal(quick, plain, bytes);
    memcpy(quick, right, bytes);
    wf_reduce(type, op, quick, left, quick, count);
    assert_memory_equal(quick, plain, bytes);
}

static void same_bits(void **state)
{
    static const uint64_t counts[] = {0, 1, 7, 33, 500, COUNT};
    (void)state;
    for (int type = 0; type < WF_REDUCE_TYPES; type++)
        for (int inputs = 0; inputs < INPUTS_KINDS; inputs++) {
            inputs_fill((enum inputs)inputs, (enum weft_type)type, left, COUNT, 1);
            inputs_fill((enum inputs)inputs, (enum weft_type)type, right, COUNT, 2);
            for (int op = 0; op < WF_REDUCE_OPS; op++)
                for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
                    check((enum weft_type)type, (enum weft_op)op, counts[i]);
                    check_in_place((enum weft_type)type, (enum weft_op)op, counts[i]);
                }
        }
}

/* Every float16 and bfloat16 with some others: what is special among them is all there. */
static void every_half(void **state)
{
    static const uint16_t others[] = {0x0000, 0x8000, 0x0001, 0x03FF, 0x0400, 0x3C00, 0x7BFF,
                                      0x7C00, 0xFC00, 0x7E01, 0x7F7F, 0x7F80, 0x0080, 0xFBFF};
    (void)state;
    for (int type = WEFT_FLOAT16; type <= WEFT_BFLOAT16; type++)
        for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
            for (uint32_t first = 0; first < 0x10000; first += 4096) {
                for (uint32_t j = 0; j < 4096; j++) {
                    ((uint16_t *)(void *)left)[j] = (uint16_t)(first + j);
                    ((uint16_t *)(void *)right)[j] = others[i];
                }
                for (int op = 0; op < WF_REDUCE_OPS; op++)
                    check((enum weft_type)type, (enum weft_op)op, 4096);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits),
        cmocka_unit_test(every_half),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
