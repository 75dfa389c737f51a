/* How much of the communication is hidden, by backend, style and size of buckets: the JSON of weft overlap. */
#include <string.h>

#include "figures.h"
#include "timeline.h"
#include "verdict.h"

#define DRAWN_MOST 8 /* cases that get a timeline */

static const json_t *cases_of(const struct report_run *run)
{
    return json_object_get(run->root, "cases");
}

/* A case that has run. */
static bool counts(const json_t *one)
{
    return report_number(json_object_get(one, "wall_s"), "overlapped") > 0;
}

/* "weft, all_reduce, 2 ranks" */
static const char *who(const json_t *one, char text[160])
{
    snprintf(text, 160, "%.40s, %.40s, %.0f ranks", report_text(one, "backend"), report_text(one, "style"),
             report_number(one, "ranks"));
    return text;
}

static struct report_figure *start(enum report_kind kind, const char *id, const char *title, const char *note)
{
    struct report_figure *figure = report_figure_create(kind, id, title, note);

    if (figure && kind == REPORT_LINES)
        figure->x = REPORT_LOG;
    return figure;
}

/* --- figures --- */

static int add_hidden(struct report_figures *figures, const struct report_run *run, struct wf_status *status)
{
    struct report_figure *figure = start(
        REPORT_LINES, "overlap-hidden", "Communication that is hidden, by size of the buckets",
        "(serial - overlapped) / communicate, from the wall clock: the median over the iterations, with the least "
        "and the most. At most: if it cost the computation nothing.");
    const json_t *one;
    char text[160];
    size_t index;

    if (!figure)
        return report_figures_add(figures, NULL, status);
    report_column_add(figure, "case", "", REPORT_SERIES, false);
    report_column_add(figure, "bucket", "bytes", REPORT_X, true);
    report_column_add(figure, "hidden", "%", REPORT_Y, true);
    report_column_add(figure, "least", "%", REPORT_LOW, true);
    report_column_add(figure, "most", "%", REPORT_HIGH, true);
    report_column_add(figure, "at most", "%", REPORT_SHOWN, true);
    report_column_add(figure, "cores to communicate", "", REPORT_SHOWN, true);
    json_array_foreach(cases_of(run), index, one)
    {
        const json_t *hidden = json_object_get(one, "hidden");
        if (!counts(one))
            continue;
        report_row_add(figure);
        report_set_text(figure, 0, who(one, text));
        report_set_number(figure, 1, report_number(one, "bucket_bytes"));
        report_set_number(figure, 2, 100 * report_number(hidden, "median"));
        report_set_number(figure, 3, 100 * report_number(hidden, "min"));
        report_set_number(figure, 4, 100 * report_number(hidden, "max"));
        report_set_number(figure, 5, 100 * report_number(one, "hidden_at_most"));
        report_set_number(figure, 6, report_number(one, "cores_to_communicate"));
    }
    return report_figures_add(figures, figure, status);
}

static int add_times(struct report_figures *figures, const struct report_run *run, struct wf_status *status)
{
    static const char *const modes[] = {"compute", "communicate", "serial", "overlapped"};
    struct report_figure *figure =
        start(REPORT_LINES, "overlap-times", "Computation and communication, alone, in turns and at once",
              "Wall clock of the slowest rank, medians over the iterations.");
    const json_t *one;
    char text[160];
    size_t index;

    if (!figure)
        return report_figures_add(figures, NULL, status);
    report_column_add(figure, "case", "", REPORT_SELECT, false);
    report_column_add(figure, "what", "", REPORT_SERIES, false);
    report_column_add(figure, "bucket", "bytes", REPORT_X, true);
    report_column_add(figure, "time", "s", REPORT_Y, true);
    json_array_foreach(cases_of(run), index, one)
    {
        for (size_t mode = 0; counts(one) && mode < sizeof modes / sizeof modes[0]; mode++) {
            report_row_add(figure);
            report_set_text(figure, 0, who(one, text));
            report_set_text(figure, 1, modes[mode]);
            report_set_number(figure, 2, report_number(one, "bucket_bytes"));
            report_set_number(figure, 3, report_number(json_object_get(one, "wall_s"), modes[mode]));
        }
    }
    return report_figures_add(figures, figure, status);
}

/* All-reduce beside a server, and backends beside each other. */
static int add_styles(struct report_figures *figures, const struct report_run *run, struct wf_status *status)
{
    struct report_figure *figure =
        start(REPORT_BARS, "overlap-styles", "Communication alone, by style", "The smallest size of buckets.");
    double size = report_number(json_array_get(cases_of(run), 0), "bucket_bytes");
    const json_t *one;
    char text[96];
    size_t index;

    if (!figure)
        return report_figures_add(figures, NULL, status);
    figure->x = REPORT_BY_LABEL;
    report_column_add(figure, "style", "", REPORT_X, false);
    report_column_add(figure, "backend", "", REPORT_SERIES, false);
    report_column_add(figure, "time", "s", REPORT_Y, true);
    json_array_foreach(cases_of(run), index, one)
    {
        if (!counts(one) || report_number(one, "bucket_bytes") != size)
            continue;
        report_row_add(figure);
        report_set_text(figure, 0, report_text(one, "style"));
        snprintf(text, sizeof text, "%.40s, %.0f ranks", report_text(one, "backend"), report_number(one, "ranks"));
        report_set_text(figure, 1, text);
        report_set_number(figure, 2, report_number(json_object_get(one, "wall_s"), "communicate"));
    }
    return report_figures_add(figures, figure, status);
}

static int add_timelines(struct report_figures *figures, const struct report_run *run, struct wf_status *status)
{
    const json_t *one;
    char text[160], title[240];
    size_t index, drawn = 0;
    int result = 0;

    json_array_foreach(cases_of(run), index, one)
    {
        char *svg = result == 0 && drawn < DRAWN_MOST ? report_timeline(one) : NULL;
        if (!svg)
            continue;
        snprintf(title, sizeof title, "Layers and buckets over time: %s, %.0f MiB", who(one, text),
                 report_number(one, "bucket_bytes") / (1 << 20));
        struct report_figure *figure =
            start(REPORT_IMAGE, "overlap-timeline", title,
                  "Rank 0 in the last iteration. A bucket has the colour of its layers; the stroke above it says when "
                  "they were done, the bar when it was on its way. The black line is the end.");
        if (figure)
            figure->svg = svg;
        result = report_figures_add(figures, figure, status);
        drawn++;
    }
    return result;
}

int report_overlap(struct report_figures *figures, const struct report_run *run, struct wf_status *status)
{
    int result = add_timelines(figures, run, status);

    if (result == 0)
        result = add_hidden(figures, run, status);
    if (result == 0)
        result = add_times(figures, run, status);
    if (result == 0)
        result = add_styles(figures, run, status);
    if (result == 0)
        result = report_missing(figures, run, status);
    return result == 0 ? report_machine(figures, run, status) : result;
}

/* --- what is said of it --- */

void report_judge_overlap(struct report_verdict *verdict, const struct report_run *run)
{
    const json_t *one;
    double wrong = 0, checked = 0;
    char text[160];
    size_t index;

    json_array_foreach(cases_of(run), index, one)
    {
        wrong += (double)report_count(one, "wrong_elements");
        checked += (double)report_count(one, "verified_elements");
    }
    if (wrong > 0)
        report_say(verdict, REPORT_BAD, "%.0f elements of gradients are wrong.", wrong);
    else if (checked > 0)
        report_say(verdict, REPORT_GOOD, "All elements of gradients that were verified are right: %.0f.", checked);
    json_array_foreach(cases_of(run), index, one)
    {
        const json_t *wall = json_object_get(one, "wall_s");
        if (index < DRAWN_MOST && counts(one))
            report_say(
                verdict, REPORT_PLAIN,
                "%s, buckets of %.0f MiB: %.0f %% of the communication was hidden: %.3g s without overlap, %.3g s "
                "with it.",
                who(one, text), report_number(one, "bucket_bytes") / (1 << 20),
                100 * report_number(json_object_get(one, "hidden"), "median"), report_number(wall, "serial"),
                report_number(wall, "overlapped"));
    }
}
