/* What each rail carried: its share beside that of its line rate, over the run, and what happened to it. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "bench/result/cause.h"
#include "figures.h"
#include "rails.h"

static const char *rail_name(const json_t *rail, char *text, size_t room)
{
    snprintf(text, room, "%.20s %.120s", report_text(rail, "node"), report_text(rail, "name"));
    return text;
}

/* The line rates of the rails of the same node together; NaN where one is not known. `count`: how many they are. */
static double line_of_node(const json_t *rails, const json_t *of, double *count)
{
    const json_t *rail;
    double sum = 0;
    size_t index;

    *count = 0;
    json_array_foreach(rails, index, rail)
    {
        double speed = report_number(rail, "speed_mbit");
        if (strcmp(report_text(rail, "node"), report_text(of, "node")) != 0)
            continue;
        sum += speed > 0 ? speed : NAN;
        ++*count;
    }
    return sum;
}

bool report_rail_known(const json_t *rails, const json_t *rail)
{
    double count;

    return line_of_node(rails, rail, &count) > 0;
}

double report_rail_fair(const json_t *rails, const json_t *rail)
{
    double count, line = line_of_node(rails, rail, &count);

    return line > 0 ? report_number(rail, "speed_mbit") / line : 1 / count;
}

double report_rail_share(const struct report_run *run, const json_t *rail)
{
    char name[160];
    uint32_t at = UINT32_MAX;
    uint64_t largest = 0;
    double bytes = 0, all = 0;

    rail_name(rail, name, sizeof name);
    for (uint32_t i = 0; i < run->rails.count; i++)
        if (strcmp(run->rails.list[i], name) == 0)
            at = i;
    for (size_t i = 0; i < run->flow_count; i++)
        largest = run->flows[i].size > largest ? run->flows[i].size : largest;
    for (size_t i = 0; i < run->flow_count; i++) {
        const struct report_flow *flow = &run->flows[i];
        size_t length = strlen(report_text(rail, "node"));
        if (flow->size != largest || strncmp(run->rails.list[flow->rail], name, length + 1) != 0)
            continue;
        all += flow->bytes;
        bytes += flow->rail == at ? flow->bytes : 0;
    }
    return all > 0 ? bytes / all : NAN;
}

bool report_all_rails_serve(const struct report_run *run)
{
    return !json_is_true(json_object_get(run->root, "loopback")) &&
           bench_rails_compare(json_object_get(run->root, "host"),
                               strstr(report_text(run->root, "memory"), "cuda") != NULL);
}

/* --- shares --- */

static void add_share(struct report_figure *figure, const char *name, const char *series, double share)
{
    report_row_add(figure);
    report_set_text(figure, 0, name);
    report_set_text(figure, 1, series);
    report_set_number(figure, 2, 100 * share);
}

static int add_shares(struct report_figures *figures, const struct report_run *run, const json_t *rails,
                      struct wf_status *status)
{
    struct report_figure *figure = report_figure_create(
        REPORT_BARS, "rails", "Share of each rail",
        "Of the bytes of the largest size that came to this node. Beside it the rail's share of the line rates of its "
        "node, where these are known, else an equal one.");
    const json_t *rail;
    size_t index;
    char name[160];

    if (!figure)
        return report_figures_add(figures, NULL, status);
    figure->x = REPORT_BY_LABEL;
    report_column_add(figure, "rail", "", REPORT_X, false);
    report_column_add(figure, "which", "", REPORT_SERIES, false);
    report_column_add(figure, "share", "%", REPORT_Y, true);
    json_array_foreach(rails, index, rail)
    {
        double share = report_rail_share(run, rail);
        if (isnan(share))
            continue;
        add_share(figure, rail_name(rail, name, sizeof name), "carried", share);
        add_share(figure, name, report_rail_known(rails, rail) ? "by line rate" : "if all were alike",
                  report_rail_fair(rails, rail));
    }
    return report_figures_add(figures, figure, status);
}

/* --- over time --- */

/* When a set ended, in seconds; NaN where the file does not say. */
static double when(const struct report_run *run, const struct report_flow *flow)
{
    const json_t *set;
    size_t index;

    json_array_foreach(json_object_get(json_object_get(run->root, "summary"), "sets"), index,
                       set) if (report_number(set, "size_bytes") == (double)flow->size &&
                                strcmp(report_text(set, "mode"), report_mode_name(flow->mode)) == 0 &&
                                strcmp(report_text(set, "backend"), run->backends.list[flow->backend]) ==
                                    0) return report_number(set, "ended_s");
    return NAN;
}

static bool same_set(const struct report_flow *one, const struct report_flow *other)
{
    return one->backend == other->backend && one->mode == other->mode && one->size == other->size;
}

static bool is_of(const struct report_sample *sample, const struct report_flow *flow)
{
    return sample->backend == flow->backend && sample->mode == flow->mode && sample->size == flow->size;
}

static void tell_events(const struct report_run *run, const struct report_flow *flow, char *text, size_t room)
{
    double failures = 0, retransmits = 0;

    for (size_t i = 0; i < run->sample_count; i++)
        if (is_of(&run->samples[i], flow)) {
            failures += run->samples[i].failures;
            retransmits += run->samples[i].retransmits;
        }
    text[0] = '\0';
    if (failures > 0)
        snprintf(text, room, "%.0f connections were lost in this set", failures);
    else if (retransmits > 0)
        snprintf(text, room, "%.0f segments were sent again in this set", retransmits);
}

/* Flows of the same set and node stand together. */
static double bytes_of_set(const struct report_run *run, const struct report_flow *flow)
{
    size_t length = strcspn(run->rails.list[flow->rail], " ") + 1;
    double all = 0;

    for (size_t i = 0; i < run->flow_count; i++) {
        const struct report_flow *other = &run->flows[i];
        if (same_set(other, flow) && strncmp(run->rails.list[other->rail], run->rails.list[flow->rail], length) == 0)
            all += other->bytes;
    }
    return all;
}

static int add_history(struct report_figures *figures, const struct report_run *run, struct wf_status *status)
{
    struct report_figure *figure =
        report_figure_create(REPORT_LINES, "rails-time", "Shares of the rails in the course of the run",
                             "A point for each size and mode, at its end. Marked are those in which connections were "
                             "lost or TCP sent again.");
    char text[96] = "", size[32];
    double at = NAN;

    if (!figure)
        return report_figures_add(figures, NULL, status);
    report_column_add(figure, "rail", "", REPORT_SERIES, false);
    report_column_add(figure, "time", "s", REPORT_X, true);
    report_column_add(figure, "share", "%", REPORT_Y, true);
    report_column_add(figure, "mode", "", REPORT_SHOWN, false);
    report_column_add(figure, "size", "", REPORT_SHOWN, false);
    report_column_add(figure, "bytes", "", REPORT_SHOWN, true);
    report_column_add(figure, "event", "", REPORT_MARK, false);
    for (size_t i = 0; i < run->flow_count; i++) {
        const struct report_flow *flow = &run->flows[i];
        double all = bytes_of_set(run, flow);
        /* All samples are looked at for it: once a set, whose flows stand together. */
        if (i == 0 || !same_set(flow, flow - 1)) {
            at = when(run, flow);
            tell_events(run, flow, text, sizeof text);
        }
        if (isnan(at) || all <= 0)
            continue;
        report_row_add(figure);
        report_set_text(figure, 0, run->rails.list[flow->rail]);
        report_set_number(figure, 1, at);
        report_set_number(figure, 2, 100 * flow->bytes / all);
        report_set_text(figure, 3, report_mode_name(flow->mode));
        report_set_text(figure, 4, wf_format_size(flow->size, size, sizeof size));
        report_set_number(figure, 5, flow->bytes);
        report_set_text(figure, 6, text);
    }
    return report_figures_add(figures, figure, status);
}

/* --- counts --- */

static int add_counts(struct report_figures *figures, const json_t *rails, struct wf_status *status)
{
    static const struct count {
        const char *field, *name, *unit;
    } counts[] = {
        {"speed_mbit", "line rate", "Mbit/s"},
        {"mtu", "MTU", ""},
        {"sent_bytes", "sent", "B"},
        {"received_bytes", "received", "B"},
        {"stalls", "stalls", ""},
        {"failures", "lost connections", ""},
        {"resent_bytes", "sent again", "B"},
        {"retransmits", "TCP segments sent again", ""},
        {"damaged", "damaged", ""},
        {"channels", "channels", ""},
        {"channels_up", "channels up", ""},
    };
    struct report_figure *figure =
        report_figure_create(REPORT_TABLE, "rails-counts", "Rails",
                             "From the start to the end of the run, warm-up and verification "
                             "included.");
    const json_t *rail;
    size_t index;
    char name[160];

    if (!figure)
        return report_figures_add(figures, NULL, status);
    report_column_add(figure, "rail", "", REPORT_SHOWN, false);
    report_column_add(figure, "from", "", REPORT_SHOWN, false);
    report_column_add(figure, "to", "", REPORT_SHOWN, false);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        report_column_add(figure, counts[i].name, counts[i].unit, REPORT_SHOWN, true);
    report_column_add(figure, "remark", "", REPORT_MARK, false);
    json_array_foreach(rails, index, rail)
    {
        report_row_add(figure);
        report_set_text(figure, 0, rail_name(rail, name, sizeof name));
        report_set_text(figure, 1, report_text(rail, "local"));
        report_set_text(figure, 2, report_text(rail, "remote"));
        for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
            report_set_number(figure, 3 + i, report_number(rail, counts[i].field));
        if (json_is_true(json_object_get(rail, "retired")))
            report_set_text(figure, figure->column_count - 1, "retired: it damaged too much");
        else if (report_number(rail, "failures") > 0)
            report_set_text(figure, figure->column_count - 1, "connections were lost");
    }
    return report_figures_add(figures, figure, status);
}

int report_rails(struct report_figures *figures, const struct report_run *run, struct wf_status *status)
{
    const json_t *rails = json_object_get(run->root, "rails");
    int result = add_shares(figures, run, rails, status);

    if (result == 0)
        result = add_history(figures, run, status);
    if (result == 0)
        result = add_counts(figures, rails, status);
    return result;
}
