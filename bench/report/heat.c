/* GPUs that are hot beside the others. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/result/cause.h"
#include "bench/words/words.h"
#include "csv.h"
#include "oddities.h"
#include "stats.h"

#define OTHERS_LEAST 3
#define FIELDS_MAX 32

static struct report_gpu *gpu_of(struct report_gpus *gpus, const char *name)
{
    for (size_t i = 0; i < gpus->count; i++)
        if (strcmp(gpus->list[i].name, name) == 0)
            return &gpus->list[i];
    if (gpus->count == REPORT_GPUS_MAX)
        return NULL;
    struct report_gpu *gpu = &gpus->list[gpus->count++];
    *gpu = (struct report_gpu){.celsius = NAN};
    bench_copy_text(gpu->name, sizeof gpu->name, name);
    return gpu;
}

static void see(struct report_gpu *gpu, double celsius, const char *throttling)
{
    if (!gpu)
        return;
    if (!isnan(celsius) && !(gpu->celsius >= celsius))
        gpu->celsius = celsius;
    if (bench_is_forced(throttling))
        bench_copy_text(gpu->throttling, sizeof gpu->throttling, throttling);
}

static void add_of_result(struct report_gpus *gpus, const struct report_run *run)
{
    static const char *const moments[] = {"before", "after"};
    const json_t *host, *from;
    size_t index, number;
    char name[64];

    json_array_foreach(json_object_get(run->root, "host"), index, host)
        json_array_foreach(json_object_get(host, "gpus"), number, from)
    {
        snprintf(name, sizeof name, "%.20s gpu%" PRIu64, report_text(host, "node"), report_count(from, "gpu"));
        struct report_gpu *gpu = gpu_of(gpus, name);
        if (gpu)
            bench_copy_text(gpu->model, sizeof gpu->model, report_text(from, "name"));
        for (size_t i = 0; i < 2; i++) {
            const json_t *state = json_object_get(from, moments[i]), *reason = json_object_get(state, "throttling");
            see(gpu, report_number(state, "temperature_c"), json_is_string(reason) ? json_string_value(reason) : "");
        }
    }
}

static void add_of_sense(struct report_gpus *gpus, const struct report_run *run)
{
    char *text = strdup(run->text), *rest = text, *fields[FIELDS_MAX], name[64];
    char *line = text ? report_csv_line(&rest) : NULL;
    size_t count = line ? report_csv_split(line, fields, FIELDS_MAX) : 0;
    size_t named = count < FIELDS_MAX ? count : FIELDS_MAX;
    size_t node = report_csv_find(fields, named, "node"), device = report_csv_find(fields, named, "device"),
           celsius = report_csv_find(fields, named, "temperature_c"),
           throttling = report_csv_find(fields, named, "throttling");

    while (line && (line = report_csv_line(&rest)) != NULL) {
        count = report_csv_split(line, fields, FIELDS_MAX);
        if (count < named || throttling == SIZE_MAX || celsius == SIZE_MAX || strncmp(fields[device], "gpu", 3) != 0)
            continue;
        snprintf(name, sizeof name, "node%.8s %.32s", fields[node], fields[device]);
        see(gpu_of(gpus, name), report_csv_number(fields[celsius]), fields[throttling]);
    }
    free(text);
}

void report_gpus_add(struct report_gpus *gpus, const struct report_run *run)
{
    if (run->source == REPORT_OF_RUN)
        add_of_result(gpus, run);
    else if (run->source == REPORT_OF_SENSE)
        add_of_sense(gpus, run);
}

/* The median of the others of its model; NaN where they are too few. */
static double others(const struct report_gpus *gpus, size_t at)
{
    double values[REPORT_GPUS_MAX];
    size_t count = 0;

    for (size_t i = 0; i < gpus->count; i++)
        if (i != at && strcmp(gpus->list[i].model, gpus->list[at].model) == 0 && !isnan(gpus->list[i].celsius))
            values[count++] = gpus->list[i].celsius;
    report_sort(values, count);
    return count >= OTHERS_LEAST ? report_median(values, count) : NAN;
}

bool report_gpu_is_hot(const struct report_gpus *gpus, size_t at, char *why, size_t room)
{
    const struct report_gpu *gpu = &gpus->list[at];
    double usual = others(gpus, at);

    if (gpu->throttling[0])
        snprintf(why, room, "it slowed down: %s", gpu->throttling);
    else if (gpu->celsius >= REPORT_HOT_C)
        snprintf(why, room, "it was at %.0f °C", gpu->celsius);
    else if (gpu->celsius >= usual + REPORT_HOTTER_C)
        snprintf(why, room, "it was at %.0f °C, the others at %.0f °C", gpu->celsius, usual);
    else
        return false;
    return true;
}
