/* Sets of processors: their text, and what is not one. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "affinity/cpus.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void lists_are_read_and_written(void **state)
{
    static const struct {
        const char *in, *out;
        int count;
    } rows[] = {
        {"0", "0", 1},         {"0-3", "0-3", 4},       {"8-21,112-125", "8-21,112-125", 28},
        {"3,1,2", "1-3", 3},   {"1-3,2-5,5", "1-5", 5}, {"63,64", "63-64", 2},
        {"0,2,4", "0,2,4", 3}, {"2047", "2047", 1},     {"0-2047", "0-2047", 2048},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct wf_cpus set;
        char text[64], why[128];
        assert_int_equal(wf_cpus_parse(rows[i].in, &set, why, sizeof(why)), 0);
        assert_string_equal(wf_cpus_text(&set, text, sizeof(text)), rows[i].out);
        assert_int_equal(wf_cpus_count(&set), rows[i].count);
    }
}

static void what_is_no_list_is_refused(void **state)
{
    static const struct {
        const char *in, *quoted;
    } rows[] = {
        {"", "''"},
        {",", "''"},
        {"1,", "''"},
        {"a", "'a'"},
        {"1-", "'1-'"},
        {"-1", "'-1'"},
        {"5-2", "'5-2'"},
        {"1 2", "'1 2'"},
        {" 1", "' 1'"},
        {"1-2-3", "'1-2-3'"},
        {"0,2048", "'2048'"},
        {"+1", "'+1'"},
        {"99999999999999999999", "'99999999999999999999'"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct wf_cpus set = {.words = {7}};
        char why[128];
        assert_int_equal(wf_cpus_parse(rows[i].in, &set, why, sizeof(why)), -EINVAL);
        assert_non_null(strstr(why, rows[i].quoted));
        assert_int_equal(set.words[0], 7);
    }
}

static void a_short_text_says_that_it_is_cut(void **state)
{
    struct wf_cpus set = {0}, none = {0};
    char text[16];

    (void)state;
    for (int cpu = 0; cpu < 40; cpu += 2)
        wf_cpus_add(&set, cpu);
    assert_string_equal(wf_cpus_text(&set, text, sizeof(text)), "0,2,4,6,8,10…");
    assert_string_equal(wf_cpus_text(&none, text, sizeof(text)), "none");
    wf_cpus_text(&set, text, 3);
    assert_true(strlen(text) < 3);
}

static void sets_are_combined(void **state)
{
    struct wf_cpus a = {0}, b = {0}, c;
    char why[64];

    (void)state;
    assert_int_equal(wf_cpus_parse("0-99", &a, why, sizeof(why)), 0);
    assert_int_equal(wf_cpus_parse("50-149", &b, why, sizeof(why)), 0);
    c = a;
    wf_cpus_intersect(&c, &b);
    assert_int_equal(wf_cpus_count(&c), 50);
    assert_true(wf_cpus_within(&c, &a) && wf_cpus_within(&c, &b) && !wf_cpus_within(&a, &c));
    c = a;
    wf_cpus_unite(&c, &b);
    assert_int_equal(wf_cpus_count(&c), 150);
    wf_cpus_subtract(&c, &a);
    assert_int_equal(wf_cpus_next(&c, 0), 100);
    assert_int_equal(wf_cpus_next(&c, 149), 149);
    assert_int_equal(wf_cpus_next(&c, 150), -1);
    assert_false(wf_cpus_has(&c, 99));
    assert_false(wf_cpus_has(&c, -1) || wf_cpus_has(&c, WF_CPUS_MAX));
    assert_false(wf_cpus_equal(&a, &b));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_are_read_and_written),
        cmocka_unit_test(what_is_no_list_is_refused),
        cmocka_unit_test(a_short_text_says_that_it_is_cut),
        cmocka_unit_test(sets_are_combined),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
