/* What set-up costs where it is made anew in every iteration: the JSON of weft setup-cost. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "figures.h"
#include "verdict.h"

/* "weft: group" */
static const char *label_of(const json_t *row, char text[96])
{
    snprintf(text, 96, "%.30s: %.50s", report_text(row, "backend"), report_text(row, "anew"));
    return text;
}

static const char *ranks_of(const json_t *row, char text[32])
{
    snprintf(text, 32, "%.0f ranks", report_number(row, "ranks"));
    return text;
}

static int add_times(struct report_figures *figures, const json_t *rows, struct wf_status *status)
{
    static const char *const parts[] = {"set-up", "operation"};
    struct report_figure *figure = report_figure_create(
        REPORT_BARS, "setup-time", "One iteration: set-up for the first time, kept, and made anew each time",
        "Medians over the iterations, of the rank that took longest. Kept, only the operation is left.");
    char text[96], ranks[32];
    const json_t *row;
    size_t index;

    if (!figure)
        return report_figures_add(figures, NULL, status);
    figure->x = REPORT_BY_LABEL;
    report_column_add(figure, "ranks", "", REPORT_SELECT, false);
    report_column_add(figure, "made anew", "", REPORT_X, false);
    report_column_add(figure, "part", "", REPORT_SERIES, false);
    report_column_add(figure, "time", "ms", REPORT_Y, true);
    report_column_add(figure, "over kept", "", REPORT_SHOWN, true);
    json_array_foreach(rows, index, row) for (int i = 0; i < 2; i++)
    {
        double operation_us = report_number(row, "operation_us");
        report_row_add(figure);
        report_set_text(figure, 0, ranks_of(row, ranks));
        report_set_text(figure, 1, label_of(row, text));
        report_set_text(figure, 2, parts[i]);
        report_set_number(
            figure, 3, (i ? operation_us : report_number(json_object_get(row, "time_us"), "p50") - operation_us) / 1e3);
        report_set_number(figure, 4, report_number(row, "times_kept"));
    }
    return report_figures_add(figures, figure, status);
}

static void add_row_of_steps(struct report_figure *figure, const json_t *row)
{
    char text[96], ranks[32];
    const char *step;
    json_t *us;

    json_object_foreach(json_object_get(row, "steps_us"), step, us)
    {
        report_row_add(figure);
        report_set_text(figure, 0, ranks_of(row, ranks));
        report_set_text(figure, 1, label_of(row, text));
        report_set_text(figure, 2, step);
        report_set_number(figure, 3, json_is_number(us) ? json_number_value(us) / 1e3 : NAN);
    }
}

static int add_steps(struct report_figures *figures, const json_t *rows, struct wf_status *status)
{
    struct report_figure *figure = report_figure_create(
        REPORT_BARS, "setup-steps", "Where the time of set-up goes",
        "Medians of each step, where the library tells them; of other libraries only the whole is known.");
    const json_t *row;
    size_t index;

    if (!figure)
        return report_figures_add(figures, NULL, status);
    figure->x = REPORT_BY_LABEL;
    report_column_add(figure, "ranks", "", REPORT_SELECT, false);
    report_column_add(figure, "made anew", "", REPORT_X, false);
    report_column_add(figure, "step", "", REPORT_SERIES, false);
    report_column_add(figure, "time", "ms", REPORT_Y, true);
    json_array_foreach(rows, index, row) add_row_of_steps(figure, row);
    return report_figures_add(figures, figure, status);
}

int report_setup(struct report_figures *figures, const struct report_run *run, struct wf_status *status)
{
    const json_t *rows = json_object_get(run->root, "rows");
    int result = add_times(figures, rows, status);

    if (result == 0)
        result = add_steps(figures, rows, status);
    if (result == 0)
        result = report_missing(figures, run, status);
    return result == 0 ? report_machine(figures, run, status) : result;
}

void report_judge_setup(struct report_verdict *verdict, const struct report_run *run)
{
    const json_t *row;
    size_t index;

    json_array_foreach(json_object_get(run->root, "rows"), index, row)
    {
        const char *anew = report_text(row, "anew");
        double us = report_number(json_object_get(row, "time_us"), "p50"), times = report_number(row, "times_kept");
        bool made = strcmp(anew, "cold") != 0 && strcmp(anew, "kept") != 0;
        if (made && times > 0 && strcmp(report_text(row, "backend"), "weft") == 0)
            report_say(verdict, REPORT_PLAIN,
                       "Weft, %.0f ranks, %.50s made anew: %.3g ms an iteration, %.3g times that with everything kept.",
                       report_number(row, "ranks"), anew, us / 1e3, times);
    }
}
