/* Figures of files that are no meshes: other tools, a model of links, what a machine did, a drawing of it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "figures.h"

/* --- weft peers --- */

const char *report_case_name(const json_t *sample, char *text, size_t room)
{
    double size = report_number(sample, "size_bytes");
    uint64_t buffers = report_count(sample, "buffers");
    char bytes[32] = "?", more[40] = "";

    if (size >= 0 && size < 0x1p62)
        wf_format_size((uint64_t)size, bytes, sizeof bytes);
    if (buffers > 1)
        snprintf(more, sizeof more, ", %llu buffers", (unsigned long long)buffers);
    snprintf(text, room, "%.40s, %s%s", report_text(sample, "metric"), bytes, more);
    return text;
}

/* One unit in each figure. */
static int add_tools(struct report_figures *figures, const struct report_run *run, const char *unit,
                     struct wf_status *status)
{
    const json_t *ratio, *sample;
    struct report_figure *figure;
    char id[64], title[96], text[96];
    size_t index;

    snprintf(id, sizeof id, "peers-%s",
             strcmp(unit, "us") == 0     ? "us"
             : strcmp(unit, "GB/s") == 0 ? "rate"
                                         : "messages");
    snprintf(title, sizeof title, "Beside other tools: %.40s", unit);
    figure =
        report_figure_create(REPORT_BARS, id, title,
                             "The median of all rounds. The ratio is Weft's value over the tool's, round by round, so "
                             "below 1 is better for Weft in us, and above 1 else.");
    if (!figure)
        return report_figures_add(figures, NULL, status);
    figure->x = REPORT_BY_LABEL;
    report_column_add(figure, "case", "", REPORT_X, false);
    report_column_add(figure, "tool", "", REPORT_SERIES, false);
    report_column_add(figure, "median", unit, REPORT_Y, true);
    report_column_add(figure, "least", unit, REPORT_SHOWN, true);
    report_column_add(figure, "most", unit, REPORT_SHOWN, true);
    report_column_add(figure, "ratio", "", REPORT_SHOWN, true);
    json_array_foreach(json_object_get(run->root, "samples"), index, sample)
    {
        if (strcmp(report_text(sample, "unit"), unit) != 0 || isnan(report_number(sample, "median")))
            continue;
        report_row_add(figure);
        report_set_text(figure, 0, report_case_name(sample, text, sizeof text));
        report_set_text(figure, 1, report_text(sample, "backend"));
        report_set_number(figure, 2, report_number(sample, "median"));
        report_set_number(figure, 3, report_number(sample, "min"));
        report_set_number(figure, 4, report_number(sample, "max"));
        ratio = json_object_get(sample, "ratio");
        report_set_number(figure, 5, json_is_number(ratio) ? json_number_value(ratio) : report_number(ratio, "median"));
    }
    return report_figures_add(figures, figure, status);
}

/* Tools that have no figure, and why. */
static int add_missing(struct report_figures *figures, const struct report_run *run, struct wf_status *status)
{
    struct report_figure *figure = report_figure_create(REPORT_TABLE, "peers-missing", "Not measured", NULL);
    const json_t *sample;
    char text[96];
    size_t index;

    if (!figure)
        return report_figures_add(figures, NULL, status);
    report_column_add(figure, "tool", "", REPORT_SHOWN, false);
    report_column_add(figure, "case", "", REPORT_SHOWN, false);
    report_column_add(figure, "why", "", REPORT_SHOWN, false);
    json_array_foreach(json_object_get(run->root, "samples"), index, sample)
    {
        if (!isnan(report_number(sample, "median")))
            continue;
        report_row_add(figure);
        report_set_text(figure, 0, report_text(sample, "backend"));
        report_set_text(figure, 1, report_case_name(sample, text, sizeof text));
        report_set_text(figure, 2, report_text(sample, "reason"));
    }
    return report_figures_add(figures, figure, status);
}

int report_peers(struct report_figures *figures, const struct report_run *run, struct wf_status *status)
{
    static const char *const units[] = {"GB/s", "messages/s", "us"};
    int result = 0;

    for (size_t i = 0; result == 0 && i < sizeof units / sizeof units[0]; i++)
        result = add_tools(figures, run, units[i], status);
    if (result == 0)
        result = add_missing(figures, run, status);
    return result == 0 ? report_machine(figures, run, status) : result;
}

/* --- model.json --- */

int report_model(struct report_figures *figures, const struct report_run *run, struct wf_status *status)
{
    static const struct value {
        const char *field, *name, *unit;
    } values[] = {
        {"alpha_us", "latency", "us"},
        {"alpha_us_low", "latency, low", "us"},
        {"alpha_us_high", "latency, high", "us"},
        {"bandwidth_gb_per_s", "bandwidth", "GB/s"},
        {"crossover_bytes", "crossover", "bytes"},
        {"r2", "r2", ""},
    };
    struct report_figure *figure = report_figure_create(REPORT_TABLE, "model", "Model of each link",
                                                        "time = latency + size / bandwidth, fitted over all sizes; low "
                                                        "and high are the 95 % interval. At the crossover half "
                                                        "of the time is latency.");
    const json_t *link;
    size_t index;

    if (!figure)
        return report_figures_add(figures, NULL, status);
    report_column_add(figure, "backend", "", REPORT_SHOWN, false);
    report_column_add(figure, "source", "", REPORT_SHOWN, true);
    report_column_add(figure, "destination", "", REPORT_SHOWN, true);
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        report_column_add(figure, values[i].name, values[i].unit, REPORT_SHOWN, true);
    json_array_foreach(json_object_get(run->root, "links"), index, link)
    {
        report_row_add(figure);
        report_set_text(figure, 0, report_text(link, "backend"));
        report_set_number(figure, 1, report_number(link, "src"));
        report_set_number(figure, 2, report_number(link, "dst"));
        for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
            report_set_number(figure, 3 + i, report_number(link, values[i].field));
    }
    return report_figures_add(figures, figure, status);
}

/* --- a drawing --- */

int report_plan(struct report_figures *figures, const struct report_run *run, struct wf_status *status)
{
    const char *slash = strrchr(run->path, '/');
    struct report_figure *figure =
        report_figure_create(REPORT_IMAGE, "plan", slash ? slash + 1 : run->path,
                             "The machine, and the plan of rails and processors for it, as weft topo draws them.");

    if (figure) {
        figure->svg = strdup(run->text);
        figure->failed |= !figure->svg;
    }
    return report_figures_add(figures, figure, status);
}
