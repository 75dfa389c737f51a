/* Lines over the size of messages: rate, time, processor time. Each is the median of the pairs of a direction. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "figures.h"
#include "stats.h"

/* What is drawn of a sample. */
struct curve {
    const char *id, *title, *note, *name, *unit;
    bool of_latency; /* of ping-pongs, or of all other samples */
    bool log;        /* the vertical axis */
    double (*value)(const struct report_sample *sample);
    double (*low)(const struct report_sample *sample); /* of a single pair: the spread of its messages */
    double (*high)(const struct report_sample *sample);
};

static double rate_of(const struct report_sample *sample)
{
    return sample->rate;
}

static double rate_at(const struct report_sample *sample, double time_us)
{
    return sample->rate >= 0 && time_us > 0 ? (double)sample->size / 1e3 / time_us : NAN;
}

static double least_rate_of(const struct report_sample *sample)
{
    return rate_at(sample, sample->p90);
}

static double most_rate_of(const struct report_sample *sample)
{
    return rate_at(sample, sample->p10);
}

static double time_of(const struct report_sample *sample)
{
    return sample->p50;
}

static double short_time_of(const struct report_sample *sample)
{
    return sample->p10;
}

static double long_time_of(const struct report_sample *sample)
{
    return sample->p90;
}

static double cpu_of(const struct report_sample *sample)
{
    return sample->cpu;
}

static double nothing(const struct report_sample *sample)
{
    (void)sample;
    return NAN;
}

#define SPREAD                                                                                                         \
    "The line is the median of the pairs of a direction, the band from their 10 % to their 90 %; of a single pair, "   \
    "of its messages."

static const struct curve curves[] = {
    {"rate", "Bandwidth over message size", SPREAD, "rate", "GB/s", false, false, rate_of, least_rate_of, most_rate_of},
    {"time", "Time of a message over its size", SPREAD, "time", "us", false, true, time_of, short_time_of,
     long_time_of},
    {"latency", "Half round trip over message size", SPREAD, "half round trip", "us", true, true, time_of,
     short_time_of, long_time_of},
    {"cpu", "Processor time over message size",
     "Seconds of processors of both nodes for 10^9 bytes of messages. " SPREAD, "processor time", "s/GB", false, true,
     cpu_of, nothing, nothing},
};

/* The values of a set's pairs of one way, sorted; `last` is one of their samples. */
static size_t collect(const struct report_grid *grid, size_t set, int way, const struct curve *curve, double *values,
                      const struct report_sample **last)
{
    size_t count = 0;

    *last = NULL;
    for (size_t pair = 0; pair < grid->pair_count; pair++) {
        const struct report_sample *sample = report_cell(grid, set, pair);
        if (grid->pairs[pair].way != way || !sample || isnan(curve->value(sample)))
            continue;
        values[count++] = curve->value(sample);
        *last = sample;
    }
    report_sort(values, count);
    return count;
}

static void add_point(struct report_figure *figure, const struct report_grid *grid, size_t set, int way,
                      const struct curve *curve, double *values)
{
    const struct report_sample *last;
    size_t count = collect(grid, set, way, curve, values, &last);
    char text[64];

    if (!count)
        return;
    report_row_add(figure);
    report_set_text(figure, 0, report_backend(grid, set));
    report_set_text(figure, 1, report_mode_name(grid->sets[set].mode));
    report_set_text(figure, 2, report_way_name(grid, way, text, sizeof text));
    report_set_number(figure, 3, (double)grid->sets[set].size);
    report_set_number(figure, 4, report_median(values, count));
    report_set_number(figure, 5, count > 1 ? report_quantile(values, count, 0.1) : curve->low(last));
    report_set_number(figure, 6, count > 1 ? report_quantile(values, count, 0.9) : curve->high(last));
    report_set_number(figure, 7, values[0]);
    report_set_number(figure, 8, values[count - 1]);
    report_set_number(figure, 9, (double)count);
}

static int add_curve(struct report_figures *figures, const struct report_grid *grid, const struct curve *curve,
                     double *values, struct wf_status *status)
{
    struct report_figure *figure = report_figure_create(REPORT_LINES, curve->id, curve->title, curve->note);

    if (!figure)
        return report_figures_add(figures, NULL, status);
    figure->x = REPORT_LOG;
    figure->y = curve->log ? REPORT_LOG : REPORT_LINEAR;
    report_column_add(figure, "backend", "", REPORT_SERIES, false);
    report_column_add(figure, "mode", "", REPORT_SERIES, false);
    report_column_add(figure, "direction", "", REPORT_SERIES, false);
    report_column_add(figure, "size", "bytes", REPORT_X, true);
    report_column_add(figure, curve->name, curve->unit, REPORT_Y, true);
    report_column_add(figure, "10 %", curve->unit, REPORT_LOW, true);
    report_column_add(figure, "90 %", curve->unit, REPORT_HIGH, true);
    report_column_add(figure, "least", curve->unit, REPORT_SHOWN, true);
    report_column_add(figure, "most", curve->unit, REPORT_SHOWN, true);
    report_column_add(figure, "pairs", "", REPORT_SHOWN, true);
    for (size_t set = 0; set < grid->set_count; set++)
        for (int way = 0; way < grid->way_count && grid->sets[set].latency == curve->of_latency; way++)
            add_point(figure, grid, set, way, curve, values);
    return report_figures_add(figures, figure, status);
}

/* --- all together --- */

/* Of the sets in the summary, which know how long all pairs took together. */
static int add_together(struct report_figures *figures, const struct report_run *run, struct wf_status *status)
{
    struct report_figure *figure = report_figure_create(
        REPORT_LINES, "together", "All pairs together",
        "The bytes of all pairs in loaded, both directions, over the time from the start to the last "
        "completion.");
    const json_t *set;
    size_t index;

    if (!figure)
        return report_figures_add(figures, NULL, status);
    figure->x = REPORT_LOG;
    report_column_add(figure, "backend", "", REPORT_SERIES, false);
    report_column_add(figure, "size", "bytes", REPORT_X, true);
    report_column_add(figure, "rate", "GB/s", REPORT_Y, true);
    report_column_add(figure, "processor time", "s/GB", REPORT_SHOWN, true);
    json_array_foreach(json_object_get(json_object_get(run->root, "summary"), "sets"), index, set)
    {
        double rate = report_number(set, "aggregate_bw_gb_per_s");
        if (strcmp(report_text(set, "mode"), "loaded") != 0 || isnan(rate))
            continue;
        report_row_add(figure);
        report_set_text(figure, 0, report_text(set, "backend"));
        report_set_number(figure, 1, report_number(set, "size_bytes"));
        report_set_number(figure, 2, rate);
        report_set_number(figure, 3, report_number(set, "cpu_s_per_gb"));
    }
    return report_figures_add(figures, figure, status);
}

int report_curves(struct report_figures *figures, const struct report_grid *grid, struct wf_status *status)
{
    double *values = calloc(grid->pair_count + 1, sizeof *values);
    int result = values ? 0 : report_figures_add(figures, NULL, status);

    for (size_t i = 0; result == 0 && i < sizeof curves / sizeof curves[0]; i++) {
        result = add_curve(figures, grid, &curves[i], values, status);
        if (result == 0 && i == 0)
            result = add_together(figures, grid->run, status);
    }
    free(values);
    return result;
}
