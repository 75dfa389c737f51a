/*
 * Texts from files: lines of CSV, and letters of what may not be UTF-8.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/report/csv.h"
#include "bench/report/utf8.h"

/* --- CSV --- */

static void lines_end_with_and_without_a_carriage_return(void **state)
{
    char text[] = "a,b\r\n\n1,2\n\r\nlast";
    char *rest = text;

    (void)state;
    assert_string_equal(report_csv_line(&rest), "a,b");
    assert_string_equal(report_csv_line(&rest), "");
    assert_string_equal(report_csv_line(&rest), "1,2");
    assert_string_equal(report_csv_line(&rest), "");
    assert_string_equal(report_csv_line(&rest), "last");
    assert_null(report_csv_line(&rest));
    assert_null(report_csv_line(&rest));
    char none[] = "", *nothing = none;
    assert_null(report_csv_line(&nothing));
    char ended[] = "one\n", *after = ended;
    assert_string_equal(report_csv_line(&after), "one");
    assert_null(report_csv_line(&after));
}

/* The fields of a line, with a bar between them; behind it how many there are. */
static const char *split(const char *line, size_t most)
{
    static char joined[256];
    char copy[256], *fields[8] = {0};

    snprintf(copy, sizeof copy, "%s", line);
    size_t count = report_csv_split(copy, fields, most);
    joined[0] = '\0';
    for (size_t i = 0; i < 8 && fields[i]; i++)
        snprintf(joined + strlen(joined), sizeof joined - strlen(joined), "%s|", fields[i]);
    snprintf(joined + strlen(joined), sizeof joined - strlen(joined), "%zu", count);
    return joined;
}

static void fields_are_split(void **state)
{
    (void)state;
    assert_string_equal(split("a,b,c", 8), "a|b|c|3");
    assert_string_equal(split("", 8), "|1");
    assert_string_equal(split(",,", 8), "|||3");
    assert_string_equal(split("a,b,c", 2), "a|b|3"); /* there is no room for the third */
    assert_string_equal(split("\"a,b\",c", 8), "a,b|c|2");
    assert_string_equal(split("\"say \"\"it\"\"\",x", 8), "say \"it\"|x|2");
    assert_string_equal(split("\"\",x", 8), "|x|2");
    assert_string_equal(split("\"\"\"\"", 8), "\"|1");
    assert_string_equal(split("\"not closed,b", 8), "not closed,b|1");
    assert_string_equal(split("\"", 8), "|1");
    assert_string_equal(split("a\"b,c", 8), "a\"b|c|2");
}

static void a_field_is_found_and_is_a_number(void **state)
{
    char a[] = "a", b[] = "b", *header[] = {a, b};

    (void)state;
    assert_int_equal(report_csv_find(header, 2, "b"), 1);
    assert_true(report_csv_find(header, 1, "b") == SIZE_MAX);
    assert_true(report_csv_find(header, 2, "") == SIZE_MAX);
    assert_true(report_csv_number("1.5e3") == 1500);
    assert_true(report_csv_number("-0.25") == -0.25);
    static const char *const none[] = {"", "x", "1x", "nan", "inf", "-inf", "1e999", "1,2", "-"};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        if (!isnan(report_csv_number(none[i])))
            fail_msg("'%s' is no number", none[i]);
}

/* --- letters --- */

/* Letters of a text as numbers with blanks between them. */
static const char *letters(const char *text)
{
    static char numbers[256];
    uint32_t letter;

    numbers[0] = '\0';
    while ((letter = report_utf8_next(&text)) != 0)
        snprintf(numbers + strlen(numbers), sizeof numbers - strlen(numbers), "%s%X", numbers[0] ? " " : "", letter);
    return numbers;
}

static void letters_of_each_length_are_read(void **state)
{
    (void)state;
    assert_string_equal(letters(""), "");
    assert_string_equal(letters("a\x7f"), "61 7F");
    assert_string_equal(letters("\xC2\x80\xDF\xBF"), "80 7FF");
    assert_string_equal(letters("\xE0\xA0\x80\xE2\x80\xA8\xEF\xBF\xBF"), "800 2028 FFFF");
    assert_string_equal(letters("\xF0\x90\x80\x80\xF4\x8F\xBF\xBF"), "10000 10FFFF");
}

static void what_is_no_letter_is_one_mark_a_byte(void **state)
{
    (void)state;
    assert_string_equal(letters("\x80x"), "FFFD 78");
    assert_string_equal(letters("\xFFx"), "FFFD 78");
    assert_string_equal(letters("\xC0\x80"), "FFFD FFFD");          /* overlong */
    assert_string_equal(letters("\xE0\x80\xAF"), "FFFD FFFD FFFD"); /* overlong */
    assert_string_equal(letters("\xF0\x80\x80\xBC"), "FFFD FFFD FFFD FFFD");
    assert_string_equal(letters("\xED\xA0\x80"), "FFFD FFFD FFFD");          /* a surrogate */
    assert_string_equal(letters("\xF4\x90\x80\x80"), "FFFD FFFD FFFD FFFD"); /* beyond the last one */
    assert_string_equal(letters("\xE2\x82"), "FFFD FFFD");                   /* cut: nothing is read behind the end */
    assert_string_equal(letters("\xE2<b"), "FFFD 3C 62");                    /* does not swallow markup */
}

static void letters_are_written_as_they_were_read(void **state)
{
    const char *text = "a\xC2\x80\xDF\xBF\xE0\xA0\x80\xEF\xBF\xBF\xF0\x90\x80\x80\xF4\x8F\xBF\xBF", *from = text;
    char *written = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&written, &length);
    uint32_t letter;

    (void)state;
    while ((letter = report_utf8_next(&from)) != 0)
        report_utf8_put(out, letter);
    fclose(out);
    assert_string_equal(written, text);
    free(written);
}

static void a_terminal_gets_letters_and_no_orders(void **state)
{
    char text[] = "91 \xC2\xB0"
                  "C \x1b[2J\r\n\t\xC2\x9B"
                  "1m \x80\xE2\x82 \xEF\xBF\xBD";

    (void)state;
    report_utf8_plain(text);
    assert_string_equal(text, "91 \xC2\xB0"
                              "C ?[2J?????1m ??? \xEF\xBF\xBD");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_end_with_and_without_a_carriage_return),
        cmocka_unit_test(fields_are_split),
        cmocka_unit_test(a_field_is_found_and_is_a_number),
        cmocka_unit_test(letters_of_each_length_are_read),
        cmocka_unit_test(what_is_no_letter_is_one_mark_a_byte),
        cmocka_unit_test(letters_are_written_as_they_were_read),
        cmocka_unit_test(a_terminal_gets_letters_and_no_orders),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
