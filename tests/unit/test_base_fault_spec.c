/* The setting `fault`: what is read, and what is refused with words that lead to the mistake. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/config.h"
#include "base/fault_spec.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct wf_fault_spec parsed(const char *text)
{
    struct wf_status status = {0};
    struct wf_fault_spec spec;

    memset(&spec, 0xEE, sizeof(spec));
    if (wf_fault_parse(text, &spec, &status) != 0)
        fail_msg("'%s': %s", text, status.text);
    return spec;
}

static void nothing_is_no_fault(void **state)
{
    (void)state;
    struct wf_fault_spec spec = parsed("");

    assert_true(spec.reset_every == 0 && spec.flip_every == 0 && !spec.shorten);
    assert_int_equal(spec.window_count, 0);
}

static void reads_every_item(void **state)
{
    (void)state;
    struct wf_fault_spec spec = parsed("short=1,stall=eth1@2000+500,reset_every=64M,drop=fe80::1%e@h0@0+1,"
                                       "seed=18446744073709551615,flip_every=3,stall=0@1000000000+1000000000");

    assert_true(spec.seed == UINT64_MAX);
    assert_int_equal(spec.reset_every, 64 << 20);
    assert_int_equal(spec.flip_every, 3);
    assert_true(spec.shorten);
    assert_int_equal(spec.window_count, 3);
    assert_false(spec.windows[0].drop);
    assert_string_equal(spec.windows[0].rail, "eth1");
    assert_int_equal(spec.windows[0].start_ms, 2000);
    assert_int_equal(spec.windows[0].length_ms, 500);
    assert_true(spec.windows[1].drop);
    assert_string_equal(spec.windows[1].rail, "fe80::1%e@h0");
    assert_int_equal(spec.windows[1].start_ms, 0);
    assert_int_equal(spec.windows[1].length_ms, 1);
    assert_string_equal(spec.windows[2].rail, "0");
    assert_int_equal(spec.windows[2].length_ms, 1000000000);
}

static void has_defaults(void **state)
{
    (void)state;
    assert_int_equal(parsed("short=0").seed, 1);
    assert_false(parsed("short=0").shorten);
    assert_int_equal(parsed("seed=0").seed, 0);
}

static void names_what_is_wrong(void **state)
{
    static const struct {
        const char *text, *told[2];
    } cases[] = {
        {"bla", {"'bla'", "drop=RAIL@MS+MS"}},
        {"seed=7,bla=3", {"'bla=3'", "reset_every=SIZE"}},
        {"Seed=7", {"'Seed=7'", "seed=N"}},
        {"=7", {"'=7'", "seed=N"}},
        {"seed", {"'seed'", "whole number"}},
        {"seed=", {"'seed='", "whole number"}},
        {"seed=-1", {"'seed=-1'", "whole number"}},
        {"seed=18446744073709551616", {"18446744073709551616", "whole number"}},
        {"seed=7,seed=7", {"'seed=7'", "twice"}},
        {"reset_every=12Q", {"'reset_every=12Q'", "64M"}},
        {"reset_every=0", {"'reset_every=0'", "at least 1"}},
        {"flip_every=", {"'flip_every='", "at least 1"}},
        {"short=2,seed=1", {"'short=2'", "short=1"}},
        {"short=1,short=0", {"'short=0'", "twice"}},
        {"seed=1,", {"empty", "fault"}},
        {",seed=1", {"empty", "fault"}},
        {"seed=1,,short=1", {"empty", "fault"}},
        {"stall=eth1", {"'stall=eth1'", "RAIL@MS+MS"}},
        {"stall=@1+1", {"'stall=@1+1'", "RAIL@MS+MS"}},
        {"stall=eth1@1", {"'stall=eth1@1'", "RAIL@MS+MS"}},
        {"stall=eth1@1+", {"'stall=eth1@1+'", "RAIL@MS+MS"}},
        {"stall=eth1@+1", {"'stall=eth1@+1'", "RAIL@MS+MS"}},
        {"stall=eth1+1@1", {"'stall=eth1+1@1'", "RAIL@MS+MS"}},
        {"stall=eth1@1+0", {"'stall=eth1@1+0'", "RAIL@MS+MS"}},
        {"drop=eth1@1+1000000001", {"'drop=eth1@1+1000000001'", "drop=RAIL@MS+MS"}},
        {"drop=eth1@1+1s", {"'drop=eth1@1+1s'", "drop=RAIL@MS+MS"}},
        {"drop=a234567890123456789012345678901234567890123456789012345678901234@1+1",
         {"'drop=a2345", "drop=RAIL@MS+MS"}},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct wf_fault_spec spec = {.seed = 77};
        struct wf_status status = {0};
        assert_int_equal(wf_fault_parse(cases[i].text, &spec, &status), -EINVAL);
        assert_int_equal(status.code, -EINVAL);
        assert_int_equal(spec.seed, 77);
        for (size_t k = 0; k < COUNT(cases[i].told); k++)
            if (!strstr(status.text, cases[i].told[k]))
                fail_msg("'%s': no '%s' in: %s", cases[i].text, cases[i].told[k], status.text);
        assert_int_equal(wf_fault_parse(cases[i].text, &spec, NULL), -EINVAL);
    }
}

static void takes_as_many_windows_as_fit(void **state)
{
    char text[WF_VALUE_MAX] = "short=1";
    struct wf_fault_spec spec;
    struct wf_status status = {0};

    (void)state;
    for (int i = 0; i < WF_FAULT_WINDOWS; i++)
        strcat(text, i % 2 ? ",drop=1@2+3" : ",stall=1@2+3");
    assert_int_equal(parsed(text).window_count, WF_FAULT_WINDOWS);
    strcat(text, ",stall=1@2+3");
    assert_int_equal(wf_fault_parse(text, &spec, &status), -EINVAL);
    assert_non_null(strstr(status.text, "16"));
}

/* Long before a context is made of it. */
static void is_checked_as_a_setting(void **state)
{
    static struct wf_config config;
    struct wf_status status = {0};

    (void)state;
    wf_config_init(&config);
    assert_int_equal(wf_config_set(&config, WF_SET_FAULT, "short=1", WF_ORIGIN_COMMAND, "test", &status), 0);
    assert_int_equal(wf_config_set(&config, WF_SET_FAULT, "shrt=1", WF_ORIGIN_COMMAND, "test", &status), -EINVAL);
    assert_non_null(strstr(status.text, "'shrt=1'"));
    assert_string_equal(wf_config_text(&config, WF_SET_FAULT), "short=1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_no_fault),
        cmocka_unit_test(reads_every_item),
        cmocka_unit_test(has_defaults),
        cmocka_unit_test(names_what_is_wrong),
        cmocka_unit_test(takes_as_many_windows_as_fit),
        cmocka_unit_test(is_checked_as_a_setting),
    };
    return cmocka_run_group_tests_name("fault_spec", tests, NULL, NULL);
}
