/*
 * Figures of a report: how they grow, what a label and a mark is, how a person reads a cell, and what is handed over.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "report_fixture.h"

enum { NAME, SIZE, RATE, MARK };

static struct report_figure *make(const char *id)
{
    struct report_figure *figure = report_figure_create(REPORT_LINES, id, "title", NULL);

    assert_non_null(figure);
    assert_int_equal(report_column_add(figure, "name", "", REPORT_SERIES, false), NAME);
    assert_int_equal(report_column_add(figure, "size", "bytes", REPORT_X, true), SIZE);
    assert_int_equal(report_column_add(figure, "rate", "GB/s", REPORT_Y, true), RATE);
    assert_int_equal(report_column_add(figure, "mark", "", REPORT_MARK, false), MARK);
    return figure;
}

static void rows_keep_their_values_while_it_grows(void **state)
{
    struct report_figure *figure = make("grown");
    char name[32];

    (void)state;
    for (size_t i = 0; i < 1000; i++) {
        assert_int_equal(report_row_add(figure), i);
        snprintf(name, sizeof name, "n%zu", i % 7);
        report_set_text(figure, NAME, name);
        report_set_number(figure, RATE, (double)i);
    }
    assert_int_equal(figure->rows, 1000);
    assert_int_equal(figure->columns[NAME].text_count, 7); /* each text once */
    for (size_t i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "n%zu", i % 7);
        assert_string_equal(report_cell_named(figure, "name", i), name);
        assert_true(figure->columns[RATE].numbers[i] == (double)i);
        assert_true(isnan(figure->columns[SIZE].numbers[i])); /* nobody has set it */
    }
    assert_false(figure->failed);
    report_figure_destroy(figure);
}

static void the_first_mark_says_that_nothing_is_odd(void **state)
{
    struct report_figure *figure = make("marks");

    (void)state;
    report_row_add(figure);
    report_set_text(figure, MARK, "slow");
    report_row_add(figure); /* no mark is set */
    assert_string_equal(report_cell_named(figure, "mark", 0), "slow");
    assert_string_equal(report_cell_named(figure, "mark", 1), "");
    assert_string_equal(figure->columns[MARK].texts[0], "");
    assert_int_equal(figure->columns[MARK].text_count, 2);
    report_figure_destroy(figure);
}

static void a_column_of_labels_that_nobody_set_is_empty(void **state)
{
    struct report_figure *figure = make("unset");

    (void)state;
    report_row_add(figure);
    assert_string_equal(report_cell_named(figure, "name", 0), "");
    report_figure_destroy(figure);
}

static const char *shown(const char *column, double value)
{
    static char text[64];
    struct report_figure *figure = make("shown");

    report_row_add(figure);
    report_set_number(figure, report_column_named(figure, column), value);
    snprintf(text, sizeof text, "%s", report_cell_named(figure, column, 0));
    report_figure_destroy(figure);
    return text;
}

static void a_cell_is_as_a_person_reads_it(void **state)
{
    (void)state;
    assert_string_equal(shown("size", 65536), "64K");
    assert_string_equal(shown("size", 1000), "1000");
    assert_string_equal(shown("size", 0), "0");
    assert_string_equal(shown("size", 0.5), "0.5"); /* no size, whatever the file says */
    assert_string_equal(shown("size", -1024), "-1024");
    assert_string_equal(shown("size", 1e300), "1e+300");
    assert_string_equal(shown("rate", 12.34567), "12.35");
    assert_string_equal(shown("rate", 123456), "123456");
    assert_string_equal(shown("rate", 999), "999");
    assert_string_equal(shown("rate", NAN), "");
    assert_string_equal(shown("rate", INFINITY), "inf");
}

static void too_many_columns_fail_and_are_refused(void **state)
{
    struct report_figure *figure = report_figure_create(REPORT_TABLE, "wide", "title", "note");
    struct report_figures figures = {0};
    struct wf_status status = {0};

    (void)state;
    for (int i = 0; i < REPORT_COLUMNS_MAX; i++)
        report_column_add(figure, "c", "", REPORT_SHOWN, true);
    assert_false(figure->failed);
    report_column_add(figure, "c", "", REPORT_SHOWN, true);
    assert_true(figure->failed);
    report_row_add(figure);
    report_set_number(figure, 0, 1);
    assert_true(report_figures_add(&figures, figure, &status) < 0);
    assert_int_equal(figures.count, 0);
    report_figures_fini(&figures);
}

static void one_without_rows_is_dropped(void **state)
{
    struct report_figures figures = {0};
    struct wf_status status = {0};

    (void)state;
    assert_int_equal(report_figures_add(&figures, make("empty"), &status), 0);
    assert_int_equal(figures.count, 0);
    assert_true(report_figures_add(&figures, NULL, &status) < 0);
    report_figures_fini(&figures);
}

static void two_of_a_kind_have_different_names(void **state)
{
    struct report_figures figures = {0};
    struct wf_status status = {0};

    (void)state;
    for (int i = 0; i < 40; i++) {
        struct report_figure *figure = make(i == 1 ? "other" : "power");
        report_row_add(figure);
        assert_int_equal(report_figures_add(&figures, figure, &status), 0);
    }
    assert_int_equal(figures.count, 40);
    assert_string_equal(figures.list[0]->id, "power");
    assert_string_equal(figures.list[1]->id, "other");
    assert_string_equal(figures.list[2]->id, "power-2");
    assert_string_equal(figures.list[39]->id, "power-39");
    report_figures_fini(&figures);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_keep_their_values_while_it_grows),
        cmocka_unit_test(the_first_mark_says_that_nothing_is_odd),
        cmocka_unit_test(a_column_of_labels_that_nobody_set_is_empty),
        cmocka_unit_test(a_cell_is_as_a_person_reads_it),
        cmocka_unit_test(too_many_columns_fail_and_are_refused),
        cmocka_unit_test(one_without_rows_is_dropped),
        cmocka_unit_test(two_of_a_kind_have_different_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
