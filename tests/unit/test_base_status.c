/* Statuses: one line, always terminated, never cut inside a character. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/status.h"

static void test_fail_fills_and_returns(void **state)
{
    struct wf_status status = {0};

    (void)state;
    assert_int_equal(wf_fail(&status, -EINVAL, "%s is %d", "chunk", 7), -EINVAL);
    assert_int_equal(status.code, -EINVAL);
    assert_string_equal(status.text, "chunk is 7");
    assert_int_equal(wf_fail(NULL, -EIO, "nobody asks"), -EIO);
}

static void test_prefix(void **state)
{
    struct wf_status status = {0};

    (void)state;
    wf_fail(&status, -EINVAL, "bad value");
    assert_int_equal(wf_fail_prefix(&status, "weft.conf:%d", 3), -EINVAL);
    assert_string_equal(status.text, "weft.conf:3: bad value");
    assert_int_not_equal(wf_fail_prefix(NULL, "weft.conf"), 0);
}

static void test_own_text_as_argument(void **state)
{
    struct wf_status status = {0};

    (void)state;
    wf_fail(&status, -EINVAL, "inner");
    wf_fail(&status, -EIO, "outer (%s)", status.text);
    assert_string_equal(status.text, "outer (inner)");
}

static void test_one_line(void **state)
{
    static const struct {
        const char *given, *kept;
    } cases[] = {
        {"two\nlines", "two?lines"},
        {"\x1b[31mred", "?[31mred"},
        {"tab\there\r\n", "tab?here??"},
        {"\x7f", "?"},
        {"\xc2\x9b"
         "31mred",
         "??31mred"},
        {"\xc2\xa0\xc2\x80", "\xc2\xa0??"},
        {"", ""},
        {"gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f"},
        {"half \xe2\x82", "half "},
    };
    struct wf_status status;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        wf_fail(&status, -EINVAL, "%s", cases[i].given);
        assert_string_equal(status.text, cases[i].kept);
    }
}

static void test_utf8(void **state)
{
    static const struct {
        const char *given, *kept;
    } cases[] = {
        {"", ""},
        {"w\xe4g", "w?g"},
        {"w\xc3\xa4g\n", "w\xc3\xa4g\n"},
        {"\xe4", "?"},
        {"\xc3", "?"},
        {"\xe2\x82", "??"},
        {"\xe2\x82\xac\xe2", "\xe2\x82\xac?"},
        {"\xf0\x9f\x98\x80\xf0\x9f\x98", "\xf0\x9f\x98\x80???"},
        {"\x80x\xbf", "?x?"},
        {"\xc0\xaf\xc1\xbf", "????"}, /* longer than they need to be */
        {"\xe0\x9f\xbf\xf0\x8f\xbf\xbf", "???????"},
        {"\xed\xa0\x80\xed\x9f\xbf", "???\xed\x9f\xbf"}, /* half of a pair */
        {"\xf4\x8f\xbf\xbf\xf4\x90\x80\x80", "\xf4\x8f\xbf\xbf????"},
        {"\xf8\x90\x80\x80\xff", "?????"},
    };
    char text[32];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        strcpy(text, cases[i].given);
        wf_text_utf8(text);
        assert_string_equal(text, cases[i].kept);
    }
}

static void test_cut(void **state)
{
    struct wf_status status;
    char text[1000];

    (void)state;
    memset(text, 'a', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    wf_fail(&status, -EINVAL, "%s", text);
    assert_int_equal(strlen(status.text), WF_STATUS_TEXT - 1);
    wf_fail_prefix(&status, "%s", text);
    assert_int_equal(strlen(status.text), WF_STATUS_TEXT - 1);

    /* Two bytes a character: the odd byte at the end of the room goes. */
    for (size_t i = 0; i + 1 < sizeof(text); i++)
        text[i] = i % 2 ? '\xbc' : '\xc3';
    wf_fail(&status, -EINVAL, "%s", text);
    assert_int_equal(strlen(status.text), WF_STATUS_TEXT - 2);

    wf_fail(&status, -EINVAL, "tail");
    memset(text, 'b', WF_STATUS_TEXT - 7);
    text[WF_STATUS_TEXT - 7] = '\0';
    wf_fail_prefix(&status, "%s", text);
    assert_string_equal(status.text + WF_STATUS_TEXT - 7, ": tail");
}

static void test_strerror(void **state)
{
    (void)state;
    assert_string_equal(wf_strerror(-ENOENT), wf_strerror(ENOENT));
    assert_non_null(strstr(wf_strerror(-ENOENT), "No such file"));
    assert_non_null(wf_strerror(0));
    assert_string_equal(wf_strerror(123456), "unknown error");
    assert_string_equal(wf_strerror(INT_MIN), "unknown error");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fail_fills_and_returns),
        cmocka_unit_test(test_prefix),
        cmocka_unit_test(test_own_text_as_argument),
        cmocka_unit_test(test_one_line),
        cmocka_unit_test(test_utf8),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_strerror),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
