/* How much of a message comes unasked, and what that costs: what two nodes must compute alike. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "wire/burst.h"

static void burst_table(void **state)
{
    static const struct {
        uint64_t total;
        uint32_t eager, first_burst;
        uint64_t burst;
    } rows[] = {
        {0, 0, 0, 0},
        {0, 16384, 65536, 0},
        {1, 0, 0, 0},
        {1, 1, 0, 1},
        {16384, 16384, 65536, 16384},
        {16385, 16384, 65536, 16385},
        {65535, 16384, 65536, 65535},
        {65536, 16384, 65536, 65536},
        {65537, 16384, 65536, 65536},
        {UINT64_C(1) << 40, 16384, 65536, 65536},
        {16385, 16384, 0, 0},       /* no first burst: what is not eager is asked for */
        {16384, 16384, 100, 16384}, /* eager is whole, also where the burst is less */
        {16385, 16384, 100, 100},
        {UINT64_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(wf_burst_bytes(rows[i].total, rows[i].eager, rows[i].first_burst), rows[i].burst);
}

static void charge_table(void **state)
{
    static const struct {
        uint64_t bytes, charge;
    } rows[] = {{0, 0},
                {1, WF_BLOCK_BYTES},
                {WF_BLOCK_BYTES - 1, WF_BLOCK_BYTES},
                {WF_BLOCK_BYTES, WF_BLOCK_BYTES},
                {WF_BLOCK_BYTES + 1, 2 * WF_BLOCK_BYTES},
                {UINT32_MAX, UINT64_C(1) << 32}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(wf_burst_charge(rows[i].bytes), rows[i].charge);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(burst_table),
        cmocka_unit_test(charge_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
