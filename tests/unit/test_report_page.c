/*
 * The forms of a report: the data of the page says what the figures say and cannot end its script, scripts run by their
 * digests alone, and gnuplot and Markdown get nothing that they would obey.
 */
#include <math.h>
#include <openssl/evp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/report/contents.h"
#include "bench/report/gnuplot.h"
#include "bench/report/markdown.h"
#include "bench/report/page.h"
#include "bench/report/parts.h"
#include "report_fixture.h"

#define MARKUP "</script><img src=x onerror=alert(1)>&\"'\\\x01\xff\xE2\x80\xA8"

/* All of a page that is written to a file. */
static char *page_of(const struct report_contents *contents)
{
    const char *path = report_path("page.html");
    size_t room = 0;
    char *text = NULL;
    struct wf_status status = {0};

    if (report_page_write(contents, path, &status))
        fail_msg("%s", status.text);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    assert_true(getdelim(&text, &room, '\0', file) > 0);
    fclose(file);
    return text;
}

static json_t *data_of(const char *page)
{
    static const char start[] = "<script type=\"application/json\" id=\"weft-data\">";
    const char *data = strstr(page, start);

    assert_non_null(data);
    data += sizeof start - 1;
    size_t length = strcspn(data, "<>&");
    assert_memory_equal(data + length, "</script>\n", 10);
    json_error_t error;
    json_t *json = json_loadb(data, length, 0, &error);
    if (!json)
        fail_msg("%s at %d", error.text, error.position);
    return json;
}

/* A page with one figure; the caller frees the data. */
static json_t *data_with(struct report_figure *figure)
{
    struct report_contents contents = {0};

    assert_int_equal(report_figures_add(&contents.figures, figure, NULL), 0);
    char *page = page_of(&contents);
    json_t *data = data_of(page);
    free(page);
    report_figures_fini(&contents.figures);
    return data;
}

/* --- labels --- */

/* Writes labels, and reads what the page would: runs of one period, again and again. */
static void labels_come_back(const uint32_t *labels, size_t count, size_t pairs_most)
{
    struct report_figure *figure = report_figure_create(REPORT_TABLE, "labels", "title", NULL);
    char text[16];

    report_column_add(figure, "label", "", REPORT_SHOWN, false);
    for (size_t i = 0; i < count; i++) {
        report_row_add(figure);
        snprintf(text, sizeof text, "t%u", labels[i]);
        report_set_text(figure, 0, text);
    }
    json_t *data = data_with(figure);
    json_t *column = json_array_get(json_object_get(json_array_get(json_object_get(data, "figures"), 0), "columns"), 0);
    const json_t *texts = json_object_get(column, "labels"), *runs = json_object_get(column, "runs");
    size_t at = 0;
    assert_true(json_array_size(runs) > 0 && json_array_size(runs) % 2 == 0);
    assert_in_range(json_array_size(runs) / 2, 1, pairs_most);
    while (at < count)
        for (size_t i = 0; i < json_array_size(runs); i += 2)
            for (json_int_t k = json_integer_value(json_array_get(runs, i + 1)); k > 0 && at < count; k--, at++) {
                json_int_t label = json_integer_value(json_array_get(runs, i));
                snprintf(text, sizeof text, "t%u", labels[at]);
                assert_string_equal(json_string_value(json_array_get(texts, (size_t)label)), text);
            }
    json_decref(data);
}

static void cycles_of_labels_are_written_once(void **state)
{
    uint32_t labels[1000];

    (void)state;
    for (size_t i = 0; i < 1000; i++)
        labels[i] = 7;
    labels_come_back(labels, 1000, 1);
    for (size_t i = 0; i < 1000; i++)
        labels[i] = i % 10;
    labels_come_back(labels, 1000, 10);
    labels_come_back(labels, 995, 10); /* the last cycle is not whole */
    for (size_t i = 0; i < 1000; i++)
        labels[i] = i / 10 % 4;
    labels_come_back(labels, 1000, 4);
    labels[999] = 9; /* and where one is different, nothing is a cycle */
    labels_come_back(labels, 1000, 101);
    labels_come_back((uint32_t[]){0, 1, 0, 0, 1, 0, 0, 1, 1}, 9, 9);
    labels_come_back((uint32_t[]){5}, 1, 1);
    for (uint32_t bits = 0; bits < 512; bits += 37) { /* whatever they are */
        for (size_t i = 0; i < 9; i++)
            labels[i] = bits >> i & 1;
        labels_come_back(labels, 9, 9);
    }
}

/* --- what files say --- */

static struct report_figure *hostile(enum report_kind kind)
{
    struct report_figure *figure = report_figure_create(kind, "hostile", MARKUP, MARKUP);

    figure->x = REPORT_BY_LABEL;
    report_column_add(figure, "way", "", REPORT_SELECT, false);
    report_column_add(figure, MARKUP, "", REPORT_X, false);
    report_column_add(figure, "y", "", kind == REPORT_HEAT ? REPORT_Y : REPORT_SERIES, false);
    report_column_add(figure, "value", "<b>`x`\n", kind == REPORT_HEAT ? REPORT_VALUE : REPORT_Y, true);
    for (int i = 0; i < 4; i++) {
        report_row_add(figure);
        report_set_text(figure, 0, "one");
        report_set_text(figure, 1, i % 2 ? MARKUP : "`touch x`\n\"100%\"");
        report_set_text(figure, 2, i / 2 ? "$x" : "y");
        report_set_number(figure, 3, (double[]){1.5, 65536, NAN, INFINITY}[i]);
    }
    return figure;
}

static void data_has_no_letter_that_ends_a_script(void **state)
{
    struct report_run run = {.path = (char *)MARKUP};
    struct report_chapter chapter = {.run = &run};
    struct report_contents contents = {.chapters = &chapter, .chapter_count = 1};

    (void)state;
    snprintf(chapter.title, sizeof chapter.title, "%s", MARKUP);
    snprintf(contents.title, sizeof contents.title, "%s", MARKUP);
    report_say(&chapter.verdict, REPORT_BAD, "%s", MARKUP);
    report_say(&contents.problems, REPORT_BAD, "%s", MARKUP);
    assert_int_equal(report_figures_add(&chapter.figures, hostile(REPORT_HEAT), NULL), 0);
    char *page = page_of(&contents);
    assert_null(strstr(page, "<img src=x"));
    assert_null(strstr(page, "onerror=alert(1)>"));
    json_t *data = data_of(page);
    const json_t *of = json_array_get(json_object_get(data, "runs"), 0);
    const char *clean = "</script><img src=x onerror=alert(1)>&\"'\\\x01\xEF\xBF\xBD\xE2\x80\xA8";
    assert_string_equal(json_string_value(json_object_get(of, "name")), clean);
    assert_string_equal(json_string_value(json_object_get(of, "title")), clean);
    const json_t *figure = json_array_get(json_object_get(of, "figures"), 0);
    assert_string_equal(json_string_value(json_object_get(figure, "note")), clean);
    const json_t *values = json_object_get(json_array_get(json_object_get(figure, "columns"), 3), "values");
    assert_true(json_number_value(json_array_get(values, 0)) == 1.5);
    assert_true(json_integer_value(json_array_get(values, 1)) == 65536);
    assert_true(json_is_null(json_array_get(values, 2)) && json_is_null(json_array_get(values, 3)));
    json_decref(data);
    free(page);
    report_verdict_fini(&chapter.verdict);
    report_verdict_fini(&contents.problems);
    report_figures_fini(&chapter.figures);
}

static void scripts_run_by_their_digests(void **state)
{
    struct report_contents contents = {0};
    char *page = page_of(&contents), *head = strstr(page, "Content-Security-Policy");
    size_t scripts = 0;

    (void)state;
    assert_non_null(head);
    *strchr(head, '>') = '\0';
    assert_non_null(strstr(head, "default-src 'none'"));
    assert_null(strstr(head, "script-src 'unsafe"));
    for (size_t i = 0; report_parts[i].name; i++) {
        const struct report_part *part = &report_parts[i];
        unsigned char digest[32], text[64];
        if (!part->length || strstr(part->name, ".css"))
            continue;
        assert_int_equal(EVP_Digest(part->text, part->length, digest, NULL, EVP_sha256(), NULL), 1);
        EVP_EncodeBlock(text, digest, sizeof digest);
        assert_non_null(strstr(head, (const char *)text));
        scripts++;
    }
    assert_true(scripts >= 3);
    free(page);
}

/* --- gnuplot and Markdown --- */

static char *written(void (*put)(FILE *out, const struct report_figure *figure), const struct report_figure *figure)
{
    size_t length = 0;
    char *text = NULL;
    FILE *out = open_memstream(&text, &length);

    assert_non_null(out);
    put(out, figure);
    fclose(out);
    return text;
}

static void put_script(FILE *out, const struct report_figure *figure)
{
    report_gnuplot_script(out, figure, "name");
}

static void blocks_are_series(void **state)
{
    struct report_figure *figure = report_figure_create(REPORT_LINES, "blocks", "title", NULL);

    (void)state;
    figure->x = figure->y = REPORT_LOG;
    report_column_add(figure, "mode", "", REPORT_SERIES, false);
    report_column_add(figure, "size", "bytes", REPORT_X, true);
    report_column_add(figure, "rate", "GB/s", REPORT_Y, true);
    for (int i = 0; i < 4; i++) { /* not one after the other */
        report_row_add(figure);
        report_set_text(figure, 0, i % 2 ? "loaded" : "isolated");
        report_set_number(figure, 1, 1 + i);
        report_set_number(figure, 2, i == 3 ? NAN : 0);
    }
    char *text = written(report_gnuplot_data, figure);
    assert_string_equal(text, "# \"title\"\n# 1:\"mode\" 2:\"size\"/\"bytes\" 3:\"rate\"/\"GB/s\"\n"
                              "\"isolated\" 1 0\n\"isolated\" 3 0\n\n\n\"loaded\" 2 0\n\"loaded\" 4 NaN\n");
    free(text);
    text = written(put_script, figure);
    assert_non_null(strstr(text, "'name.dat' index 0 using 2:3"));
    assert_non_null(strstr(text, "'name.dat' index 1 using 2:3"));
    assert_non_null(strstr(text, "title \"loaded\""));
    assert_non_null(strstr(text, "set logscale x 2\n"));
    assert_null(strstr(text, "set logscale y")); /* gnuplot draws nothing where no value is above 0 */
    free(text);
    report_figure_destroy(figure);
}

static void gnuplot_gets_no_orders(void **state)
{
    static const enum report_kind kinds[] = {REPORT_HEAT, REPORT_BARS, REPORT_LINES};

    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct report_figure *figure = hostile(kinds[i]);
        char *script = written(put_script, figure), *data = written(report_gnuplot_data, figure);
        assert_null(strchr(script, '`'));
        assert_null(strchr(data, '`'));
        assert_null(strchr(data, '\\'));
        assert_non_null(strstr(data, "\"?touch x???100%?\"")); /* in one line */
        if (kinds[i] == REPORT_HEAT)                           /* the label of a tic is a format */
            assert_non_null(strstr(script, "(\"?touch x???100%%?\" 0"));
        free(script);
        free(data);
        report_figure_destroy(figure);
    }
}

static void markdown_is_escaped(void **state)
{
    struct report_contents contents = {0};
    size_t length = 0;
    char *text = NULL;
    FILE *out = open_memstream(&text, &length);

    (void)state;
    snprintf(contents.title, sizeof contents.title, "a_b");
    report_say(&contents.verdict, REPORT_DOUBT, "host|1 <b>\nx");
    assert_int_equal(report_figures_add(&contents.figures, hostile(REPORT_TABLE), NULL), 0);
    report_markdown_put(&contents, out);
    fclose(out);
    assert_non_null(strstr(text, "# a\\_b\n"));
    assert_non_null(strstr(text, "- Odd: host\\|1 \\<b\\> x\n"));
    assert_non_null(strstr(text, "| value, \\<b\\>\\`x\\`  |\n")); /* the unit too */
    assert_non_null(strstr(text, "\n|---|---|---|---:|\n"));
    assert_null(strstr(text, " <"));
    assert_non_null(strstr(text, "| 65536 |"));
    free(text);
    report_verdict_fini(&contents.verdict);
    report_figures_fini(&contents.figures);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cycles_of_labels_are_written_once),
        cmocka_unit_test(data_has_no_letter_that_ends_a_script),
        cmocka_unit_test(scripts_run_by_their_digests),
        cmocka_unit_test(blocks_are_series),
        cmocka_unit_test(gnuplot_gets_no_orders),
        cmocka_unit_test(markdown_is_escaped),
    };

    return cmocka_run_group_tests(tests, report_folder_setup, report_folder_teardown);
}
