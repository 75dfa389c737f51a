/* The processors that a user gives to rails: what is read, and what is refused with which words. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "affinity/bindings.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* As "rail=list rail=list". */
static void bindings_are_read(void **state)
{
    static const struct {
        const char *in, *out;
    } rows[] = {
        {"", ""},
        {";", ""},
        {" ; ;; ", ""},
        {"eth1:8-21,112-125", "eth1=8-21,112-125"},
        {"eth1:8-21,112-125;eth2:8-21,112-125;", "eth1=8-21,112-125 eth2=8-21,112-125"},
        {"  eth1 : 8-21 ;\teth2:0\n", "eth1=8-21 eth2=0"},
        {"10.0.0.1:3;10.0.0.2:4", "10.0.0.1=3 10.0.0.2=4"},
        {"fe80::1:2", "fe80::1=2"},
        {"::1:0-3;fe80::1%eth0:4", "::1=0-3 fe80::1%eth0=4"},
        {"eth1:0:8", "eth1:0=8"},
        {"lo:2047", "lo=2047"},
        /* The last colon ends the rail, whatever it looks like then: the planner knows none of that name. */
        {"eth1:1,eth2:2", "eth1:1,eth2=2"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct wf_bindings bindings;
        char why[256] = "", text[256] = "", list[64];
        if (wf_bindings_parse(rows[i].in, &bindings, why, sizeof(why)) != 0)
            fail_msg("'%s': %s", rows[i].in, why);
        for (int k = 0; k < bindings.count; k++) {
            size_t used = strlen(text);
            snprintf(text + used, sizeof(text) - used, "%s%s=%s", k ? " " : "", bindings.of[k].rail,
                     wf_cpus_text(&bindings.of[k].cpus, list, sizeof(list)));
        }
        assert_string_equal(text, rows[i].out);
    }
}

static void no_text_is_no_bindings(void **state)
{
    struct wf_bindings bindings = {.count = 5};
    char why[64];

    (void)state;
    assert_int_equal(wf_bindings_parse(NULL, &bindings, why, sizeof(why)), 0);
    assert_int_equal(bindings.count, 0);
}

static void what_is_no_binding_is_quoted(void **state)
{
    static const struct {
        const char *in, *quoted;
    } rows[] = {
        {"eth1", "'eth1'"},
        {"8-21", "'8-21'"},
        {":8-21", "':8-21'"},
        {" : 3", "': 3'"},
        {"eth1:", "'eth1:'"},
        {"eth1:a", "'a'"},
        {"eth1:3;eth2:5-2", "'5-2'"},
        {"eth1:3,", "'eth1:3,'"},
        {"eth1:1, 2", "' 2'"},
        {"eth1:2048", "'2048'"},
        {"eth1:1;eth2:2;eth1:3", "'eth1' stands there twice"},
        {"fe80::", "'fe80::'"},
        {"0123456789012345678901234567890123456789012345678901234567890123:1", "too long for the name"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct wf_bindings bindings = {.count = 7};
        char why[512] = "";
        assert_int_equal(wf_bindings_parse(rows[i].in, &bindings, why, sizeof(why)), -EINVAL);
        if (!strstr(why, rows[i].quoted))
            fail_msg("'%s' gives: %s", rows[i].in, why);
        assert_int_equal(bindings.count, 7);
    }
}

static void more_rails_than_there_can_be(void **state)
{
    char text[16 * (WF_PLAN_RAILS + 1)] = "", why[256] = "";
    struct wf_bindings bindings;

    (void)state;
    for (int i = 0; i < WF_PLAN_RAILS; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%se%d:1", i ? ";" : "", i);
    assert_int_equal(wf_bindings_parse(text, &bindings, why, sizeof why), 0);
    assert_int_equal(bindings.count, WF_PLAN_RAILS);
    snprintf(text + strlen(text), sizeof text - strlen(text), ";more:1");
    assert_int_equal(wf_bindings_parse(text, &bindings, why, sizeof why), -EINVAL);
    assert_non_null(strstr(why, "'more:1'"));
}

static void a_list_without_end_is_refused(void **state)
{
    size_t room = 200000;
    char *text = malloc(room), why[256];
    struct wf_bindings bindings;

    (void)state;
    assert_non_null(text);
    memset(text, '1', room - 1);
    memcpy(text, "eth1:", 5);
    text[room - 1] = '\0';
    assert_int_equal(wf_bindings_parse(text, &bindings, why, sizeof(why)), -EINVAL);
    assert_true(strlen(why) < sizeof(why));
    assert_non_null(strstr(why, "eth1:111"));
    free(text);
}

/* Random bytes, mostly of those that mean something: never a crash, and what is read keeps the promises. */
static void random_bytes_do_no_harm(void **state)
{
    static const char alphabet[] = "eth01289:;,- \t\n.%\xff";
    uint64_t random = 1;
    int read = 0, refused = 0;

    (void)state;
    for (int round = 0; round < 200000; round++) {
        char text[48], why[64] = "";
        struct wf_bindings bindings;
        int length = (int)(random >> 33) % (int)sizeof(text);
        for (int i = 0; i < length; i++) {
            random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            text[i] = round % 4 ? alphabet[(random >> 40) % (sizeof(alphabet) - 1)] : (char)(1 + (random >> 40) % 255);
        }
        text[length] = '\0';
        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        if (wf_bindings_parse(text, &bindings, why, sizeof(why)) != 0) {
            assert_true(why[0] && strlen(why) < sizeof(why));
            refused += 1;
            continue;
        }
        read += bindings.count > 0;
        assert_in_range(bindings.count, 0, WF_PLAN_RAILS);
        for (int i = 0; i < bindings.count; i++)
            assert_true(bindings.of[i].rail[0] && wf_cpus_count(&bindings.of[i].cpus) > 0);
    }
    assert_true(read > 100 && refused > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bindings_are_read),
        cmocka_unit_test(no_text_is_no_bindings),
        cmocka_unit_test(what_is_no_binding_is_quoted),
        cmocka_unit_test(more_rails_than_there_can_be),
        cmocka_unit_test(a_list_without_end_is_refused),
        cmocka_unit_test(random_bytes_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
