/* Sizes as text: what is read, what is refused, and that what is printed reads back. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "base/config.h"

#define K UINT64_C(1024)

static void test_accepted(void **state)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } cases[] = {
        {"0", 0},
        {"3", 3},
        {"007", 7},
        {"64K", 64 * K},
        {"64k", 64 * K},
        {"1M", K * K},
        {"2g", 2 * K * K * K},
        {"3T", 3 * K * K * K * K},
        {"0K", 0},
        {"65537", 65537},
        {"9223372036854775807", INT64_MAX},
        {"9007199254740991K", INT64_MAX / K * K},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint64_t bytes = 1;
        assert_int_equal(wf_parse_size(cases[i].text, &bytes), 0);
        assert_true(bytes == cases[i].bytes);
    }
}

static void test_refused(void **state)
{
    static const char *const cases[] = {
        "",
        " ",
        "K",
        "B",
        "KiB",
        "12Q",
        "-1",
        "+1",
        " 1",
        "1 ",
        "1 K",
        "1K ",
        "1.5M",
        "1KB",
        "1kb",
        "1KiB",
        "1MiB",
        "12B",
        "0x10",
        "1e6",
        "1KK",
        "1iB",
        "1KiBB",
        "1Ki",
        "1BK",
        "1,2",
        "99999999999G",
        "8388608T",
        "9007199254740992K",
        "9223372036854775808",
        "18446744073709551616",
        "99999999999999999999999",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint64_t bytes = 77;
        assert_int_equal(wf_parse_size(cases[i], &bytes), -EINVAL);
        assert_int_equal(bytes, 77);
    }
}

static void test_printed(void **state)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } cases[] = {
        {0, "0"},
        {1, "1"},
        {1023, "1023"},
        {K, "1K"},
        {K + 1, "1025"},
        {1536 * K, "1536K"},
        {64 * K, "64K"},
        {65537, "65537"},
        {K * K, "1M"},
        {5 * K * K * K, "5G"},
        {2 * K * K * K * K, "2T"},
        {4096 * K * K * K * K, "4096T"},
        {INT64_MAX, "9223372036854775807"},
        {UINT64_MAX, "18446744073709551615"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[32];
        uint64_t bytes;

        assert_ptr_equal(wf_format_size(cases[i].bytes, text, sizeof(text)), text);
        assert_string_equal(text, cases[i].text);
        if (cases[i].bytes > INT64_MAX)
            continue;
        assert_int_equal(wf_parse_size(text, &bytes), 0);
        assert_true(bytes == cases[i].bytes);
    }
}

static void test_meant(void **state)
{
    static const struct {
        const char *text, *meant; /* NULL: nobody can tell */
    } cases[] = {
        {"1 K", "1K"},
        {" 1K", "1K"},
        {"1K ", "1K"},
        {"1KB", "1K"},
        {"1kb", "1K"},
        {"1kib", "1K"},
        {"1 MiB", "1M"},
        {"64 KB", "64K"},
        {"12B", "12"},
        {"12 b", "12"},
        {"1.5M", "1536K"},
        {"1.5", NULL},
        {"0.5G", "512M"},
        {"2.0K", "2K"},
        {"2.25 MiB", "2304K"},
        {"0.001K", NULL},
        {"1.M", NULL},
        {".5M", NULL},
        {"1.5.5M", NULL},
        {"1e6", NULL},
        {"", NULL},
        {" ", NULL},
        {"K", NULL},
        {"12Q", NULL},
        {"-1K", NULL},
        {"0x10", NULL},
        {"1KK", NULL},
        {"1iB", NULL},
        {"1Ki", NULL},
        {"1 K B", NULL},
        {"99999999999G", NULL},
        {"1M 2M", NULL},
        {"8388608 T", NULL},
        {"8388607 T", "8388607T"},
        {"1.1234567890123M", NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char meant[32] = "";
        bool found = wf_size_meant(cases[i].text, meant, sizeof meant);
        if (found != (cases[i].meant != NULL))
            print_error("'%s' means '%s'\n", cases[i].text, meant);
        assert_int_equal(found, cases[i].meant != NULL);
        if (found)
            assert_string_equal(meant, cases[i].meant);
    }
}

static void test_small_buffer(void **state)
{
    char text[4] = "zzz";

    (void)state;
    wf_format_size(65537, text, sizeof(text));
    assert_string_equal(text, "655");
    wf_format_size(65537, text, 0);
    assert_string_equal(text, "655");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accepted), cmocka_unit_test(test_refused),      cmocka_unit_test(test_printed),
        cmocka_unit_test(test_meant),    cmocka_unit_test(test_small_buffer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
