/* What was predicted beside what was measured: times, and errors by size, pair and regime. */
#include <math.h>
#include <stdlib.h>

#include "forecast.h"
#include "stats.h"

static const char *regime(const struct report_match *match)
{
    return match->bandwidth ? "bandwidth" : "latency";
}

static int add_times(struct report_figures *figures, const struct report_run *run, const struct report_match *matches,
                     size_t count, struct wf_status *status)
{
    struct report_figure *figure = report_figure_create(
        REPORT_POINTS, "predicted", "Predicted and measured times",
        "Each measured time is the median of its pair, with the spread of its messages from 10 % to 90 %.");

    if (!figure)
        return report_figures_add(figures, NULL, status);
    figure->x = figure->y = REPORT_LOG;
    report_column_add(figure, "which", "", REPORT_SERIES, false);
    report_column_add(figure, "size", "bytes", REPORT_X, true);
    report_column_add(figure, "time", "us", REPORT_Y, true);
    report_column_add(figure, "10 %", "us", REPORT_LOW, true);
    report_column_add(figure, "90 %", "us", REPORT_HIGH, true);
    report_column_add(figure, "source", "", REPORT_SHOWN, false);
    report_column_add(figure, "destination", "", REPORT_SHOWN, false);
    report_column_add(figure, "regime", "", REPORT_SHOWN, false);
    report_column_add(figure, "error", "%", REPORT_SHOWN, true);
    for (int which = 0; which < 2; which++)
        for (size_t i = 0; i < count; i++) {
            const struct report_sample *sample = matches[i].sample;
            report_row_add(figure);
            report_set_text(figure, 0, which ? "predicted" : "measured");
            report_set_number(figure, 1, (double)sample->size);
            report_set_number(figure, 2, which ? matches[i].predicted : sample->p50);
            report_set_number(figure, 3, which ? NAN : sample->p10);
            report_set_number(figure, 4, which ? NAN : sample->p90);
            report_set_text(figure, 5, run->ends.list[sample->src]);
            report_set_text(figure, 6, run->ends.list[sample->dst]);
            report_set_text(figure, 7, regime(&matches[i]));
            report_set_number(figure, 8, 100 * matches[i].error);
        }
    return report_figures_add(figures, figure, status);
}

/* Of some matches: the median, the ends of the middle 80 %, and the largest amount. */
struct errors {
    size_t count;
    double median, low, high, worst;
};

static struct errors errors_of(const struct report_match *matches, size_t count, double *room)
{
    struct errors errors = {.count = count};

    for (size_t i = 0; i < count; i++) {
        room[i] = 100 * matches[i].error;
        errors.worst = fabs(room[i]) > fabs(errors.worst) ? room[i] : errors.worst;
    }
    report_sort(room, count);
    errors.median = report_median(room, count);
    errors.low = report_quantile(room, count, 0.1);
    errors.high = report_quantile(room, count, 0.9);
    return errors;
}

static int compare_sizes(const void *one, const void *other)
{
    const struct report_sample *a = ((const struct report_match *)one)->sample,
                               *b = ((const struct report_match *)other)->sample;

    return (a->size > b->size) - (a->size < b->size);
}

static int compare_pairs(const void *one, const void *other)
{
    const struct report_sample *a = ((const struct report_match *)one)->sample,
                               *b = ((const struct report_match *)other)->sample;

    if (a->src != b->src)
        return a->src < b->src ? -1 : 1;
    return (a->dst > b->dst) - (a->dst < b->dst);
}

static int compare_regimes(const void *one, const void *other)
{
    return ((const struct report_match *)one)->bandwidth - ((const struct report_match *)other)->bandwidth;
}

/* How many matches from `at` on, which are sorted, are equal. */
static size_t alike(const struct report_match *matches, size_t at, size_t count,
                    int (*compare)(const void *one, const void *other))
{
    size_t same = 1;

    while (at + same < count && compare(&matches[at], &matches[at + same]) == 0)
        same++;
    return same;
}

static void add_errors(struct report_figure *figure, size_t from, const struct errors *errors)
{
    report_set_number(figure, from, errors->median);
    report_set_number(figure, from + 1, errors->low);
    report_set_number(figure, from + 2, errors->high);
    report_set_number(figure, from + 3, errors->worst);
    report_set_number(figure, from + 4, (double)errors->count);
}

static void add_error_columns(struct report_figure *figure, enum report_role median, enum report_role low,
                              enum report_role high)
{
    report_column_add(figure, "error, median", "%", median, true);
    report_column_add(figure, "error, 10 %", "%", low, true);
    report_column_add(figure, "error, 90 %", "%", high, true);
    report_column_add(figure, "error, worst", "%", median == REPORT_VALUE ? REPORT_VALUE : REPORT_SHOWN, true);
    report_column_add(figure, "samples", "", REPORT_SHOWN, true);
}

static int add_by_size(struct report_figures *figures, struct report_match *matches, size_t count, double *room,
                       struct wf_status *status)
{
    struct report_figure *figure =
        report_figure_create(REPORT_LINES, "predicted-by-size", "Error of the prediction over message size",
                             "Predicted over measured, less 1: above 0 the prediction is too slow. The band has the "
                             "middle 80 % of the pairs.");

    if (!figure)
        return report_figures_add(figures, NULL, status);
    figure->x = REPORT_LOG;
    report_column_add(figure, "which", "", REPORT_SERIES, false);
    report_column_add(figure, "size", "bytes", REPORT_X, true);
    add_error_columns(figure, REPORT_Y, REPORT_LOW, REPORT_HIGH);
    qsort(matches, count, sizeof *matches, compare_sizes);
    for (size_t i = 0; i < count; i += alike(matches, i, count, compare_sizes)) {
        struct errors errors = errors_of(matches + i, alike(matches, i, count, compare_sizes), room);
        report_row_add(figure);
        report_set_text(figure, 0, "all pairs");
        report_set_number(figure, 1, (double)matches[i].sample->size);
        add_errors(figure, 2, &errors);
    }
    return report_figures_add(figures, figure, status);
}

static int add_by_pair(struct report_figures *figures, const struct report_run *run, struct report_match *matches,
                       size_t count, double *room, struct wf_status *status)
{
    struct report_figure *figure = report_figure_create(
        REPORT_HEAT, "predicted-by-pair", "Error of the prediction by pair", "Row sends to column. Over all sizes.");

    if (!figure)
        return report_figures_add(figures, NULL, status);
    report_column_add(figure, "source", "", REPORT_Y, false);
    report_column_add(figure, "destination", "", REPORT_X, false);
    add_error_columns(figure, REPORT_VALUE, REPORT_SHOWN, REPORT_SHOWN);
    qsort(matches, count, sizeof *matches, compare_pairs);
    for (size_t i = 0; i < count; i += alike(matches, i, count, compare_pairs)) {
        struct errors errors = errors_of(matches + i, alike(matches, i, count, compare_pairs), room);
        report_row_add(figure);
        report_set_text(figure, 0, run->ends.list[matches[i].sample->src]);
        report_set_text(figure, 1, run->ends.list[matches[i].sample->dst]);
        add_errors(figure, 2, &errors);
    }
    return report_figures_add(figures, figure, status);
}

static int add_by_regime(struct report_figures *figures, struct report_verdict *verdict, struct report_match *matches,
                         size_t count, double *room, struct wf_status *status)
{
    struct report_figure *figure = report_figure_create(
        REPORT_TABLE, "predicted-by-regime", "Error of the prediction by regime",
        "latency: while a message takes less than twice as long as the pair's smallest; bandwidth: from "
        "there on.");

    if (!figure)
        return report_figures_add(figures, NULL, status);
    report_column_add(figure, "regime", "", REPORT_SHOWN, false);
    add_error_columns(figure, REPORT_SHOWN, REPORT_SHOWN, REPORT_SHOWN);
    qsort(matches, count, sizeof *matches, compare_regimes);
    for (size_t i = 0; i < count; i += alike(matches, i, count, compare_regimes)) {
        struct errors errors = errors_of(matches + i, alike(matches, i, count, compare_regimes), room);
        report_row_add(figure);
        report_set_text(figure, 0, regime(&matches[i]));
        add_errors(figure, 1, &errors);
        report_say(verdict, REPORT_PLAIN,
                   "Predicted, regime %s: %+.1f %% off what was measured in the median, %+.1f to %+.1f %% for 8 of 10, "
                   "%+.1f %% "
                   "at worst (%zu samples).",
                   regime(&matches[i]), errors.median, errors.low, errors.high, errors.worst, errors.count);
    }
    return report_figures_add(figures, figure, status);
}

int report_forecast_draw(struct report_figures *figures, struct report_verdict *verdict, const struct report_run *run,
                         struct report_match *matches, size_t count, struct wf_status *status)
{
    double *room = calloc(count + 1, sizeof *room);
    int result = room ? add_times(figures, run, matches, count, status) : report_figures_add(figures, NULL, status);

    if (result == 0)
        result = add_by_size(figures, matches, count, room, status);
    if (result == 0)
        result = add_by_pair(figures, run, matches, count, room, status);
    if (result == 0)
        result = add_by_regime(figures, verdict, matches, count, room, status);
    free(room);
    return result;
}
