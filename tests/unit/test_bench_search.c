/*
 * The order of a sweep's runs, on surfaces that are known: every run is worth what its point is, but for noise, and for
 * a minute in which somebody else had the machine.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/sweep/search.h"
#include "bench/words/random.h"

#define SIDE 8
#define POINTS (SIDE * SIDE)
#define ROUNDS 5
#define SEEDS 100
#define NOISE 0.03
#define MINUTE 30 /* runs of two seconds */
#define DISTURBED 0.6

struct surface {
    double value[POINTS], best;
};

static void read_surface(const char *name, struct surface *surface)
{
    char path[300], line[400];

    snprintf(path, sizeof path, "%s/%s.txt", SWEEP_FIXTURES, name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    int count = 0;
    surface->best = 0;
    while (fgets(line, sizeof line, file)) {
        char *rest = line, *end;
        while (line[0] != '#' && count < POINTS) {
            double value = strtod(rest, &end);
            if (end == rest)
                break;
            surface->value[count++] = value;
            surface->best = value > surface->best ? value : surface->best;
            rest = end;
        }
    }
    fclose(file);
    assert_int_equal(count, POINTS);
}

/* Two axes; the baseline is in a corner where little is to be had. */
static struct bench_space space_of(int side)
{
    struct bench_space space = {.axis_count = 2};

    for (int i = 0; i < 2; i++)
        space.axes[i].count = side;
    space.grid = space.points = (uint32_t)(side * side);
    space.baseline = (uint32_t)side + 3;
    return space;
}

static double uniform(uint64_t *state)
{
    return (double)(bench_random_next(state) >> 11) * 0x1p-53;
}

static double noise(uint64_t *state)
{
    double one = uniform(state) + 1e-300, other = uniform(state);

    return exp(NOISE * sqrt(-2 * log(one)) * cos(2 * 3.14159265358979 * other));
}

/* Runs a whole sweep; `minute` runs in a row are disturbed. Returns the runs. */
static uint32_t sweep(struct bench_search *search, const struct surface *surface, uint64_t seed, int minute)
{
    uint64_t state = seed * 977 + 5;
    uint32_t point, runs = 0, begin = (uint32_t)(uniform(&state) * 0.9 * search->runs_most);

    while (bench_search_next(search, &point)) {
        bool disturbed = runs >= begin && runs < begin + (uint32_t)minute;
        bench_search_take(search, surface->value[point] * noise(&state) * (disturbed ? DISTURBED : 1));
        runs++;
        assert_true(runs <= search->runs_most);
    }
    return runs;
}

/* In how many of the seeds the point that is recommended is within 3 % of the best. */
static int good_seeds(const char *name, int minute, int *wins)
{
    const struct bench_space space = space_of(SIDE);
    struct surface surface;
    int good = 0;

    read_surface(name, &surface);
    *wins = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct bench_search search;
        struct wf_status status;
        assert_int_equal(bench_search_init(&search, &space, true, ROUNDS, 0, seed, &status), 0);
        assert_true(search.automatic);
        assert_true(3 * sweep(&search, &surface, seed, minute) <= POINTS * ROUNDS);
        struct bench_comparison confirmed;
        bool won = bench_search_wins(&search);
        bench_search_confirmed(&search, &confirmed); /* whatever the search took, this much is left */
        assert_true(bench_search_best(&search) == space.baseline || confirmed.pairs == ROUNDS);
        good += surface.value[won ? bench_search_best(&search) : space.baseline] >= 0.97 * surface.best;
        *wins += won;
        bench_search_fini(&search);
    }
    return good;
}

static void a_search_finds_the_best_in_a_third_of_the_runs(void **state)
{
    static const char *const names[] = {"ridge", "narrow"};
    int wins;

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        for (int minute = 0; minute <= MINUTE; minute += MINUTE) {
            int good = good_seeds(names[i], minute, &wins);
            if (good < 95)
                fail_msg("%s, %d disturbed runs: %d of %d seeds", names[i], minute, good, SEEDS);
        }
}

static void where_nothing_differs_it_says_so(void **state)
{
    int wins;

    (void)state;
    for (int minute = 0; minute <= MINUTE; minute += MINUTE) {
        good_seeds("flat", minute, &wins);
        if (wins > 5)
            fail_msg("%d of %d seeds say that something is better", wins, SEEDS);
    }
}

static void a_seed_gives_the_same_order(void **state)
{
    const struct bench_space space = space_of(SIDE);
    struct surface surface;
    struct wf_status status;
    struct bench_search one, again, other;
    bool differs = false;

    (void)state;
    read_surface("ridge", &surface);
    assert_int_equal(bench_search_init(&one, &space, true, ROUNDS, 0, 7, &status), 0);
    assert_int_equal(bench_search_init(&again, &space, true, ROUNDS, 0, 7, &status), 0);
    assert_int_equal(bench_search_init(&other, &space, true, ROUNDS, 0, 8, &status), 0);
    sweep(&one, &surface, 1, 0);
    sweep(&again, &surface, 1, 0);
    sweep(&other, &surface, 1, 0);
    assert_int_equal(one.trial_count, again.trial_count);
    for (size_t i = 0; i < one.trial_count; i++) {
        assert_int_equal(one.trials[i].point, again.trials[i].point);
        differs |= i < other.trial_count && one.trials[i].point != other.trials[i].point;
    }
    assert_true(differs);
    bench_search_fini(&one);
    bench_search_fini(&again);
    bench_search_fini(&other);
}

/* --- the grid --- */

static void a_round_has_every_point_once(void **state)
{
    const struct bench_space space = space_of(4);
    struct bench_search search;
    struct wf_status status;
    uint32_t point, before[16] = {0}, seen[16];
    bool moved = false;

    (void)state;
    assert_int_equal(bench_search_init(&search, &space, false, ROUNDS, 0, 42, &status), 0);
    for (int round = 0; round < 3; round++) {
        memset(seen, 0, sizeof seen);
        for (int i = 0; i < 16; i++) {
            assert_true(bench_search_next(&search, &point));
            assert_int_equal(search.stage, BENCH_STAGE_FIRST);
            seen[point]++;
            moved |= round > 0 && before[i] != point;
            before[i] = point;
            bench_search_take(&search, 1);
        }
        for (int i = 0; i < 16; i++)
            assert_int_equal(seen[i], 1);
    }
    assert_true(moved); /* each round has an order of its own */
    bench_search_fini(&search);
}

static void hopeless_and_failing_points_are_given_up(void **state)
{
    const struct bench_space space = space_of(4);
    struct bench_search search;
    struct wf_status status;
    uint32_t point;
    uint64_t random = 3;

    (void)state;
    assert_int_equal(bench_search_init(&search, &space, false, ROUNDS, 0, 42, &status), 0);
    while (bench_search_next(&search, &point)) {
        double score = point == 0 ? 0 : point == 1 ? 0.2 : point == 5 ? 1.3 : 1;
        bench_search_take(&search, score * noise(&random));
    }
    assert_int_equal(search.tallies[0].failures, 2);
    assert_int_equal(search.tallies[0].runs, 2);
    assert_true(search.tallies[1].hopeless);
    assert_int_equal(search.tallies[1].runs, 3);
    assert_false(search.tallies[space.baseline].hopeless); /* everything is compared with it */
    assert_int_equal(search.tallies[space.baseline].runs, 2 * ROUNDS);
    assert_int_equal(search.tallies[5].runs, 2 * ROUNDS);
    assert_int_equal(bench_search_best(&search), 5);
    assert_true(bench_search_wins(&search));
    bench_search_fini(&search);
}

/* What made a point the best does not count for it: only runs that came after the choice do. */
static void luck_does_not_win(void **state)
{
    const struct bench_space space = space_of(4);
    struct bench_search search;
    struct bench_comparison confirmed;
    struct wf_status status;
    uint32_t point;
    uint64_t random = 9;

    (void)state;
    assert_int_equal(bench_search_init(&search, &space, false, ROUNDS, 0, 42, &status), 0);
    while (bench_search_next(&search, &point)) {
        bool lucky = point == 9 && search.stage == BENCH_STAGE_FIRST;
        bench_search_take(&search, (lucky ? 2 : 1) * noise(&random));
    }
    assert_int_equal(bench_search_best(&search), 9);
    bench_search_confirmed(&search, &confirmed);
    assert_int_equal(confirmed.pairs, ROUNDS);
    assert_true(confirmed.low < 1 && confirmed.ratio < 1.2);
    assert_false(bench_search_wins(&search));
    bench_search_fini(&search);
}

/* The best is chosen once: a run that fails in the confirmation costs its pair, not the choice. */
static void a_failure_in_the_confirmation_costs_a_pair(void **state)
{
    const struct bench_space space = space_of(4);
    struct bench_search search;
    struct bench_comparison confirmed;
    struct wf_status status;
    uint32_t point, seen = 0, confirming = 0;
    uint64_t random = 9;

    (void)state;
    assert_int_equal(bench_search_init(&search, &space, false, ROUNDS, 0, 42, &status), 0);
    while (bench_search_next(&search, &point)) {
        bool fails = point == 9 && (seen++ == 0 || (search.stage == BENCH_STAGE_CONFIRM && confirming++ == 1));
        bench_search_take(&search, fails ? 0 : (point == 9 ? 2 : 1) * noise(&random));
    }
    assert_int_equal(search.tallies[9].failures, 2);
    assert_int_equal(bench_search_best(&search), 9);
    bench_search_confirmed(&search, &confirmed);
    assert_true(confirmed.pairs >= 1 && confirmed.pairs < ROUNDS);
    assert_true(confirmed.ratio > 1.5);
    bench_search_fini(&search);
}

static void nothing_works(void **state)
{
    const struct bench_space space = space_of(SIDE);
    struct wf_status status;

    (void)state;
    for (int automatic = 0; automatic < 2; automatic++) {
        struct bench_search search;
        uint32_t point, runs = 0;
        assert_int_equal(bench_search_init(&search, &space, automatic, ROUNDS, 0, 42, &status), 0);
        for (; bench_search_next(&search, &point); runs++)
            bench_search_take(&search, 0);
        assert_true(runs <= 2 * POINTS); /* no point more than twice */
        assert_int_equal(bench_search_best(&search), space.baseline);
        assert_true(bench_search_score(&search, space.baseline) <= 0);
        assert_false(bench_search_wins(&search));
        bench_search_fini(&search);
    }
}

static void small_grids_are_run_whole(void **state)
{
    const struct bench_space space = space_of(4);
    struct bench_search search;
    struct wf_status status;

    (void)state;
    assert_int_equal(bench_search_init(&search, &space, true, ROUNDS, 0, 42, &status), 0);
    assert_false(search.automatic);
    assert_int_equal(search.runs_most, 16 * ROUNDS + 2 * ROUNDS);
    bench_search_fini(&search);
    /* But what the user has said is not put aside. */
    assert_int_equal(bench_search_init(&search, &space, true, ROUNDS, 27, 42, &status), -EINVAL);
    bench_search_fini(&search);
    assert_int_equal(bench_search_init(&search, &space, true, ROUNDS, 40, 42, &status), 0);
    assert_true(search.automatic);
    bench_search_fini(&search);
}

/* --- figures --- */

static void intervals(void **state)
{
    const double ours[] = {2.0, 2.2, 1.8, 2.0, 2.0}, theirs[] = {1.0, 1.1, 0.9, 1.0, 1.0}, noisy[] = {1, 2, 0.5, 1, 1};
    struct bench_comparison out;
    double values[] = {5, 1, 3, 2};

    (void)state;
    bench_figures_compare(ours, theirs, 5, &out);
    assert_float_equal(out.ratio, 2, 1e-9); /* what disturbs both does not count */
    assert_float_equal(out.low, 2, 1e-9);
    /* ln: 0, 0.6931, -0.6931, 0, 0: standard deviation 0.4901, over sqrt(5) 0.2192, times 2.776 0.6085. */
    bench_figures_compare(noisy, (const double[]){1, 1, 1, 1, 1}, 5, &out);
    assert_float_equal(out.ratio, 1, 1e-9);
    assert_float_equal(out.high, exp(0.6085), 1e-3);
    assert_float_equal(out.low, exp(-0.6085), 1e-3);
    bench_figures_compare(ours, theirs, 1, &out);
    assert_true(out.pairs == 1 && out.low == 0 && isinf(out.high));
    bench_figures_compare(ours, theirs, 0, &out);
    assert_int_equal(out.pairs, 0);
    assert_float_equal(bench_figures_median(values, 4), 2.5, 1e-9);
    assert_float_equal(bench_figures_median(values, 3), 2, 1e-9); /* sorted by now: 1, 2, 3 */
    assert_float_equal(bench_figures_cv((const double[]){1, 3}, 2), sqrt(2) / 2, 1e-9);
    assert_true(bench_figures_cv(values, 1) < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_search_finds_the_best_in_a_third_of_the_runs),
        cmocka_unit_test(where_nothing_differs_it_says_so),
        cmocka_unit_test(a_seed_gives_the_same_order),
        cmocka_unit_test(a_round_has_every_point_once),
        cmocka_unit_test(hopeless_and_failing_points_are_given_up),
        cmocka_unit_test(luck_does_not_win),
        cmocka_unit_test(a_failure_in_the_confirmation_costs_a_pair),
        cmocka_unit_test(nothing_works),
        cmocka_unit_test(small_grids_are_run_whole),
        cmocka_unit_test(intervals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
