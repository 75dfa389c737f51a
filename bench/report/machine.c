/* Tables of a run: nodes, GPUs, what was not in use, settings, doubts. */
#include <math.h>
#include <string.h>

#include "base/config.h"
#include "bench/result/stamp.h"
#include "figures.h"

/* A value of JSON as a text. */
static const char *value_text(const json_t *value, char *text, size_t room)
{
    text[0] = '\0';
    if (json_is_string(value))
        return json_string_value(value);
    if (json_is_integer(value))
        snprintf(text, room, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    else if (json_is_real(value))
        snprintf(text, room, "%.6g", json_real_value(value));
    else if (json_is_boolean(value))
        snprintf(text, room, "%s", json_is_true(value) ? "on" : "off");
    return text;
}

/* The nodes of a result; weft sweep tells of one alone. */
static const json_t *next_host(const struct report_run *run, size_t index)
{
    const json_t *host = json_object_get(run->root, "host");

    return json_is_array(host) ? json_array_get(host, index) : index == 0 ? host : NULL;
}

static int add_nodes(struct report_figures *figures, const struct report_run *run, struct wf_status *status)
{
    static const char *const names[] = {"node", "name", "machine", "kernel", "cpus", "engine", "memory", "weft"};
    struct report_figure *figure = report_figure_create(REPORT_TABLE, "nodes", "Nodes", NULL);
    const json_t *host;
    char text[64];

    if (!figure)
        return report_figures_add(figures, NULL, status);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        report_column_add(figure, names[i], "", REPORT_SHOWN, false);
    size_t memory = report_column_add(figure, "memory of the machine", "bytes", REPORT_SHOWN, true);
    size_t resident = report_column_add(figure, "resident at most", "bytes", REPORT_SHOWN, true);
    for (size_t index = 0; (host = next_host(run, index)) != NULL; index++) {
        report_row_add(figure);
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
            report_set_text(figure, i, value_text(json_object_get(host, names[i]), text, sizeof text));
        report_set_number(figure, memory, report_number(host, "memory_bytes"));
        report_set_number(figure, resident, report_number(host, "max_rss_bytes"));
    }
    return report_figures_add(figures, figure, status);
}

/* --- GPUs --- */

static void add_gpu(struct report_figure *figure, const json_t *host, const json_t *gpu)
{
    static const char *const moments[] = {"before", "after"};
    static const char *const values[] = {"temperature_c", "sm_clock_mhz", "power_w"};
    char text[64], name[48];

    report_row_add(figure);
    snprintf(name, sizeof name, "%.20s gpu%.8s", report_text(host, "node"),
             value_text(json_object_get(gpu, "gpu"), text, sizeof text));
    report_set_text(figure, 0, name);
    report_set_text(figure, 1, report_text(gpu, "name"));
    report_set_text(figure, 2, value_text(json_object_get(gpu, "numa_node"), text, sizeof text));
    for (size_t moment = 0; moment < 2; moment++) {
        const json_t *state = json_object_get(gpu, moments[moment]);
        for (size_t i = 0; i < 3; i++)
            report_set_number(figure, 3 + 4 * moment + i, report_number(state, values[i]));
        report_set_text(figure, 6 + 4 * moment, value_text(json_object_get(state, "throttling"), text, sizeof text));
    }
}

static int add_gpus(struct report_figures *figures, const struct report_run *run, struct wf_status *status)
{
    struct report_figure *figure = report_figure_create(REPORT_TABLE, "gpus", "GPUs before and after the run", NULL);
    const json_t *host, *gpu;
    size_t index, number;

    if (!figure)
        return report_figures_add(figures, NULL, status);
    report_column_add(figure, "GPU", "", REPORT_SHOWN, false);
    report_column_add(figure, "model", "", REPORT_SHOWN, false);
    report_column_add(figure, "NUMA node", "", REPORT_SHOWN, false);
    for (int moment = 0; moment < 2; moment++) {
        report_column_add(figure, moment ? "temperature after" : "temperature before", "°C", REPORT_SHOWN, true);
        report_column_add(figure, moment ? "clock after" : "clock before", "MHz", REPORT_SHOWN, true);
        report_column_add(figure, moment ? "power after" : "power before", "W", REPORT_SHOWN, true);
        report_column_add(figure, moment ? "throttling after" : "throttling before", "", REPORT_SHOWN, false);
    }
    json_array_foreach(json_object_get(run->root, "host"), index, host)
        json_array_foreach(json_object_get(host, "gpus"), number, gpu) add_gpu(figure, host, gpu);
    return report_figures_add(figures, figure, status);
}

/* --- fallbacks, settings --- */

static int add_fallbacks(struct report_figures *figures, const struct report_run *run, struct wf_status *status)
{
    struct report_figure *figure =
        report_figure_create(REPORT_TABLE, "fallbacks", "What was not in use",
                             "What was asked for or would be faster, and why it was not in use.");
    const json_t *line;
    size_t index;

    if (!figure)
        return report_figures_add(figures, NULL, status);
    report_column_add(figure, "what and why", "", REPORT_SHOWN, false);
    json_array_foreach(json_object_get(run->root, "fallbacks"), index, line)
    {
        report_row_add(figure);
        report_set_text(figure, 0, json_is_string(line) ? json_string_value(line) : "?");
    }
    return report_figures_add(figures, figure, status);
}

static int add_settings(struct report_figures *figures, const struct report_run *run, struct wf_status *status)
{
    struct report_figure *figure =
        report_figure_create(REPORT_TABLE, "settings", "Settings, and where each comes from",
                             "Marked are those that are no defaults. What each means: weft config NAME.");
    json_t *config = json_object_get(run->root, "config");
    const json_t *setting;
    const char *name;
    char text[64];

    if (!figure)
        return report_figures_add(figures, NULL, status);
    report_column_add(figure, "setting", "", REPORT_SHOWN, false);
    report_column_add(figure, "value", "", REPORT_SHOWN, false);
    report_column_add(figure, "origin", "", REPORT_SHOWN, false);
    report_column_add(figure, "remark", "", REPORT_MARK, false);
    json_object_foreach(config, name, setting)
    {
        const char *origin = report_text(setting, "origin");
        report_row_add(figure);
        report_set_text(figure, 0, name);
        report_set_text(figure, 1, value_text(json_object_get(setting, "value"), text, sizeof text));
        report_set_text(figure, 2, origin);
        if (strcmp(origin, "default") != 0)
            report_set_text(figure, 3, "set");
    }
    return report_figures_add(figures, figure, status);
}

int report_machine(struct report_figures *figures, const struct report_run *run, struct wf_status *status)
{
    int result = add_nodes(figures, run, status);

    if (result == 0)
        result = add_gpus(figures, run, status);
    if (result == 0)
        result = add_fallbacks(figures, run, status);
    if (result == 0)
        result = add_settings(figures, run, status);
    return result;
}

/* --- doubts --- */

static size_t count_stamped(const struct report_grid *grid, size_t set, int stamp, size_t *samples)
{
    size_t count = 0;

    for (size_t pair = 0; pair < grid->pair_count; pair++) {
        const struct report_sample *sample = report_cell(grid, set, pair);
        *samples += sample != NULL;
        count += sample && (sample->stamps & 1u << stamp);
    }
    return count;
}

int report_stamps(struct report_figures *figures, const struct report_grid *grid, struct wf_status *status)
{
    struct report_figure *figure = report_figure_create(REPORT_BARS, "stamps", "Doubtful samples",
                                                        "How many samples of each size carry a stamp. Nothing is "
                                                        "dropped for it: docs/profiling.md says what each means.");
    char size[32];

    if (!figure)
        return report_figures_add(figures, NULL, status);
    figure->x = REPORT_BY_LABEL;
    report_column_add(figure, "stamp", "", REPORT_SERIES, false);
    report_column_add(figure, "backend", "", REPORT_SERIES, false);
    report_column_add(figure, "size", "", REPORT_X, false);
    report_column_add(figure, "stamped", "", REPORT_Y, true);
    report_column_add(figure, "of samples", "", REPORT_SHOWN, true);
    for (size_t set = 0; set < grid->set_count; set++)
        for (int stamp = 0; stamp < BENCH_STAMPS; stamp++) {
            size_t samples = 0, stamped = count_stamped(grid, set, stamp, &samples);
            if (!stamped)
                continue;
            report_row_add(figure);
            report_set_text(figure, 0, bench_stamp_name(stamp));
            report_set_text(figure, 1, report_backend(grid, set));
            report_set_text(figure, 2, wf_format_size(grid->sets[set].size, size, sizeof size));
            report_set_number(figure, 3, (double)stamped);
            report_set_number(figure, 4, (double)samples);
        }
    return report_figures_add(figures, figure, status);
}
