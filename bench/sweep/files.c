/* What a sweep leaves behind. */
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "bench/plan/idle.h"
#include "bench/words/heard.h"
#include "bench/words/interrupt.h"
#include "bench/words/json.h"
#include "bench/words/whole.h"
#include "bench/words/words.h"
#include "found.h"
#include "weft.h"

/* --- JSON --- */

static json_t *point_settings(const struct bench_space *space, uint32_t point)
{
    json_t *settings = json_object();

    for (int i = 0; i < space->axis_count; i++)
        json_object_set_new(settings, wf_setting(space->axes[i].id)->name,
                            bench_heard_string(bench_space_value(space, point, i)));
    return settings;
}

/* null where nothing was compared; a bound that is none is null, too. */
static json_t *comparison_to_json(const struct bench_comparison *comparison)
{
    if (comparison->pairs == 0)
        return json_null();
    bool bounded = comparison->pairs > 1;
    return json_pack("{s:I, s:f, s:o, s:o}", "pairs", (json_int_t)comparison->pairs, "ratio", comparison->ratio, "low",
                     bounded ? json_real(comparison->low) : json_null(), "high",
                     bounded ? json_real(comparison->high) : json_null());
}

static json_t *point_to_json(const struct bench_found *found, uint32_t point)
{
    struct bench_point_figures figures;

    bench_found_figures(found, point, &figures);
    return json_pack("{s:I, s:o, s:b, s:I, s:I, s:b, s:o, s:o, s:o, s:o, s:o}", "point", (json_int_t)point, "settings",
                     point_settings(found->space, point), "default", point == found->space->baseline, "runs",
                     (json_int_t)figures.runs, "failures", (json_int_t)figures.failures, "given_up",
                     found->search->tallies[point].hopeless, "value",
                     bench_number_or_null(figures.value > 0 ? figures.value : -1), "spread",
                     bench_number_or_null(figures.spread), "cpu_s_per_gb", bench_number_or_null(figures.cpu_s_per_gb),
                     "of_default", comparison_to_json(&figures.beside), "error",
                     figures.error ? bench_heard_string(figures.error) : json_null());
}

static json_t *values_to_json(const struct bench_found *found, uint32_t point)
{
    double *values = calloc(found->search->trial_count + 1, sizeof *values);
    size_t count = values ? bench_found_values(found, point, true, values) : 0;
    json_t *array = json_array();

    for (size_t i = 0; i < count; i++)
        json_array_append_new(array, json_real(values[i]));
    free(values);
    return array;
}

static json_t *best_to_json(const struct bench_found *found)
{
    uint32_t best = bench_search_best(found->search);
    struct bench_comparison confirmed;

    bench_search_confirmed(found->search, &confirmed);
    return json_pack("{s:I, s:o, s:b, s:o, s:o, s:o}", "point", (json_int_t)best, "settings",
                     point_settings(found->space, best), "better", bench_search_wins(found->search), "of_default",
                     comparison_to_json(&confirmed), "values", values_to_json(found, best), "default_values",
                     values_to_json(found, found->space->baseline));
}

json_t *bench_found_to_json(const struct bench_found *found)
{
    const struct bench_space *space = found->space;
    json_t *root = json_object(), *points = json_array();
    struct utsname system;
    char verdict[1200];

    uname(&system);
    for (uint32_t point = 0; point < space->points; point++)
        if (found->search->tallies[point].runs)
            json_array_append_new(points, point_to_json(found, point));
    json_object_set_new(root, "schema", json_string("weft.sweep/1"));
    json_object_set_new(root, "command", json_string("sweep"));
    json_object_set_new(root, "version", json_string(weft_version()));
    json_object_set_new(root, "started", json_string(found->started));
    json_object_set_new(root, "measure", json_string(bench_command_name(found->site->command)));
    json_object_set_new(root, "metric", json_string(found->options->latency ? "latency" : "bandwidth"));
    json_object_set_new(root, "unit", json_string(bench_found_unit(found)));
    json_object_set_new(root, "loopback", json_boolean(found->options->place == BENCH_PLACE_LOCAL));
    json_object_set_new(root, "host",
                        json_pack("{s:o, s:s, s:s, s:I}", "name", bench_heard_string(system.nodename), "kernel",
                                  system.release, "machine", system.machine, "cpus",
                                  (json_int_t)sysconf(_SC_NPROCESSORS_ONLN)));
    json_object_set_new(root, "config", bench_config_to_json(found->options->config));
    json_object_set_new(root, "automatic", json_boolean(found->search->automatic));
    json_object_set_new(root, "points_planned", json_integer(space->points));
    json_object_set_new(root, "complete", json_boolean(!found->error[0]));
    json_object_set_new(root, "interrupted", json_boolean(bench_interrupt_signal() != 0));
    json_object_set_new(root, "error", found->error[0] ? bench_heard_string(found->error) : json_null());
    json_object_set_new(root, "error_code", bench_error_code_to_json(found->error_code));
    json_object_set_new(root, "verdict", bench_heard_string(bench_found_verdict(found, verdict, sizeof verdict)));
    json_object_set_new(root, "best", best_to_json(found));
    json_object_set_new(root, "points", points);
    json_object_set_new(root, "runs", json_incref(found->runs));
    return root;
}

/* --- CSV, settings --- */

/* A text that has a comma or a quote in it is quoted, as RFC 4180 says. */
static void put_text(FILE *file, const char *text)
{
    if (!strpbrk(text, ",\"\n")) {
        fputs(text, file);
        return;
    }
    fputc('"', file);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', file);
        fputc(*text, file);
    }
    fputc('"', file);
}

static void put_number(FILE *file, double value)
{
    fputc(',', file);
    if (value >= 0)
        fprintf(file, "%.9g", value);
}

/* One row for each run, in the order in which they were made. */
static int put_csv(const void *what, FILE *file)
{
    const struct bench_found *found = what;
    const struct bench_space *space = found->space;
    size_t index;
    json_t *run;

    fprintf(file, "run,stage,point");
    for (int i = 0; i < space->axis_count; i++)
        fprintf(file, ",%s", wf_setting(space->axes[i].id)->name);
    fprintf(file, ",default,value,unit,cpu_s_per_gb,error\n");
    json_array_foreach(found->runs, index, run)
    {
        uint32_t point = (uint32_t)json_integer_value(json_object_get(run, "point"));
        const char *stage = json_string_value(json_object_get(run, "stage")),
                   *error = json_string_value(json_object_get(run, "error"));
        const json_t *value = json_object_get(run, "value"), *cpu = json_object_get(run, "cpu_s_per_gb");
        fprintf(file, "%zu,%s,%u", index, stage ? stage : "", point);
        for (int i = 0; i < space->axis_count; i++) {
            fputc(',', file);
            put_text(file, bench_space_value(space, point, i));
        }
        fprintf(file, ",%d", point == space->baseline);
        put_number(file, json_is_number(value) ? json_number_value(value) : -1);
        fprintf(file, ",%s", bench_found_unit(found));
        put_number(file, json_is_number(cpu) ? json_number_value(cpu) : -1);
        fputc(',', file);
        put_text(file, error ? error : "");
        fputc('\n', file);
    }
    return 0;
}

/* What was found, how, where and when, and the settings: of the best point where it is better, else none. */
static int put_profile(const void *what, FILE *file)
{
    const struct bench_found *found = what;
    const struct bench_space *space = found->space;
    const struct wf_config *config = found->options->config;
    uint32_t best = bench_search_best(found->search);
    struct utsname system;
    struct wf_status status;
    char text[WF_VALUE_MAX];

    uname(&system);
    fprintf(file, "# %s\n", bench_found_verdict(found, text, sizeof text));
    fprintf(file, "# Found by weft sweep %s on %s, at %s (Linux %s, %ld processors)%s.\n", weft_version(),
            found->started, system.nodename, system.release, sysconf(_SC_NPROCESSORS_ONLN),
            found->options->place == BENCH_PLACE_LOCAL ? ", over loopback" : "");
    fprintf(file, "# It ran weft %s%s %zu times, and tried %s.\n", bench_command_name(found->site->command),
            found->options->latency ? " --lat" : "", found->search->trial_count, wf_config_text(config, WF_SET_VARY));
    for (int i = 0; i < WF_SETTING_COUNT; i++)
        if (bench_is_said(config, i) && bench_site_passes(found->site, i) && !bench_is_idle(found->options, i))
            fprintf(file, "# with %s = %s\n", wf_setting(i)->name, wf_config_text(config, i));
    if (!bench_search_wins(found->search))
        return 0;
    for (int i = 0; i < space->axis_count; i++)
        if (bench_site_value(found->site, &space->axes[i], bench_space_value(space, best, i), text, sizeof text,
                             &status) == 0)
            fprintf(file, "%s = %s\n", wf_setting(space->axes[i].id)->name, text);
    return 0;
}

/* --- writing --- */

static int first_of(int one, int other)
{
    return one ? one : other;
}

int bench_found_write(const struct bench_found *found, struct wf_status *status)
{
    const struct wf_config *config = found->options->config;
    const char *out = wf_config_text(config, WF_SET_OUT), *json = wf_config_text(config, WF_SET_JSON),
               *csv = wf_config_text(config, WF_SET_CSV);
    char path[WF_VALUE_MAX + 32];
    struct wf_status later = {0};
    json_t *root = bench_found_to_json(found);
    int result = 0;

    snprintf(path, sizeof path, "%s/sweep.json", out);
    if (out[0])
        result = bench_write_json(root, path, status);
    snprintf(path, sizeof path, "%s/sweep.csv", out);
    if (out[0])
        result = first_of(result, bench_write_whole(path, put_csv, found, result ? &later : status));
    if (json[0])
        result = first_of(result, bench_write_json(root, json, result ? &later : status));
    if (csv[0])
        result = first_of(result, bench_write_whole(csv, put_csv, found, result ? &later : status));
    if (found->options->save && !found->error[0])
        result =
            first_of(result, bench_write_whole(found->options->save, put_profile, found, result ? &later : status));
    json_decref(root);
    return result;
}
