/* Algorithm and bus bandwidth: what NCCL's own benchmark would print for the same bytes and time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bench/collective/ranks/bandwidth.h"

#define CLOSE(a, b) assert_float_equal(a, b, 1e-9)

static void factors_follow_from_the_number_of_ranks(void **state)
{
    static const struct {
        enum bench_collective kind;
        double of_two, of_eight;
    } rows[] = {
        {BENCH_ALL_REDUCE, 1, 1.75},    {BENCH_ALL_GATHER, 0.5, 0.875}, {BENCH_REDUCE_SCATTER, 0.5, 0.875},
        {BENCH_ALL_TO_ALL, 0.5, 0.875}, {BENCH_BROADCAST, 1, 1},        {BENCH_SEND_RECEIVE, 1, 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        CLOSE(bench_bus_factor(rows[i].kind, 2), rows[i].of_two);
        CLOSE(bench_bus_factor(rows[i].kind, 8), rows[i].of_eight);
        CLOSE(bench_bus_factor(rows[i].kind, 0), 0);
    }
    CLOSE(bench_bus_factor(BENCH_ALL_REDUCE, 1), 0);
    CLOSE(bench_bus_factor(BENCH_ALL_GATHER, 1), 0);
    /* Far more ranks than fit an int's product. */
    CLOSE(bench_bus_factor(BENCH_ALL_REDUCE, UINT32_MAX), 2 * (1 - 1.0 / UINT32_MAX));
}

static void bytes_are_the_larger_of_in_and_out(void **state)
{
    (void)state;
    assert_int_equal(bench_collective_bytes(BENCH_ALL_GATHER, 8, 1000), 8000);
    assert_int_equal(bench_collective_bytes(BENCH_REDUCE_SCATTER, 8, 8000), 8000);
    assert_int_equal(bench_collective_bytes(BENCH_ALL_REDUCE, 8, 1000), 1000);
    assert_int_equal(bench_collective_bytes(BENCH_BROADCAST, 8, 1000), 1000);
    assert_int_equal(bench_collective_bytes(BENCH_ALL_GATHER, 4, 1ull << 40), 1ull << 42);
}

static void bandwidth_is_in_units_of_1e9_bytes(void **state)
{
    (void)state;
    CLOSE(bench_algorithm_bandwidth(1000000000, 1e6), 1);
    CLOSE(bench_algorithm_bandwidth(64 << 20, 1000), 67.108864);
    CLOSE(bench_bus_bandwidth(BENCH_ALL_REDUCE, 8, 64 << 20, 1000), 67.108864 * 1.75);
    CLOSE(bench_bus_bandwidth(BENCH_SEND_RECEIVE, 2, 64 << 20, 1000), 67.108864);
    CLOSE(bench_algorithm_bandwidth(0, 5), 0);
    assert_true(bench_algorithm_bandwidth(1, 0) < 0);
    assert_true(bench_bus_bandwidth(BENCH_ALL_REDUCE, 1, 1, 0) < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(factors_follow_from_the_number_of_ranks),
        cmocka_unit_test(bytes_are_the_larger_of_in_and_out),
        cmocka_unit_test(bandwidth_is_in_units_of_1e9_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
