/* The model of a link, of times that are made of a known one. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/profile/model.h"
#include "bench/words/random.h"

#define SIZES 31 /* 1 to 2^30 bytes */
#define REPETITIONS 9
#define SEEDS 200

static const char *const backends[] = {"weft", "nccl"};

struct fixture {
    struct bench_profile_row rows[2 * SIZES * REPETITIONS];
    size_t count;
    struct bench_model model;
    struct wf_status status;
};

static int set_up(void **state)
{
    *state = calloc(1, sizeof(struct fixture));
    return *state ? 0 : -1;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;

    bench_model_fini(&fixture->model);
    free(fixture);
    return 0;
}

static void add(struct fixture *fixture, uint32_t src, uint32_t dst, uint64_t size, double time_ns, unsigned stamps)
{
    fixture->rows[fixture->count++] = (struct bench_profile_row){
        .src = src, .dst = dst, .size = size, .start_ns = 1000, .end_ns = 1000 + llround(time_ns), .stamps = stamps};
}

static const struct bench_model_link *fit(struct fixture *fixture)
{
    bench_model_fini(&fixture->model);
    assert_int_equal(bench_model_init(&fixture->model, fixture->rows, fixture->count, &fixture->status), 0);
    return fixture->model.links;
}

static double uniform(uint64_t *state)
{
    return (double)(bench_random_next(state) >> 11) * 0x1p-53;
}

/* Of a normal distribution. */
static double normal(uint64_t *state)
{
    double one = uniform(state) + 1e-300, other = uniform(state);

    return sqrt(-2 * log(one)) * cos(2 * 3.14159265358979 * other);
}

static double number(const json_t *object, const char *name)
{
    const json_t *member = json_object_get(object, name);

    assert_true(json_is_number(member));
    return json_number_value(member);
}

/* --- a line --- */

/* 20 us and 0.25 ns for a byte, which is 4 GB/s; whole nanoseconds for whole multiples of four. */
static void a_line_is_found_again(void **state)
{
    struct fixture *fixture = *state;

    for (int i = SIZES - 1; i >= 2; i--)
        add(fixture, 1, 0, 1ull << i, 20000 + 0.25 * (double)(1ull << i), 0);
    const struct bench_model_link *link = fit(fixture);
    assert_int_equal(fixture->model.link_count, 1);
    assert_true(link->fitted);
    assert_false(link->broken);
    assert_int_equal(link->fit.from, 4);
    assert_int_equal(link->fit.to, 1 << 30);
    assert_true(fabs(link->fit.alpha_ns - 20000) < 1e-5);
    assert_true(fabs(link->fit.beta_ns - 0.25) < 1e-10);
    assert_true(link->fit.r2 > 1 - 1e-9);
    assert_true(bench_model_residual(&fixture->model) < 1e-9);
}

static void the_file_says_it_with_units(void **state)
{
    struct fixture *fixture = *state;

    for (int i = 2; i < SIZES; i++)
        add(fixture, 1, 0, 1ull << i, 20000 + 0.25 * (double)(1ull << i), i == 5 ? BENCH_STAMP_ALIGNMENT : 0);
    fit(fixture);
    json_t *root = bench_model_to_json(&fixture->model, backends);
    assert_string_equal(json_string_value(json_object_get(root, "schema")), "weft.model/1");
    const json_t *link = json_array_get(json_object_get(root, "links"), 0);
    assert_string_equal(json_string_value(json_object_get(link, "backend")), "weft");
    assert_int_equal(json_integer_value(json_object_get(link, "src")), 1);
    assert_true(fabs(number(link, "alpha_us") - 20) < 1e-6);
    assert_true(fabs(number(link, "bandwidth_gb_per_s") - 4) < 1e-6);
    assert_true(fabs(number(link, "crossover_bytes") - 80000) < 0.1);
    assert_true(number(link, "alpha_us_low") <= number(link, "alpha_us_high"));
    assert_int_equal(json_integer_value(json_object_get(link, "doubtful_sizes")), 1);
    assert_true(json_is_null(json_object_get(link, "pieces")));
    assert_true(json_is_null(json_object_get(link, "reason")));
    assert_int_equal(json_array_size(json_object_get(link, "points")), SIZES - 2);
    assert_int_equal(
        json_integer_value(json_object_get(json_array_get(json_object_get(link, "points"), 0), "size_bytes")), 4);
    json_decref(root);
}

/* Each message within 5 % or so, and one of ten far off: the medians do not mind. */
static void add_noisy(struct fixture *fixture, uint64_t *seed)
{
    fixture->count = 0;
    for (int i = 0; i < SIZES; i++)
        for (int k = 0; k < REPETITIONS; k++) {
            double time = (20000 + 0.25 * (double)(1ull << i)) * exp(0.05 * normal(seed));
            add(fixture, 0, 1, 1ull << i, uniform(seed) < 0.1 ? 30 * time : time, 0);
        }
}

static void noise_leaves_the_line_within_its_intervals(void **state)
{
    struct fixture *fixture = *state;
    int alpha_within = 0, beta_within = 0;

    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        uint64_t random = seed;
        add_noisy(fixture, &random);
        const struct bench_model_fit *found = &fit(fixture)->fit;
        assert_true(fabs(found->alpha_ns / 20000 - 1) < 0.1);
        assert_true(fabs(found->beta_ns / 0.25 - 1) < 0.1);
        alpha_within += fabs(found->alpha_ns - 20000) <= found->alpha_half_ns;
        beta_within += fabs(found->beta_ns - 0.25) <= found->beta_half_ns;
        assert_false(fixture->model.links[0].broken);
    }
    /* 95 % of 200 are 190, give or take 3; outliers push medians up a little. */
    assert_true(alpha_within > SEEDS * 3 / 4 && alpha_within < SEEDS);
    assert_true(beta_within > SEEDS * 3 / 4 && beta_within < SEEDS);
}

/* An error of a percent at 1 byte counts as much as one at 1 GiB, where it is ten thousand times as long. */
static void small_sizes_are_not_drowned(void **state)
{
    struct fixture *fixture = *state;

    for (int i = 0; i < SIZES; i++) {
        double time = 20000 + 0.25 * (double)(1ull << i);
        add(fixture, 0, 1, 1ull << i, i >= 28 ? 1.05 * time : time, 0);
    }
    const struct bench_model_fit *found = &fit(fixture)->fit;
    assert_true(fabs(found->alpha_ns / 20000 - 1) < 0.01);
    assert_true(found->beta_ns > 0.25 && found->beta_ns < 1.05 * 0.25);
}

/* --- two lines --- */

static void two_regimes_are_found_at_their_boundary(void **state)
{
    struct fixture *fixture = *state;

    for (int i = 0; i < SIZES; i++) {
        double size = (double)(1ull << i);
        add(fixture, 0, 1, 1ull << i, i <= 16 ? 8000 + 0.5 * size : 120000 + 0.1 * size, 0);
    }
    const struct bench_model_link *link = fit(fixture);
    assert_true(link->broken);
    assert_int_equal(link->pieces[0].to, 1 << 16);
    assert_int_equal(link->pieces[1].from, 1 << 17);
    assert_true(fabs(link->pieces[0].alpha_ns / 8000 - 1) < 1e-3);
    assert_true(fabs(link->pieces[0].beta_ns / 0.5 - 1) < 1e-2);
    assert_true(fabs(link->pieces[1].alpha_ns / 120000 - 1) < 1e-3);
    assert_true(fabs(link->pieces[1].beta_ns / 0.1 - 1) < 1e-3);
    json_t *root = bench_model_to_json(&fixture->model, backends);
    const json_t *pieces = json_object_get(json_array_get(json_object_get(root, "links"), 0), "pieces");
    assert_int_equal(json_array_size(pieces), 2);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(pieces, 1), "from_bytes")), 1 << 17);
    json_decref(root);
}

/* --- too little --- */

static void two_sizes_make_no_line(void **state)
{
    struct fixture *fixture = *state;

    add(fixture, 0, 1, 64, 10000, 0);
    add(fixture, 0, 1, 128, 11000, 0);
    add(fixture, 0, 1, 256, 0, 0); /* took no time */
    assert_false(fit(fixture)->fitted);
    assert_true(bench_model_residual(&fixture->model) < 0);
    json_t *root = bench_model_to_json(&fixture->model, backends);
    const json_t *link = json_array_get(json_object_get(root, "links"), 0);
    assert_true(json_is_null(json_object_get(link, "alpha_us")));
    assert_true(json_is_null(json_object_get(link, "bandwidth_gb_per_s_low")));
    assert_true(json_is_null(json_object_get(link, "r2")));
    assert_string_equal(json_string_value(json_object_get(link, "reason")), "2 sizes have a time, and a line needs 3");
    json_decref(root);
}

static void links_are_kept_apart(void **state)
{
    struct fixture *fixture = *state;

    for (int i = 10; i < 20; i++) {
        add(fixture, 1, 0, 1ull << i, 1000 + (double)(1ull << i), 0);
        add(fixture, 0, 1, 1ull << i, 5000 + 2 * (double)(1ull << i), 0);
        add(fixture, 0, 1, 1ull << i, 7000 + 4 * (double)(1ull << i), 0);
        fixture->rows[fixture->count - 1].backend = 1;
    }
    const struct bench_model_link *links = fit(fixture);
    assert_int_equal(fixture->model.link_count, 3);
    assert_true(fabs(links[0].fit.beta_ns - 2) < 1e-9); /* by backend, source, destination */
    assert_true(fabs(links[1].fit.beta_ns - 1) < 1e-9);
    assert_true(fabs(links[2].fit.beta_ns - 4) < 1e-9);
    assert_int_equal(links[2].backend, 1);
}

static void of_nothing_there_is_no_link(void **state)
{
    struct fixture *fixture = *state;

    fit(fixture);
    assert_int_equal(fixture->model.link_count, 0);
    json_t *root = bench_model_to_json(&fixture->model, backends);
    assert_int_equal(json_array_size(json_object_get(root, "links")), 0);
    assert_true(json_is_null(json_object_get(root, "residual_median")));
    json_decref(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_line_is_found_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_file_says_it_with_units, set_up, tear_down),
        cmocka_unit_test_setup_teardown(noise_leaves_the_line_within_its_intervals, set_up, tear_down),
        cmocka_unit_test_setup_teardown(small_sizes_are_not_drowned, set_up, tear_down),
        cmocka_unit_test_setup_teardown(two_regimes_are_found_at_their_boundary, set_up, tear_down),
        cmocka_unit_test_setup_teardown(two_sizes_make_no_line, set_up, tear_down),
        cmocka_unit_test_setup_teardown(links_are_kept_apart, set_up, tear_down),
        cmocka_unit_test_setup_teardown(of_nothing_there_is_no_link, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
