/* Collectives by size, backend and number of ranks: the JSON of weft collective, or its CSV, which becomes the same. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "csv.h"
#include "figures.h"

#define FIELDS_MAX 32
#define COMPARED_BYTES (100.0 * 1024 * 1024) /* backends are laid side by side at the size that is nearest to this */

/* --- CSV --- */

static const char csv_head[] = "backend,way,memory,op,";

bool report_collective_csv(const struct report_run *run)
{
    return strncmp(run->text, csv_head, sizeof csv_head - 1) == 0;
}

/* A figure where the field is one, which leaves out none of their names. */
static void set_field(json_t *sample, const char *name, const char *field)
{
    double number = report_csv_number(field);

    if (strcmp(name, "best") == 0 || strcmp(name, "in_place") == 0)
        json_object_set_new(sample, name, json_boolean(number == 1));
    else if (strcmp(name, "time_us_mean") == 0)
        json_object_set_new(sample, "time_us", json_pack("{s:f}", "mean", isnan(number) ? 0 : number));
    else if (isnan(number))
        json_object_set_new(sample, name, json_string(field));
    else
        json_object_set_new(sample, name, json_real(number));
}

int report_collective_read(struct report_run *run, struct wf_status *status)
{
    char *rest = run->text, *names[FIELDS_MAX], *fields[FIELDS_MAX], *line = report_csv_line(&rest);
    size_t count = report_csv_split(line, names, FIELDS_MAX);
    json_t *samples = json_array();

    run->source = REPORT_OF_COLLECTIVE;
    run->root = json_pack("{s:s, s:o}", "command", "collective", "samples", samples);
    if (!run->root)
        return wf_fail(status, -ENOMEM, "no memory to read it");
    for (int number = 2; (line = report_csv_line(&rest)) != NULL; number++) {
        if (count > FIELDS_MAX || report_csv_split(line, fields, FIELDS_MAX) != count)
            return wf_fail(status, -EBADMSG, "line %d has other columns than the first", number);
        json_t *sample = json_object();
        for (size_t i = 0; i < count; i++)
            set_field(sample, names[i], fields[i]);
        json_array_append_new(samples, sample);
    }
    return 0;
}

/* --- figures --- */

/* A sample that has a figure, of the best way of its backend. */
static bool counts(const json_t *sample)
{
    return json_is_true(json_object_get(sample, "best")) && report_number(sample, "busbw_gb_per_s") >= 0;
}

/* "all_reduce, in place" */
static const char *operation(const json_t *sample, char text[96])
{
    snprintf(text, 96, "%.60s, %s", report_text(sample, "op"),
             json_is_true(json_object_get(sample, "in_place")) ? "in place" : "out of place");
    return text;
}

/* "gloo" of host memory, and "nccl (cuda)". */
static const char *backend(const json_t *sample, char text[96])
{
    const char *memory = report_text(sample, "memory");

    snprintf(text, 96, strcmp(memory, "host") == 0 ? "%.40s" : "%.40s (%.40s)", report_text(sample, "backend"), memory);
    return text;
}

static const char *ranks(const json_t *sample, char text[96])
{
    snprintf(text, 96, "%.0f ranks", report_number(sample, "ranks"));
    return text;
}

static int add_lines(struct report_figures *figures, const json_t *samples, const char *id, const char *title,
                     const char *unit, struct wf_status *status)
{
    struct report_figure *figure =
        report_figure_create(REPORT_LINES, id, title,
                             "Of each backend its fastest way, median over the rounds, by nccl-tests' definitions.");
    bool time = strcmp(unit, "us") == 0;
    const json_t *sample;
    char text[96];
    size_t index;

    if (!figure)
        return report_figures_add(figures, NULL, status);
    figure->x = REPORT_LOG;
    figure->y = time ? REPORT_LOG : REPORT_LINEAR;
    report_column_add(figure, "operation", "", REPORT_SELECT, false);
    report_column_add(figure, "backend", "", REPORT_SERIES, false);
    report_column_add(figure, "ranks", "", REPORT_SERIES, false);
    report_column_add(figure, "size", "bytes", REPORT_X, true);
    report_column_add(figure, time ? "time" : "bus bandwidth", unit, REPORT_Y, true);
    report_column_add(figure, "algorithm bandwidth", "GB/s", REPORT_SHOWN, true);
    report_column_add(figure, "way", "", REPORT_SHOWN, false);
    json_array_foreach(samples, index, sample)
    {
        if (!counts(sample))
            continue;
        report_row_add(figure);
        report_set_text(figure, 0, operation(sample, text));
        report_set_text(figure, 1, backend(sample, text));
        report_set_text(figure, 2, ranks(sample, text));
        report_set_number(figure, 3, report_number(sample, "size_bytes"));
        report_set_number(figure, 4,
                          time ? report_number(json_object_get(sample, "time_us"), "mean")
                               : report_number(sample, "busbw_gb_per_s"));
        report_set_number(figure, 5, report_number(sample, "algbw_gb_per_s"));
        report_set_text(figure, 6, report_text(sample, "way"));
    }
    return report_figures_add(figures, figure, status);
}

static double nearest_size(const json_t *samples)
{
    double best = NAN;
    const json_t *sample;
    size_t index;

    json_array_foreach(samples, index, sample)
    {
        double size = report_number(sample, "size_bytes");
        if (counts(sample) && size > 0 &&
            (isnan(best) || fabs(log(size / COMPARED_BYTES)) < fabs(log(best / COMPARED_BYTES))))
            best = size;
    }
    return best;
}

static int add_bars(struct report_figures *figures, const json_t *samples, struct wf_status *status)
{
    double size = nearest_size(samples);
    const json_t *sample;
    char text[96], title[96];
    size_t index;

    snprintf(title, sizeof title, "Backends side by side, %.4g MB", size / 1024 / 1024);
    struct report_figure *figure = report_figure_create(REPORT_BARS, "collective-backends", title, NULL);
    if (!figure)
        return report_figures_add(figures, NULL, status);
    figure->x = REPORT_BY_LABEL;
    report_column_add(figure, "operation", "", REPORT_SELECT, false);
    report_column_add(figure, "ranks", "", REPORT_X, false);
    report_column_add(figure, "backend", "", REPORT_SERIES, false);
    report_column_add(figure, "bus bandwidth", "GB/s", REPORT_Y, true);
    report_column_add(figure, "time", "us", REPORT_SHOWN, true);
    json_array_foreach(samples, index, sample)
    {
        if (!counts(sample) || report_number(sample, "size_bytes") != size)
            continue;
        report_row_add(figure);
        report_set_text(figure, 0, operation(sample, text));
        report_set_text(figure, 1, ranks(sample, text));
        report_set_text(figure, 2, backend(sample, text));
        report_set_number(figure, 3, report_number(sample, "busbw_gb_per_s"));
        report_set_number(figure, 4, report_number(json_object_get(sample, "time_us"), "mean"));
    }
    return report_figures_add(figures, figure, status);
}

/* Backends, operations and sizes without a figure, and why. */
int report_missing(struct report_figures *figures, const struct report_run *run, struct wf_status *status)
{
    static const char *const lists[] = {"not_available", "skipped"};
    struct report_figure *figure = report_figure_create(REPORT_TABLE, "collective-missing", "Not measured", NULL);
    const json_t *entry;
    size_t index;

    if (!figure)
        return report_figures_add(figures, NULL, status);
    report_column_add(figure, "what", "", REPORT_SHOWN, false);
    report_column_add(figure, "why", "", REPORT_SHOWN, false);
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        json_array_foreach(json_object_get(run->root, lists[i]), index, entry)
        {
            report_row_add(figure);
            report_set_text(figure, 0, report_text(entry, "what"));
            report_set_text(figure, 1, report_text(entry, "reason"));
        }
    return report_figures_add(figures, figure, status);
}

int report_collective(struct report_figures *figures, const struct report_run *run, struct wf_status *status)
{
    const json_t *samples = json_object_get(run->root, "samples");
    int result =
        add_lines(figures, samples, "collective-bandwidth", "Bus bandwidth by size, backend and ranks", "GB/s", status);

    if (result == 0)
        result = add_lines(figures, samples, "collective-time", "Time by size, backend and ranks", "us", status);
    if (result == 0)
        result = add_bars(figures, samples, status);
    if (result == 0)
        result = report_missing(figures, run, status);
    return result == 0 ? report_machine(figures, run, status) : result;
}
