/* The clocks of two nodes, from readings of both: a line is found to within what it says of itself, and times of one
 * clock become times of the other, whatever the numbers are. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "bench/profile/clocks.h"
#include "bench/words/random.h"

#define FAR 987654321012345678 /* how far apart clocks of machines may be that were not started together */
#define WAY_NS 6000            /* the least time of a message, either way */

/* node1's clock when node0's shows `here`. */
static int64_t there_of(int64_t here, double ppm, int64_t offset)
{
    return here + offset + llround((double)here * ppm * 1e-6);
}

static double draw(uint64_t *state)
{
    return (double)(bench_random_next(state) >> 11) / (double)(1ull << 53);
}

/* A reading at `here`, each way of which waits for a while in queues, mostly a short one. */
static struct bench_clock_reading reading_at(int64_t here, double ppm, int64_t offset, uint64_t *state)
{
    int64_t forth = WAY_NS + (int64_t)(-log(1 - draw(state)) * 3000);
    int64_t back = WAY_NS + (int64_t)(-log(1 - draw(state)) * 3000);
    struct bench_clock_reading reading = {.asked_ns = here, .back_ns = here + forth + 400 + back};

    reading.heard_ns = there_of(here + forth, ppm, offset);
    reading.answered_ns = there_of(here + forth + 400, ppm, offset);
    return reading;
}

static void fill(struct bench_track *track, int count, int64_t step, double ppm, int64_t offset, uint64_t seed)
{
    for (int i = 0; i < count; i++) {
        struct bench_clock_reading reading = reading_at(1000 + i * step, ppm, offset, &seed);
        struct bench_fix fix;
        bench_fix_of(&reading, &fix);
        assert_int_equal(bench_track_add(track, &fix), 0);
    }
}

static void a_drift_lies_within_its_interval(void **state)
{
    int inside = 0, offsets = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct bench_track track = {0};
        struct bench_drift drift;
        fill(&track, 3000, 10 * WF_NS_PER_MS, 50, FAR, seed);
        bench_drift_of(&track, 30, &drift);
        assert_int_equal(drift.fixes, 30);
        assert_true(drift.ppm_error < 0.5); /* what 30 s are for */
        inside += fabs(drift.ppm - 50) <= drift.ppm_error;
        int64_t truth = there_of(drift.at_ns, 50, FAR) - drift.at_ns;
        offsets += llabs(drift.offset_ns - truth) <= drift.offset_error_ns;
        bench_track_fini(&track);
    }
    assert_true(inside >= 180); /* of 200: 95 of 100 on average, and what chance may take from that */
    assert_int_equal(offsets, 200);
}

static void an_offset_is_wrong_by_half_a_round_trip_at_most(void **state)
{
    uint64_t seed = 3;

    (void)state;
    for (int i = 0; i < 1000; i++) {
        struct bench_clock_reading reading = reading_at(i * WF_NS_PER_S, -20, FAR, &seed);
        struct bench_fix fix;
        bench_fix_of(&reading, &fix);
        int64_t truth = there_of(fix.here_ns, -20, FAR);
        assert_true(llabs(fix.there_ns - truth) <= fix.error_ns + 1);
    }
}

/* With few fixes the line is known less well than the fixes are, and at its end less well than in its middle. */
static void an_offset_has_the_error_of_its_line(void **state)
{
    uint64_t random = 5;
    int inside = 0;

    (void)state;
    for (int run = 0; run < 400; run++) {
        struct bench_track track = {0};
        struct bench_drift drift;
        int64_t last = 8 * WF_NS_PER_S;
        for (int i = 0; i < 9; i++) { /* of each three the first one counts */
            int64_t here = i * WF_NS_PER_S, noise = (int64_t)(bench_random_next(&random) % 2001) - 1000;
            struct bench_fix fix = {here, there_of(here, 50, FAR) + noise, i % 3 ? 100 : 10};
            last = i % 3 ? last : here;
            assert_int_equal(bench_track_add(&track, &fix), 0);
        }
        bench_drift_of(&track, 3, &drift);
        assert_int_equal(drift.fixes, 3);
        assert_int_equal(drift.at_ns, last);
        assert_int_equal(drift.half_trip_ns, 10);
        inside += llabs(drift.offset_ns - (there_of(last, 50, FAR) - last)) <= drift.offset_error_ns;
        bench_track_fini(&track);
    }
    assert_in_range(inside, 370, 400);
}

static void too_few_readings_are_no_drift(void **state)
{
    struct bench_track track = {0};
    struct bench_drift drift;

    (void)state;
    bench_drift_of(&track, 30, &drift);
    assert_int_equal(drift.fixes, 0);
    fill(&track, 2, WF_NS_PER_S, 50, 0, 1);
    bench_drift_of(&track, 30, &drift);
    assert_int_equal(drift.fixes, 0);
    bench_track_fini(&track);
}

static void times_become_times_of_the_other_clock(void **state)
{
    struct bench_track track = {0};

    (void)state;
    for (int i = 0; i < 10; i++) {
        int64_t here = 100 + i * 7 * WF_NS_PER_S;
        struct bench_fix fix = {here, there_of(here, 50, FAR), 1000 + i};
        assert_int_equal(bench_track_add(&track, &fix), 0);
    }
    /* Between fixes, on them, before the first and behind the last. */
    for (int64_t here = -5 * WF_NS_PER_S; here < 80 * WF_NS_PER_S; here += 333333333)
        assert_in_range(bench_track_here(&track, there_of(here, 50, FAR)) - here + 10, 8, 12);
    assert_int_equal(bench_track_error(&track, there_of(3 * WF_NS_PER_S, 50, FAR)), 1001);
    bench_track_fini(&track);
}

/* A clock whose rate changes meanwhile: each stretch has its own line. */
static void a_rate_may_change(void **state)
{
    const struct bench_fix fixes[] = {
        {0, 1000, 5}, {WF_NS_PER_S, WF_NS_PER_S + 1000, 5}, {2 * WF_NS_PER_S, 2 * WF_NS_PER_S + 101000, 5}};
    struct bench_track track = {0};

    (void)state;
    for (int i = 0; i < 3; i++)
        assert_int_equal(bench_track_add(&track, &fixes[i]), 0);
    assert_int_equal(bench_track_here(&track, WF_NS_PER_S / 2 + 1000), WF_NS_PER_S / 2);
    assert_in_range(bench_track_here(&track, 3 * WF_NS_PER_S / 2 + 51000) - 3 * WF_NS_PER_S / 2 + 2, 0, 4);
    bench_track_fini(&track);
}

static void one_fix_shifts_alone(void **state)
{
    const struct bench_fix fix = {500, FAR, 7};
    struct bench_track track = {0};

    (void)state;
    assert_int_equal(bench_track_add(&track, &fix), 0);
    assert_int_equal(bench_track_here(&track, FAR + 123), 623);
    assert_int_equal(bench_track_error(&track, FAR), 7);
    bench_track_fini(&track);
}

static void steering_is_told_from_a_crystal(void **state)
{
    struct bench_clock_reading first = {.raw_ns = {0, 0}, .at_ns = {5, 9}};
    struct bench_clock_reading last = {.raw_ns = {WF_NS_PER_S, WF_NS_PER_S}, .at_ns = {WF_NS_PER_S + 5, 0}};

    (void)state;
    last.at_ns[1] = WF_NS_PER_S + 9 + 12500;
    assert_true(bench_steered_ppm(&first, &last, 0) == 0);
    assert_true(fabs(bench_steered_ppm(&first, &last, 1) - 12.5) < 1e-9);
    assert_true(bench_steered_ppm(&first, &first, 0) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_drift_lies_within_its_interval),
        cmocka_unit_test(an_offset_is_wrong_by_half_a_round_trip_at_most),
        cmocka_unit_test(an_offset_has_the_error_of_its_line),
        cmocka_unit_test(too_few_readings_are_no_drift),
        cmocka_unit_test(times_become_times_of_the_other_clock),
        cmocka_unit_test(a_rate_may_change),
        cmocka_unit_test(one_fix_shifts_alone),
        cmocka_unit_test(steering_is_told_from_a_crystal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
