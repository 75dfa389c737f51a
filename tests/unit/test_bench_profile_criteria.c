/* What is said of a profile, by its figures; and how its metadata spell numbers. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/profile/criteria.h"
#include "bench/profile/yaml.h"

/* A profile that leaves nothing to be desired. */
static const struct bench_criteria_input good = {
    .configs = 372,
    .complete = 372,
    .ranks = 4,
    .traces = 4,
    .sizes = 31,
    .sizes_complete = 31,
    .seed = 42,
    .digest = "4f2a",
    .drift_ppm = 2.5,
    .watched = true,
    .link_kinds = 2,
    .kinds_ratio = 3.5,
    .model_written = true,
    .repeated = 372,
    .steady = 362,
    .cv_median = 0.012,
    .large = 12,
    .near = 12,
    .near_least = 0.97,
    .small = 12,
    .even = 12,
    .small_spread = 0.08,
    .links = 12,
    .fitted = 12,
    .clear = 12,
    .r2_least = 0.97,
    .crossed = 12,
    .residual = 0.04,
};

static const struct bench_criterion *named(const struct bench_criterion *criteria, const char *name)
{
    for (int i = 0; i < BENCH_CRITERIA; i++)
        if (strcmp(criteria[i].name, name) == 0)
            return &criteria[i];
    fail_msg("there is no criterion '%s'", name);
    return NULL;
}

/* One criterion is that, and all others are met. */
static void expect_only(const struct bench_criteria_input *input, const char *name, enum bench_verdict verdict)
{
    struct bench_criterion criteria[BENCH_CRITERIA];

    bench_criteria_judge(input, criteria);
    for (int i = 0; i < BENCH_CRITERIA; i++) {
        enum bench_verdict wanted = strcmp(criteria[i].name, name) == 0 ? verdict : BENCH_MET;
        if (criteria[i].verdict != wanted)
            fail_msg("%s is %d: %s", criteria[i].name, criteria[i].verdict, criteria[i].found);
    }
    named(criteria, name);
}

static void a_good_profile_meets_all(void **state)
{
    expect_only(&good, "low variance", BENCH_MET);
    (void)state;
}

#define EXPECT(name, verdict, ...)                                                                                     \
    do {                                                                                                               \
        struct bench_criteria_input input = good;                                                                      \
        __VA_ARGS__;                                                                                                   \
        expect_only(&input, name, verdict);                                                                            \
    } while (0)

static void each_can_fail_alone(void **state)
{
    EXPECT("all configurations ran", BENCH_NOT_MET, input.complete = 371);
    EXPECT("all configurations ran", BENCH_NOT_MET, input.errors = 1);
    EXPECT("traces of all ranks", BENCH_NOT_MET, input.traces = 3);
    EXPECT("all sizes complete", BENCH_NOT_MET, input.sizes_complete = 30);
    EXPECT("reproducible", BENCH_NOT_MET, input.digest = NULL);
    EXPECT("low variance", BENCH_NOT_MET, input.steady = 353);
    EXPECT("low variance", BENCH_MET, input.steady = 354);
    EXPECT("bandwidth of large messages", BENCH_NOT_MET, input.near = 11);
    EXPECT("latency of small messages", BENCH_NOT_MET, input.even = 11);
    EXPECT("clock drift", BENCH_NOT_MET, input.drift_ppm = 1000);
    EXPECT("no throttling", BENCH_NOT_MET, input.throttled = 1);
    EXPECT("clear curves", BENCH_NOT_MET, input.clear = 11);
    EXPECT("two regimes", BENCH_NOT_MET, input.crossed = 11);
    EXPECT("effects of topology", BENCH_NOT_MET, input.kinds_ratio = 1.05);
    EXPECT("comparable to a simulator", BENCH_NOT_MET, input.model_written = false);
    (void)state;
}

static void what_cannot_be_said_is_not_applicable(void **state)
{
    EXPECT("low variance", BENCH_NOT_APPLICABLE, input.repeated = input.steady = 0);
    EXPECT("bandwidth of large messages", BENCH_NOT_APPLICABLE, input.large = input.near = 0);
    EXPECT("latency of small messages", BENCH_NOT_APPLICABLE, input.small = input.even = 0);
    EXPECT("clock drift", BENCH_NOT_APPLICABLE, input.drift_ppm = -1);
    EXPECT("no throttling", BENCH_NOT_APPLICABLE, input.watched = false);
    EXPECT("effects of topology", BENCH_NOT_APPLICABLE, input.link_kinds = 1);
    (void)state;
}

static void nothing_at_all_is_not_good(void **state)
{
    const struct bench_criteria_input nothing = {.drift_ppm = -1, .residual = -1};
    struct bench_criterion criteria[BENCH_CRITERIA];

    bench_criteria_judge(&nothing, criteria);
    for (int i = 0; i < BENCH_CRITERIA; i++)
        assert_int_not_equal(criteria[i].verdict, BENCH_MET);
    assert_int_equal(named(criteria, "two regimes")->verdict, BENCH_NOT_APPLICABLE);
    (void)state;
}

static void lines_and_json_say_the_same(void **state)
{
    struct bench_criteria_input input = good;
    struct bench_criterion criteria[BENCH_CRITERIA];
    char *text = NULL;
    size_t length = 0;
    const json_t *entry;
    size_t i;

    input.watched = false;
    input.traces = 3;
    bench_criteria_judge(&input, criteria);
    FILE *out = open_memstream(&text, &length);
    assert_non_null(out);
    bench_criteria_print(out, criteria, BENCH_CRITERIA);
    fclose(out);
    assert_non_null(strstr(text, "met      low variance: 97.3 % of 372 configurations below 5 %, median 1.2 %\n"));
    assert_non_null(strstr(text, "not met  traces of all ranks: of 3 of 4 ranks\n"));
    assert_non_null(strstr(text, "n/a      no throttling: no GPU was watched\n"));
    free(text);

    json_t *array = bench_criteria_to_json(criteria, BENCH_CRITERIA);
    assert_int_equal(json_array_size(array), BENCH_CRITERIA);
    json_array_foreach(array, i, entry)
    {
        enum bench_verdict verdict = criteria[i].verdict;
        const json_t *met = json_object_get(entry, "met");
        assert_string_equal(json_string_value(json_object_get(entry, "name")), criteria[i].name);
        assert_true(verdict == BENCH_NOT_APPLICABLE ? json_is_null(met) : json_is_boolean(met));
        assert_int_equal(json_is_true(met), verdict == BENCH_MET);
        assert_string_equal(
            json_string_value(json_object_get(entry, verdict == BENCH_NOT_APPLICABLE ? "reason" : "found")),
            criteria[i].found);
    }
    json_decref(array);
    (void)state;
}

/* --- figures of messages --- */

struct messages {
    struct bench_profile_row rows[400];
    size_t count;
};

/* Two of each size: both took `time_ns` but for `share` of it. */
static void add(struct messages *messages, uint32_t dst, uint64_t size, double time_ns, double share)
{
    for (int i = 0; i < 2; i++)
        messages->rows[messages->count++] = (struct bench_profile_row){
            .dst = dst, .size = size, .end_ns = llround(time_ns * (1 + (i ? share : -share)))};
}

static void measure(const struct messages *messages, struct bench_criteria_input *input)
{
    struct bench_model model;
    struct wf_status status;

    assert_int_equal(bench_model_init(&model, messages->rows, messages->count, &status), 0);
    assert_int_equal(bench_criteria_measure(&model, input, &status), 0);
    bench_model_fini(&model);
}

static void figures_come_from_the_messages(void **state)
{
    struct messages messages = {.count = 0};
    struct bench_criteria_input input = {.seed = 7, .steady = 99};

    /* To rank 1 as it should be; to rank 2 the largest size is slow, small ones differ, and repetitions, too. */
    for (int i = 0; i <= 24; i++) {
        double size = (double)(1ull << i), time = 20000 + 0.25 * size;
        add(&messages, 1, 1ull << i, time, 0.01);
        add(&messages, 2, 1ull << i, i == 24 ? 2 * time : i == 3 ? 1.5 * time : time, i < 5 ? 0.2 : 0.03);
    }
    measure(&messages, &input);
    assert_int_equal(input.seed, 7);
    assert_int_equal(input.repeated, 50);
    assert_int_equal(input.steady, 45);
    assert_true(fabs(input.cv_median - 0.02) < 1e-3); /* between 25 of 1 %, and 25 of 3 % and more */
    assert_int_equal(input.large, 2);
    assert_int_equal(input.near, 1);
    assert_true(fabs(input.near_least - 0.5) < 0.02);
    assert_int_equal(input.small, 2);
    assert_int_equal(input.even, 1);
    assert_true(fabs(input.small_spread - 0.5) < 0.02);
    assert_int_equal(input.links, 2);
    assert_int_equal(input.fitted, 2);
    assert_int_equal(input.crossed, 2);
    assert_true(input.r2_least > 0 && input.r2_least < 1);
    assert_true(input.residual >= 0 && input.residual < 0.1);
    (void)state;
}

/* Sizes that are all large, or all small, and one size alone. */
static void figures_are_not_made_up(void **state)
{
    struct messages messages = {.count = 0};
    struct bench_criteria_input input = {0};

    for (int i = 24; i < 28; i++)
        add(&messages, 1, 1ull << i, 20000 + 0.25 * (double)(1ull << i), 0);
    add(&messages, 2, 64, 20000, 0);
    measure(&messages, &input);
    assert_int_equal(input.links, 2);
    assert_int_equal(input.fitted, 1);
    assert_int_equal(input.crossed, 0);
    assert_int_equal(input.small, 0);
    assert_int_equal(input.large, 1);
    (void)state;
}

/* Readers of YAML 1.1 take a number without a point, or with an exponent without a sign, for a text. */
static void metadata_have_numbers_that_readers_take_for_numbers(void **state)
{
    json_t *root = json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:i, s:[f, i, f], s:[]}", "tiny", 5e-7, "small",
                             1.23456789012345e-5, "third", 0.000333333333333333, "whole", 2.0, "huge", 3e20, "ns",
                             123456789012.345, "minus", -1e-9, "count", 7, "list", 2e-6, 1, 0.5, "empty");
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);

    (void)state;
    assert_non_null(out);
    bench_put_yaml(root, out);
    fclose(out);
    assert_string_equal(text, "tiny: 5.0e-07\n"
                              "small: 1.23456789012345e-05\n"
                              "third: 0.000333333333333333\n"
                              "whole: 2.0\n"
                              "huge: 3.0e+20\n"
                              "ns: 123456789012.345\n"
                              "minus: -1.0e-09\n"
                              "count: 7\n"
                              "list: [2.0e-06, 1, 0.5]\n"
                              "empty: []\n");
    free(text);
    json_decref(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_profile_meets_all),
        cmocka_unit_test(each_can_fail_alone),
        cmocka_unit_test(what_cannot_be_said_is_not_applicable),
        cmocka_unit_test(nothing_at_all_is_not_good),
        cmocka_unit_test(lines_and_json_say_the_same),
        cmocka_unit_test(figures_come_from_the_messages),
        cmocka_unit_test(figures_are_not_made_up),
        cmocka_unit_test(metadata_have_numbers_that_readers_take_for_numbers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
