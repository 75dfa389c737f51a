/* How many messages a phase measures where nobody has said it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/measure/pace.h"
#include "bench/words/random.h"

#define MS 1000000ll

/* Goes through a warm-up whose messages take `each_ns`, and `start_ns` more for a round. Returns its messages. */
static uint32_t warm(struct bench_pace *pace, uint64_t each_ns, uint64_t start_ns)
{
    uint32_t count;

    while ((count = bench_pace_next(pace)) > 0)
        bench_pace_took(pace, count, each_ns * count + start_ns);
    return pace->done;
}

static struct bench_pace pace_of(int64_t left_ns, uint32_t phases, uint32_t warmup, uint32_t least, uint32_t most)
{
    struct bench_budget budget = {.left_ns = left_ns, .phases = phases};
    struct bench_pace pace;

    bench_pace_init(&pace, &budget, warmup, least, most);
    return pace;
}

static void a_known_number_is_not_looked_for(void **state)
{
    struct bench_pace pace = pace_of(1000 * MS, 1, 5, 20, 20);

    (void)state;
    assert_int_equal(warm(&pace, 1000, 0), 5);
    assert_int_equal(bench_pace_iters(&pace), 20);
    pace = pace_of(1000 * MS, 1, 0, 20, 20);
    assert_int_equal(warm(&pace, 1000, 0), 0);
    assert_int_equal(bench_pace_iters(&pace), 20);
}

static void what_fits_into_the_share_is_measured(void **state)
{
    static const struct {
        int64_t left_ns;
        uint32_t phases, warmup;
        uint64_t each_ns;
        uint32_t warmed, iters;
    } rows[] = {
        {1000 * MS, 1, 1, 1 * MS, 1 + 4 + 16 + 64, 1000}, /* a fourth round would fit, of 256 ms it does not */
        {1000 * MS, 10, 1, 1 * MS, 1 + 4, 100},           /* a tenth of the time, a tenth of the messages */
        {1000 * MS, 1, 5, 1 * MS, 5 + 20, 1000},          /* 80 more would take longer than is left of 100 ms */
        {1000 * MS, 1, 0, 1 * MS, 1 + 4 + 16 + 64, 1000}, /* without a warm-up one message is sent all the same */
        {1000 * MS, 1, 1, 200 * MS, 1, 8},                /* the least, though it takes longer */
        {0, 1, 1, 1 * MS, 1, 8},                          /* also without any time */
        {1000 * MS, 0, 1, 200 * MS, 1, 8},
        {1000 * MS, 1, 1, 0, 5592405, 4194304}, /* the most: nothing takes no time */
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct bench_pace pace = pace_of(rows[i].left_ns, rows[i].phases, rows[i].warmup, 8, 4194304);
        assert_int_equal(warm(&pace, rows[i].each_ns, 0), rows[i].warmed);
        assert_int_equal(bench_pace_iters(&pace), rows[i].iters);
    }
}

/* The first message of a phase takes longer than those that follow: later rounds count. */
static void the_last_round_decides(void **state)
{
    struct bench_pace pace = pace_of(1000 * MS, 1, 1, 8, 1000000);

    (void)state;
    bench_pace_took(&pace, bench_pace_next(&pace), 10 * MS);
    assert_int_equal(bench_pace_next(&pace), 4);
    bench_pace_took(&pace, 4, 4 * MS);
    assert_int_equal(bench_pace_next(&pace), 16);
    bench_pace_took(&pace, 16, 80 * MS);
    assert_int_equal(bench_pace_next(&pace), 0);
    assert_int_equal(bench_pace_iters(&pace), 200);
}

/* Whatever the other node says: both numbers keep their bounds, and there is an end. */
static void anything_may_be_said(void **state)
{
    uint64_t random = 7;

    (void)state;
    for (int world = 0; world < 20000; world++) {
        uint32_t least = (uint32_t)(bench_random_next(&random) % 100) + 1;
        uint32_t most = least + (uint32_t)(bench_random_next(&random) % 3 ? bench_random_next(&random) % 1000000 : 0);
        struct bench_pace pace = pace_of((int64_t)(bench_random_next(&random) >> (1 + bench_random_next(&random) % 63)),
                                         (uint32_t)(bench_random_next(&random) % 4),
                                         (uint32_t)(bench_random_next(&random) % 3 * 1000000), least, most);
        uint32_t count;
        int rounds = 0;
        while ((count = bench_pace_next(&pace)) > 0) {
            assert_true(++rounds < 40);
            assert_true(count <= pace.first || count <= most);
            bench_pace_took(&pace, count, bench_random_next(&random) >> (bench_random_next(&random) % 64));
        }
        assert_in_range(bench_pace_iters(&pace), least, most);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_known_number_is_not_looked_for),
        cmocka_unit_test(what_fits_into_the_share_is_measured),
        cmocka_unit_test(the_last_round_decides),
        cmocka_unit_test(anything_may_be_said),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
