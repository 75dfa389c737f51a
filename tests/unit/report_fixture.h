/*
 * report_fixture.h: results that nobody measured, as files and as runs, for the tests of `weft report`.
 */
#ifndef WEFT_TESTS_UNIT_REPORT_FIXTURE_H
#define WEFT_TESTS_UNIT_REPORT_FIXTURE_H

#include <jansson.h>
#include <stddef.h>

#include "bench/report/figure.h"
#include "bench/report/grid.h"
#include "bench/report/run.h"
#include "bench/report/verdict.h"

/* A folder of the test's own, which is removed at its end. */
int report_folder_setup(void **state);
int report_folder_teardown(void **state);

/* The path of a file in that folder: valid until the next call but three. */
const char *report_path(const char *name);

/* Writes a file there; returns its path. */
const char *report_file(const char *name, const void *bytes, size_t length);
const char *report_text_file(const char *name, const char *text);
const char *report_json_file(const char *name, json_t *json); /* takes the reference */

/* A result without samples, and a sample of it: of Weft, in isolated, a bandwidth; what it returns may be changed. */
json_t *report_result(void);
json_t *report_sample(json_t *result, const char *src, const char *dst, double size, double p50, double rate);

/* The run of a result, whose reference it takes. */
struct report_run *report_run_of(json_t *result);

/* A figure by its name; NULL: there is none. The column of a figure, which has to be there. */
const struct report_figure *report_figure_named(const struct report_figures *figures, const char *id);
size_t report_column_named(const struct report_figure *figure, const char *name);

/* A cell as text, of a row of a figure; a number of one. */
const char *report_cell_named(const struct report_figure *figure, const char *column, size_t row);
double report_number_named(const struct report_figure *figure, const char *column, size_t row);

/* The first sentence that has these words; NULL: there is none. */
const struct report_sentence *report_said(const struct report_verdict *verdict, const char *words);

#endif
