/* The value over the settings that were varied: a surface of two, bars of one. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "figures.h"
#include "stats.h"

#define AXES_MAX 8

/* A combination of settings, and what it came to. */
struct point {
    char **values; /* of each axis */
    double value, spread, of_default, cpu, runs;
    const char *mark;
};

struct points {
    struct report_texts axes; /* names of the settings */
    struct point *list;
    size_t count;
};

static void fini_values(const struct points *points, struct point *point)
{
    for (size_t axis = 0; point->values && axis < points->axes.count; axis++)
        free(point->values[axis]);
    free(point->values);
    point->values = NULL;
}

static void fini_points(struct points *points)
{
    for (size_t i = 0; i < points->count; i++)
        fini_values(points, &points->list[i]);
    free(points->list);
    report_texts_fini(&points->axes);
}

/* NAN: it is no number, with a unit of sizes or without. A list of addresses begins with a number, and is none. */
static double worth(const char *text)
{
    static const char units[] = "KMGT";
    char *end;
    double value = strtod(text, &end);
    const char *unit = *end ? strchr(units, *end) : NULL;

    if (unit)
        value *= pow(1024, (double)(unit - units + 1));
    return end == text || end[unit ? 1 : 0] ? NAN : value;
}

/* Sizes and numbers by what they are worth, the rest by name. */
static int compare_values(const char *one, const char *other)
{
    double a = worth(one), b = worth(other);
    bool words_one = isnan(a), words_other = isnan(b);

    /* Numbers before words: a list in which some have one order and some another has none. */
    if (words_one || words_other)
        return words_one && words_other ? strcmp(one, other) : words_one - words_other;
    return (a > b) - (a < b);
}

static int compare_points(const void *one, const void *other, void *context)
{
    const struct point *a = one, *b = other;
    size_t axes = ((const struct points *)context)->axes.count;
    int order = 0;

    /* The axes that the reader chooses from go first, so that what is drawn at once stands together. */
    for (size_t axis = axes; order == 0 && axis-- > 0;)
        order = compare_values(a->values[axis], b->values[axis]);
    return order;
}

static void add_row(struct report_figure *figure, const struct points *points, const struct point *point)
{
    size_t axes = points->axes.count;

    report_row_add(figure);
    for (size_t axis = 0; axis < axes; axis++)
        report_set_text(figure, axis, point->values[axis]);
    report_set_number(figure, axes, point->value);
    report_set_number(figure, axes + 1, point->of_default);
    report_set_number(figure, axes + 2, point->spread);
    report_set_number(figure, axes + 3, point->cpu);
    report_set_number(figure, axes + 4, point->runs);
    report_set_text(figure, axes + 5, point->mark);
}

/* The first axis is horizontal, the second vertical, and of the others one value is shown at a time. */
static int add_surface(struct report_figures *figures, struct points *points, const char *unit, const char *note,
                       struct wf_status *status)
{
    size_t axes = points->axes.count;
    bool flat = axes == 1;
    struct report_figure *figure =
        report_figure_create(flat ? REPORT_BARS : REPORT_HEAT, "surface", "Settings that were tried", note);

    if (!figure)
        return report_figures_add(figures, NULL, status);
    figure->x = REPORT_BY_LABEL;
    for (size_t axis = 0; axis < axes; axis++)
        report_column_add(figure, points->axes.list[axis], "",
                          axis == 0   ? REPORT_X
                          : axis == 1 ? REPORT_Y
                                      : REPORT_SELECT,
                          false);
    report_column_add(figure, "value", unit, flat ? REPORT_Y : REPORT_VALUE, true);
    report_column_add(figure, "of the default", "", flat ? REPORT_SHOWN : REPORT_VALUE, true);
    report_column_add(figure, "spread", "", REPORT_SHOWN, true);
    report_column_add(figure, "processor time", "s/GB", REPORT_SHOWN, true);
    report_column_add(figure, "runs", "", REPORT_SHOWN, true);
    report_column_add(figure, "remark", "", REPORT_MARK, false);
    for (size_t i = 0; i < points->count; i++)
        add_row(figure, points, &points->list[i]);
    return report_figures_add(figures, figure, status);
}

/* Puts the points into their order. */
static void sort_points(struct points *points)
{
    qsort_r(points->list, points->count, sizeof *points->list, compare_points, points);
}

static char *text_of(const json_t *value)
{
    char text[64];

    if (json_is_string(value))
        return strdup(json_string_value(value));
    if (json_is_integer(value)) {
        json_int_t number = json_integer_value(value);
        if (number > 0 && number % 1024 == 0)
            return strdup(wf_format_size((uint64_t)number, text, sizeof text));
        snprintf(text, sizeof text, "%" JSON_INTEGER_FORMAT, number);
        return strdup(text);
    }
    if (json_is_real(value)) {
        snprintf(text, sizeof text, "%.6g", json_real_value(value));
        return strdup(text);
    }
    return strdup(json_is_boolean(value) ? (json_is_true(value) ? "on" : "off") : "");
}

/* The values of a point on all axes; `config`: those of a result, which have an origin beside them. */
static int take_values(struct points *points, struct point *point, const json_t *settings, bool config)
{
    point->values = calloc(points->axes.count + 1, sizeof *point->values);
    for (size_t axis = 0; point->values && axis < points->axes.count; axis++) {
        const json_t *value = json_object_get(settings, points->axes.list[axis]);
        point->values[axis] = text_of(config ? json_object_get(value, "value") : value);
        if (!point->values[axis])
            return -ENOMEM;
    }
    return point->values ? 0 : -ENOMEM;
}

/* --- weft sweep --- */

static int take_points(struct points *points, const struct report_run *run)
{
    const json_t *list = json_object_get(run->root, "points"), *best = json_object_get(run->root, "best"), *from;
    const char *name;
    json_t *value;
    uint32_t axis;
    size_t index;

    json_object_foreach(json_object_get(json_array_get(list, 0), "settings"), name,
                        value) if (points->axes.count < AXES_MAX &&
                                   report_text_index(&points->axes, name, &axis)) return -ENOMEM;
    points->list = calloc(json_array_size(list) + 1, sizeof *points->list);
    if (!points->list)
        return -ENOMEM;
    json_array_foreach(list, index, from)
    {
        struct point *point = &points->list[points->count++];
        bool is_best = report_number(best, "point") == report_number(from, "point");
        *point = (struct point){
            .value = report_number(from, "value"),
            .spread = report_number(from, "spread"),
            .of_default = report_number(json_object_get(from, "of_default"), "ratio"),
            .cpu = report_number(from, "cpu_s_per_gb"),
            .runs = report_number(from, "runs"),
            .mark = is_best                                          ? "best"
                    : json_is_true(json_object_get(from, "default")) ? "default"
                    : report_number(from, "failures") > 0            ? "runs failed"
                                                                     : "",
        };
        if (take_values(points, point, json_object_get(from, "settings"), false))
            return -ENOMEM;
    }
    return 0;
}

int report_sweep(struct report_figures *figures, const struct report_run *run, struct wf_status *status)
{
    struct points points = {0};
    int result = take_points(&points, run);

    if (result)
        result = wf_fail(status, result, "no memory for the points of the sweep");
    else if (points.axes.count) {
        sort_points(&points);
        result =
            add_surface(figures, &points, report_text(run->root, "unit"), report_text(run->root, "verdict"), status);
    }
    fini_points(&points);
    return result == 0 ? report_machine(figures, run, status) : result;
}

/* --- runs whose settings differ --- */

/* Settings that say what is measured or where it goes, and not how. */
static bool is_place(const char *name)
{
    static const char *const places[] = {"out",  "json",     "csv",   "json_stream", "log_dir", "traces", "seed",
                                         "port", "begin",    "end",   "factor",      "size",    "iters",  "warmup",
                                         "mode", "duration", "check", "width",       "quiet"};

    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        if (strcmp(name, places[i]) == 0)
            return true;
    return false;
}

/* The settings that are not the same in all runs. */
static int find_axes(struct points *points, struct report_run *const *runs, size_t count)
{
    json_t *first = json_object_get(runs[0]->root, "config"), *setting;
    const char *name;
    uint32_t axis;

    json_object_foreach(first, name, setting)
    {
        const json_t *value = json_object_get(setting, "value");
        bool same = true;
        for (size_t i = 1; same && i < count; i++)
            same = json_equal(
                value, json_object_get(json_object_get(json_object_get(runs[i]->root, "config"), name), "value"));
        if (!same && !is_place(name) && points->axes.count < AXES_MAX && report_text_index(&points->axes, name, &axis))
            return -ENOMEM;
    }
    return 0;
}

static double peak_of(const struct report_run *run)
{
    return report_number(json_object_get(json_object_get(run->root, "summary"), "peak"), "bw_gb_per_s");
}

/* The median of runs with the same settings, and how far they lie apart. */
static void sum_up(struct point *point, double *values, size_t count)
{
    double mean, deviation = report_deviation(values, count, &mean);

    report_sort(values, count);
    point->value = report_median(values, count);
    point->spread = mean > 0 ? deviation / mean : NAN;
    point->runs = (double)count;
}

/* One point for all runs with the same settings; they stand beside each other. */
static int merge_points(struct points *points)
{
    double *values = calloc(points->count + 1, sizeof *values);
    size_t kept = 0, same;

    for (size_t i = 0; values && i < points->count; i += same) {
        for (same = 0;
             i + same < points->count && compare_points(&points->list[i], &points->list[i + same], points) == 0;
             same++) {
            values[same] = points->list[i + same].value;
            if (same)
                fini_values(points, &points->list[i + same]);
        }
        points->list[kept] = points->list[i];
        sum_up(&points->list[kept++], values, same);
    }
    points->count = values ? kept : points->count;
    free(values);
    return values ? 0 : -ENOMEM;
}

static void mark_best(struct points *points)
{
    size_t best = 0;

    for (size_t i = 1; i < points->count; i++)
        if (points->list[i].value > points->list[best].value)
            best = i;
    if (points->count)
        points->list[best].mark = "best";
}

int report_surface_of_runs(struct report_figures *figures, struct report_run *const *runs, size_t count,
                           struct wf_status *status)
{
    struct points points = {.list = calloc(count + 1, sizeof *points.list)};
    int result = !points.list ? -ENOMEM : count > 1 ? find_axes(&points, runs, count) : 0;

    for (size_t i = 0; result == 0 && i < count && points.axes.count; i++) {
        if (isnan(peak_of(runs[i])))
            continue;
        points.list[points.count] = (struct point){
            .value = peak_of(runs[i]), .spread = NAN, .of_default = NAN, .cpu = NAN, .runs = 1, .mark = ""};
        result = take_values(&points, &points.list[points.count++], json_object_get(runs[i]->root, "config"), true);
    }
    if (result == 0) {
        sort_points(&points);
        result = merge_points(&points);
        mark_best(&points);
    }
    if (result)
        result = wf_fail(status, result, "no memory for the settings of the runs");
    else if (points.axes.count)
        result =
            add_surface(figures, &points, "GB/s",
                        "The highest rate of a pair in each run, over the settings in which the runs differ; of runs "
                        "with the same settings the median.",
                        status);
    fini_points(&points);
    return result;
}

/* --- a row each --- */

int report_overview(struct report_figures *figures, struct report_run *const *runs, size_t count,
                    struct wf_status *status)
{
    struct report_figure *figure = report_figure_create(REPORT_TABLE, "runs", "Runs", NULL);

    if (!figure)
        return report_figures_add(figures, NULL, status);
    report_column_add(figure, "file", "", REPORT_SHOWN, false);
    report_column_add(figure, "command", "", REPORT_SHOWN, false);
    report_column_add(figure, "started", "", REPORT_SHOWN, false);
    report_column_add(figure, "passed", "", REPORT_SHOWN, false);
    report_column_add(figure, "highest rate of a pair", "GB/s", REPORT_SHOWN, true);
    report_column_add(figure, "samples", "", REPORT_SHOWN, true);
    for (size_t i = 0; i < count; i++) {
        const json_t *summary = json_object_get(runs[i]->root, "summary");
        report_row_add(figure);
        report_set_text(figure, 0, runs[i]->path);
        report_set_text(figure, 1, report_text(runs[i]->root, "command"));
        report_set_text(figure, 2, report_text(runs[i]->root, "started"));
        report_set_text(figure, 3, json_is_true(json_object_get(summary, "passed")) ? "yes" : "no");
        report_set_number(figure, 4, peak_of(runs[i]));
        report_set_number(figure, 5, (double)runs[i]->sample_count);
    }
    return report_figures_add(figures, figure, status);
}
