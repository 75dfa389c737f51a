#include "report_fixture.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[64];

int report_folder_setup(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/weft-report-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

int report_folder_teardown(void **state)
{
    DIR *open = opendir(folder);
    struct dirent *entry;

    (void)state;
    while (open && (entry = readdir(open)) != NULL)
        unlinkat(dirfd(open), entry->d_name, 0);
    if (open)
        closedir(open);
    return rmdir(folder);
}

const char *report_path(const char *name)
{
    static char paths[4][512];
    static size_t next;
    char *path = paths[next++ % 4];

    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

const char *report_file(const char *name, const void *bytes, size_t length)
{
    const char *path = report_path(name);
    FILE *file = fopen(path, "we");

    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
    return path;
}

const char *report_text_file(const char *name, const char *text)
{
    return report_file(name, text, strlen(text));
}

const char *report_json_file(const char *name, json_t *json)
{
    char *text = json_dumps(json, 0);

    assert_non_null(text);
    const char *path = report_text_file(name, text);
    free(text);
    json_decref(json);
    return path;
}

json_t *report_result(void)
{
    json_t *result = json_pack("{s:s, s:s, s:[], s:{s:b}}", "schema", "weft.result/1", "command", "mesh", "samples",
                               "summary", "passed", 1);

    assert_non_null(result);
    return result;
}

json_t *report_sample(json_t *result, const char *src, const char *dst, double size, double p50, double rate)
{
    json_t *sample =
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:f, s:{s:f}, s:f}", "backend", "weft", "mode", "isolated", "test",
                  "bandwidth", "src", src, "dst", dst, "size_bytes", size, "time_us", "p50", p50, "bw_gb_per_s", rate);

    assert_non_null(sample);
    assert_int_equal(json_array_append_new(json_object_get(result, "samples"), sample), 0);
    return sample;
}

struct report_run *report_run_of(json_t *result)
{
    struct report_run *run = NULL;
    struct wf_status status = {0};

    if (report_run_read(report_json_file("run.json", result), NULL, &run, &status))
        fail_msg("%s", status.text);
    return run;
}

const struct report_figure *report_figure_named(const struct report_figures *figures, const char *id)
{
    for (size_t i = 0; i < figures->count; i++)
        if (strcmp(figures->list[i]->id, id) == 0)
            return figures->list[i];
    return NULL;
}

size_t report_column_named(const struct report_figure *figure, const char *name)
{
    assert_non_null(figure);
    for (size_t i = 0; i < figure->column_count; i++)
        if (strcmp(figure->columns[i].name, name) == 0)
            return i;
    fail_msg("%s has no column %s", figure->id, name);
    return 0;
}

const char *report_cell_named(const struct report_figure *figure, const char *column, size_t row)
{
    static char text[64];
    size_t at = report_column_named(figure, column);

    assert_true(row < figure->rows);
    return report_cell_text(figure, at, row, text, sizeof text);
}

double report_number_named(const struct report_figure *figure, const char *column, size_t row)
{
    size_t at = report_column_named(figure, column);

    assert_true(row < figure->rows && figure->columns[at].is_number);
    return figure->columns[at].numbers[row];
}

const struct report_sentence *report_said(const struct report_verdict *verdict, const char *words)
{
    for (size_t i = 0; i < verdict->count; i++)
        if (strstr(verdict->list[i].text, words))
            return &verdict->list[i];
    return NULL;
}
