/* The points of a sweep: what --vary may say, which points there are, which one the baseline is. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/sweep/space.h"

struct fixture {
    struct wf_config config;
    struct bench_space space;
    struct wf_status status;
};

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);

    assert_non_null(fixture);
    wf_config_init(&fixture->config);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;

    bench_space_fini(&fixture->space);
    free(fixture);
    return 0;
}

static void set(struct fixture *fixture, enum wf_setting_id id, const char *text)
{
    assert_int_equal(wf_config_set(&fixture->config, id, text, WF_ORIGIN_COMMAND, "test", &fixture->status), 0);
}

static int vary(struct fixture *fixture, const char *text)
{
    bench_space_fini(&fixture->space);
    set(fixture, WF_SET_VARY, text);
    return bench_space_init(&fixture->space, &fixture->config, BENCH_PAIR, &fixture->status);
}

static void assert_values(const struct bench_axis *axis, const char *const *values)
{
    int count = 0;

    for (; values[count]; count++) {
        assert_true(count < axis->count);
        assert_string_equal(axis->values[count], values[count]);
    }
    assert_int_equal(axis->count, count);
}

static void lists_and_ranges(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(vary(fixture, "window=16..128x2 chunk=256K,1M  spin_us=0..10+5"), 0);
    assert_int_equal(fixture->space.axis_count, 3);
    assert_values(&fixture->space.axes[0], (const char *[]){"16", "32", "64", "128", NULL});
    assert_values(&fixture->space.axes[1], (const char *[]){"256K", "1M", NULL});
    assert_values(&fixture->space.axes[2], (const char *[]){"0", "5", "10", NULL});
    assert_int_equal(vary(fixture, "chunk=256K..2Mx2 channels=1..3"), 0);
    assert_values(&fixture->space.axes[0], (const char *[]){"256K", "512K", "1M", "2M", NULL});
    assert_values(&fixture->space.axes[1], (const char *[]){"1", "2", "3", NULL});
    /* What has commas in it needs another mark between values. */
    assert_int_equal(vary(fixture, "rails=eth1|eth1,eth2"), 0);
    assert_values(&fixture->space.axes[0], (const char *[]){"eth1", "eth1,eth2", NULL});
    /* The end of a range that its steps do not meet is not in it; and no number is too large to count to. */
    assert_int_equal(vary(fixture, "window=5..20x3 requests=16777215..16777216"), 0);
    assert_values(&fixture->space.axes[0], (const char *[]){"5", "15", NULL});
    assert_values(&fixture->space.axes[1], (const char *[]){"16777215", "16777216", NULL});
}

static void points_and_baseline(void **state)
{
    struct fixture *fixture = *state;
    char text[100];
    int at[BENCH_AXES_MAX];

    /* chunk is 512K and window 64 by default: a point of this grid. */
    assert_int_equal(vary(fixture, "chunk=256K,512K,1M window=32,64"), 0);
    assert_int_equal(fixture->space.grid, 6);
    assert_int_equal(fixture->space.points, 6);
    assert_string_equal(bench_space_text(&fixture->space, fixture->space.baseline, text, sizeof text),
                        "chunk=512K window=64");
    for (uint32_t point = 0; point < 6; point++) {
        assert_true(bench_space_place(&fixture->space, point, at));
        assert_int_equal(bench_space_point(&fixture->space, at), point);
    }
    assert_string_equal(bench_space_value(&fixture->space, 5, 0), "1M");
    assert_string_equal(bench_space_value(&fixture->space, 4, 1), "32");
    /* The same written otherwise. */
    assert_int_equal(vary(fixture, "chunk=524288,1048576"), 0);
    assert_int_equal(fixture->space.baseline, 0);
    /* One more where it is none of the grid: what the user said, or the default. */
    assert_int_equal(vary(fixture, "chunk=256K,1M"), 0);
    assert_int_equal(fixture->space.points, 3);
    assert_int_equal(fixture->space.baseline, 2);
    assert_string_equal(bench_space_value(&fixture->space, 2, 0), "512K");
    assert_false(bench_space_place(&fixture->space, 2, at));
    set(fixture, WF_SET_CHUNK, "1M");
    assert_int_equal(vary(fixture, "chunk=256K,1M"), 0);
    assert_int_equal(fixture->space.points, 2);
    assert_int_equal(fixture->space.baseline, 1);
    /* Words for on and off are the same value. */
    assert_int_equal(vary(fixture, "crc=no,yes"), 0);
    assert_int_equal(fixture->space.baseline, 0);
}

static void rails_may_be_counted(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(vary(fixture, "rails=1..4 window=32,64"), 0);
    assert_true(bench_space_counts_rails(&fixture->space.axes[0], "4"));
    assert_false(bench_space_counts_rails(&fixture->space.axes[0], "eth4"));
    assert_false(bench_space_counts_rails(&fixture->space.axes[1], "64"));
    assert_false(bench_space_counts_rails(&fixture->space.axes[0], "4294967297"));
    assert_false(bench_space_counts_rails(&fixture->space.axes[0], "01"));
    assert_int_equal(bench_space_set_rails(&fixture->space, 3, 2, &fixture->status), 1);
    assert_values(&fixture->space.axes[0], (const char *[]){"1", "2", "3", NULL});
    assert_int_equal(fixture->space.points, 6);
    assert_int_equal(fixture->space.baseline, 3); /* two rails, window 64 */
    assert_int_equal(vary(fixture, "rails=2..4"), 0);
    assert_int_equal(bench_space_set_rails(&fixture->space, 1, 1, &fixture->status), -EINVAL);
    assert_non_null(strstr(fixture->status.text, "a number from 1 to 1"));
    /* Names are nobody's business here. */
    assert_int_equal(vary(fixture, "rails=eth1|eth1,eth2"), 0);
    assert_int_equal(bench_space_set_rails(&fixture->space, 1, 1, &fixture->status), 0);
    assert_int_equal(fixture->space.points, 3);
}

/* The baseline is a name, which moves up where numbers before it are left out. */
static void the_baseline_moves_with_its_name(void **state)
{
    struct fixture *fixture = *state;

    set(fixture, WF_SET_RAILS, "eth1");
    assert_int_equal(vary(fixture, "rails=9,8,eth1,eth2"), 0);
    assert_int_equal(fixture->space.baseline, 2);
    assert_int_equal(bench_space_set_rails(&fixture->space, 3, 1, &fixture->status), 2);
    assert_int_equal(fixture->space.points, 2);
    assert_int_equal(fixture->space.baseline, 0);
    /* One rail by its number would be the first, and the user has named another. */
    assert_int_equal(vary(fixture, "rails=eth2,1"), 0);
    assert_int_equal(fixture->space.baseline, 2);
    assert_int_equal(vary(fixture, "rails=eth1,1"), 0);
    assert_int_equal(bench_space_set_rails(&fixture->space, 3, 1, &fixture->status), 0);
    assert_int_equal(fixture->space.baseline, 0);
}

static void what_is_wrong_is_said(void **state)
{
    static const struct {
        const char *vary, *said;
    } cases[] = {
        {"", "what is to be varied?"},
        {"chunk", "expected NAME=VALUE,VALUE"},
        {"=1,2", "expected NAME=VALUE,VALUE"},
        {"chunk=", "expected NAME=VALUE,VALUE"},
        {"chnk=1K,2K", "did you mean 'chunk'"},
        {"chunk=1K,5X", "'5X'"},
        {"chunk=1K,,2K", "chunk"},
        {"chunk=1K,1024", "stands there twice"},
        {"iters=auto,0", "stands there twice"},
        {"crc=on,yes", "stands there twice"},
        {"chunk=1K,2K chunk=4K", "twice"},
        {"window=64..16x2", "is no range"},
        {"window=0..16x2", "is no range"},
        {"window=1..16x1", "is no range"},
        {"window=1..16+0", "is no range"},
        {"window=1..", "is no range"},
        {"window=1..16x2y", "is no range"},
        {"window=1..1000", "more than 64 values"},
        {"window=64", "nothing but the value"},
        {"window=1..60 channels=1..60 spin_us=1..60", "more than 100000 points"},
        {"out=a,b", "vary another setting"},
        {"port=1,2", "vary another setting"},
        {"key_file=a,b", "vary another setting"},
        {"vary=1,2", "vary another setting"},
        {"rounds=1,2", "vary another setting"},
        {"pattern=mesh,pairs", "vary another setting"}, /* weft pair has none */
        {"chunk=1K,2K window=1,2 channels=1,2 spin_us=1,2 eager=1K,2K call=8K,16K peers=1,2 requests=1,2 crc=on,off",
         "at most 8 settings"},
    };
    struct fixture *fixture = *state;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fixture->status.text[0] = '\0';
        if (vary(fixture, cases[i].vary) != -EINVAL || !strstr(fixture->status.text, cases[i].said))
            fail_msg("'%s': %s", cases[i].vary, fixture->status.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(lists_and_ranges, set_up, tear_down),
        cmocka_unit_test_setup_teardown(points_and_baseline, set_up, tear_down),
        cmocka_unit_test_setup_teardown(rails_may_be_counted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_baseline_moves_with_its_name, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_wrong_is_said, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
