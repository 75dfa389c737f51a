/* Shares by rate: tables, and a small simulation of rails that drain at their own speed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "wire/spread.h"

#define MIB (UINT64_C(1) << 20)
#define MS INT64_C(1000000)

static void shares(void **state)
{
    static const struct {
        struct wf_lane lanes[3];
        int count, index;
        uint64_t waiting, chunk, least, most;
    } rows[] = {
        {{{1, 0}}, 1, 0, 10 * MIB, MIB, MIB, MIB},                     /* alone: all it can carry */
        {{{1, 0}, {1, 0}}, 2, 1, 10 * MIB, MIB, MIB, MIB},             /* equals: a chunk each */
        {{{1, 0}, {0.01, 0}}, 2, 1, 10 * MIB, MIB, 100000, 140000},    /* a hundredth of the rate: a hundredth */
        {{{1, 0}, {0.01, 200000}}, 2, 1, 10 * MIB, MIB, 0, 0},         /* it has its share already */
        {{{1, 0}, {0.01, 200000}}, 2, 0, 10 * MIB, MIB, MIB, MIB},     /* the other one has not */
        {{{1, 8 * MIB}, {0.0001, 8 * MIB}}, 2, 0, 100, MIB, 100, 100}, /* late, but nobody would be earlier */
        {{{1, 0}, {1, 0}, {1, 0}}, 3, 2, 5, MIB, 5, 5},                /* tiny work goes anywhere */
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t share = wf_spread_share(rows[i].lanes, rows[i].count, rows[i].index, rows[i].waiting, rows[i].chunk);
        assert_in_range(share, rows[i].least, rows[i].most);
    }
}

/* Whatever the rates, one lane is open: work never waits for an estimate. */
static void one_is_always_open(void **state)
{
    (void)state;
    uint64_t seed = 1;
    for (int round = 0; round < 20000; round++) {
        struct wf_lane lanes[5];
        bool open = false;
        for (int i = 0; i < 5; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            lanes[i] = (struct wf_lane){1e-6 + (double)(seed >> 40) / 1e6, (seed >> 20) % (64 * MIB)};
        }
        for (int i = 0; i < 5; i++)
            open |= wf_spread_share(lanes, 5, i, 1 + seed % MIB, 512 * 1024) > 0;
        assert_true(open);
    }
}

static void rates(void **state)
{
    (void)state;
    struct wf_rate rate = {0};
    assert_true(wf_rate_estimate(&rate, 0, 0, 7) == 7); /* unknown: as good as the best */
    wf_rate_busy(&rate, MS);
    wf_rate_acknowledged(&rate, 3 * MS, 2000000, true);
    assert_true(rate.bytes_per_ns > 0.99 && rate.bytes_per_ns < 1.01);
    /* Silence: the estimate sinks with the time it takes. */
    assert_true(wf_rate_estimate(&rate, 103 * MS, 1000000, 1) < 0.011);
    /* Idle: it rises to the highest within 100 ms. */
    wf_rate_acknowledged(&rate, 203 * MS, 1000000, false);
    assert_true(rate.bytes_per_ns < 0.7);
    assert_true(wf_rate_estimate(&rate, 204 * MS, 0, 1) < 0.7);
    assert_true(wf_rate_estimate(&rate, 303 * MS, 0, 1) == 1);
}

/* Three rails of 1 : 0.1 : 0.01 carry a message; the last byte is late by little more than the slack. */
static void unequal_rails_finish_together(void **state)
{
    static const double speed[3] = {0.125, 0.0125, 0.00125};
    struct wf_rate rate[3] = {{0}};
    double left[3] = {0};
    uint64_t waiting = 64 * MIB, sent[3] = {0};
    int64_t now = MS;
    (void)state;
    while (waiting > 0 || left[0] + left[1] + left[2] > 0) {
        for (int i = 0; i < 3; i++) {
            struct wf_lane lanes[3];
            for (int j = 0; j < 3; j++)
                lanes[j] =
                    (struct wf_lane){wf_rate_estimate(&rate[j], now, (uint64_t)left[j], 0.125), (uint64_t)left[j]};
            uint64_t chunk = rate[i].bytes_per_ns > 0 ? 512 * 1024 : WF_SPREAD_PROBE_BYTES;
            uint64_t take = waiting ? wf_spread_share(lanes, 3, i, waiting, chunk) : 0;
            if (take > 0)
                wf_rate_busy(&rate[i], now);
            left[i] += (double)take;
            sent[i] += take;
            waiting -= take;
        }
        now += MS / 10;
        for (int i = 0; i < 3; i++) {
            double moved = speed[i] * (double)MS / 10 < left[i] ? speed[i] * (double)MS / 10 : left[i];
            left[i] -= moved;
            if (moved > 0)
                wf_rate_acknowledged(&rate[i], now, (uint64_t)moved, left[i] > 0);
        }
    }
    double ideal = 64.0 * (double)MIB / (0.125 + 0.0125 + 0.00125);
    assert_true((double)(now - MS) < ideal * 1.05 + 30e6);
    assert_in_range(sent[2], 64 * MIB / 200, 64 * MIB / 70);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares),
        cmocka_unit_test(one_is_always_open),
        cmocka_unit_test(rates),
        cmocka_unit_test(unequal_rails_finish_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
