/*
 * When a terminal gets colours, and which: decided by what it says of itself, and never in a pipe.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "bench/words/shade.h"

static void the_environment_decides(void **state)
{
    static const struct {
        bool terminal;
        char *environment[4];
        enum bench_shades shades;
    } rows[] = {
        {true, {"TERM=xterm-256color", NULL}, BENCH_SHADES_256},
        {true, {"HOME=/", "TERM=screen.xterm-256color", "A=b", NULL}, BENCH_SHADES_256},
        {true, {"TERM=xterm-direct", NULL}, BENCH_SHADES_256},
        {true, {"TERM=xterm", "COLORTERM=truecolor", NULL}, BENCH_SHADES_256},
        {true, {"TERM=xterm", "COLORTERM=", NULL}, BENCH_SHADES_BOLD},
        {true, {"TERM=xterm", NULL}, BENCH_SHADES_BOLD},
        {true, {"TERM=linux", "NO_COLOR=", NULL}, BENCH_SHADES_BOLD}, /* empty is as unset */
        {true, {"TERM=linux", "NO_COLOR=0", NULL}, BENCH_SHADES_NONE},
        {true, {"TERM=xterm-256color", "NO_COLOR=1", NULL}, BENCH_SHADES_NONE},
        {true, {"TERM=dumb", "COLORTERM=truecolor", NULL}, BENCH_SHADES_NONE},
        {true, {"TERM=", "COLORTERM=truecolor", NULL}, BENCH_SHADES_NONE},
        {true, {"XTERM=xterm-256color", NULL}, BENCH_SHADES_NONE},
        {true, {NULL}, BENCH_SHADES_NONE},
        {false, {"TERM=xterm-256color", "COLORTERM=truecolor", NULL}, BENCH_SHADES_NONE},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(bench_shades_of(rows[i].terminal, rows[i].environment), rows[i].shades);
    assert_int_equal(bench_shades_of(true, NULL), BENCH_SHADES_NONE);
}

static void a_pipe_has_none(void **state)
{
    FILE *file = tmpfile();

    (void)state;
    assert_non_null(file);
    assert_int_equal(bench_shades_on(file), BENCH_SHADES_NONE);
    fclose(file);
}

static void shades_follow_the_share(void **state)
{
    static const double odd_shares[] = {-1, 0, 0.5, 1, 7};

    (void)state;
    assert_string_equal(bench_shade_begin(BENCH_SHADES_NONE, 0), "");
    assert_string_equal(bench_shade_end(BENCH_SHADES_NONE, 0), "");
    assert_string_equal(bench_shade_begin(BENCH_SHADES_BOLD, 0), "\033[1m");
    assert_string_equal(bench_shade_end(BENCH_SHADES_BOLD, 0), "\033[0m");
    assert_string_equal(bench_shade_begin(BENCH_SHADES_BOLD, 0.5), "");
    assert_string_equal(bench_shade_end(BENCH_SHADES_BOLD, 0.5), "");
    assert_string_not_equal(bench_shade_begin(BENCH_SHADES_256, 0), bench_shade_begin(BENCH_SHADES_256, 1));
    assert_string_not_equal(bench_shade_begin(BENCH_SHADES_256, 0.4), bench_shade_begin(BENCH_SHADES_256, 0.6));
    for (size_t i = 0; i < sizeof odd_shares / sizeof odd_shares[0]; i++) {
        assert_int_equal(strncmp(bench_shade_begin(BENCH_SHADES_256, odd_shares[i]), "\033[48;5;", 7), 0);
        assert_string_equal(bench_shade_end(BENCH_SHADES_256, odd_shares[i]), "\033[0m");
    }
    assert_ptr_equal(bench_shade_begin(BENCH_SHADES_256, -1), bench_shade_begin(BENCH_SHADES_256, 0));
    assert_ptr_equal(bench_shade_begin(BENCH_SHADES_256, 7), bench_shade_begin(BENCH_SHADES_256, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_environment_decides),
        cmocka_unit_test(a_pipe_has_none),
        cmocka_unit_test(shades_follow_the_share),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
