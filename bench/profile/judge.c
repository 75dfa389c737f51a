#include "judge.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/backends/backend.h"
#include "bench/words/columns.h"
#include "bench/words/heard.h"
#include "bench/words/json.h"
#include "bench/words/words.h"
#include "criteria.h"
#include "model.h"

/* --- figures of the run --- */

/* It may be so many ppm. */
static double most_ppm(double ppm, double error)
{
    return fabs(ppm) + error;
}

/* Of GPUs as their node tells of them: windows of GPUs. */
static double worst_of_gpus(const json_t *windows)
{
    const json_t *gpus, *drift;
    size_t window, gpu;
    double worst = -1;

    json_array_foreach(windows, window, gpus) json_array_foreach(gpus, gpu, drift)
    {
        if (json_is_object(drift))
            worst = fmax(worst, most_ppm(json_number_value(json_object_get(drift, "drift_ppm")),
                                         json_number_value(json_object_get(drift, "drift_error_ppm"))));
    }
    return worst;
}

static double worst_drift(const struct profile *profile)
{
    double worst = -1;

    for (int i = 0; i < profile->windows; i++)
        for (int when = 0; when < 2; when++) {
            const struct bench_drift *nodes = when ? &profile->end[i].nodes : &profile->start[i].nodes;
            if (nodes->fixes >= 3)
                worst = fmax(worst, most_ppm(nodes->ppm, nodes->ppm_error));
        }
    for (int node = 0; node < 2; node++) {
        worst = fmax(worst, worst_of_gpus(json_object_get(profile->about[node], "gpu_clock_at_start")));
        worst = fmax(worst, worst_of_gpus(json_object_get(profile->about[node], "gpu_clock_at_end")));
    }
    return worst;
}

/* Whether the samplers of both nodes know of every GPU whether it was slowed down. */
static bool was_watched(const struct profile *profile)
{
    const json_t *sensor;
    size_t index;
    bool any = false, all = true;

    for (int node = 0; node < 2; node++)
        json_array_foreach(json_object_get(profile->about[node], "sensors"), index, sensor)
        {
            bool gpu = strncmp(bench_heard_text(sensor, "device"), "gpu", 3) == 0;
            any |= gpu;
            all &= !gpu || json_integer_value(json_object_get(sensor, "samples_throttle_known")) > 0;
        }
    return any && all;
}

static bool between_gpus(const struct bench_pair *pair)
{
    return pair->src_memory != BENCH_HOST && pair->dst_memory != BENCH_HOST;
}

/* Bandwidth of the largest size of pairs between GPUs, within nodes or between them; 0: there are none. */
static double rate_of_kind(const struct profile *profile, bool intra, double *room)
{
    const struct bench_result *result = profile->site->result;
    size_t count = 0;

    for (size_t i = 0; i < result->sample_count; i++) {
        const struct bench_sample *sample = &result->samples[i];
        if (between_gpus(&sample->pair) && sample->size == bench_plan_largest(profile->plan) &&
            (sample->pair.src_node == sample->pair.dst_node) == intra && bench_sample_rate(sample) > 0)
            room[count++] = bench_sample_rate(sample);
    }
    return wf_median(room, count);
}

static void compare_kinds(const struct profile *profile, struct bench_criteria_input *input)
{
    double *room = calloc(profile->site->result->sample_count + 1, sizeof *room);
    double intra = room ? rate_of_kind(profile, true, room) : 0, inter = room ? rate_of_kind(profile, false, room) : 0;

    input->link_kinds = (intra > 0) + (inter > 0);
    input->kinds_ratio = intra > 0 && inter > 0 ? fmax(intra, inter) / fmin(intra, inter) : 1;
    free(room);
}

static void fill_input(const struct profile *profile, uint32_t traces, const char *digest,
                       struct bench_criteria_input *input)
{
    const struct bench_result *result = profile->site->result;

    *input = (struct bench_criteria_input){
        .configs = profile->config_count,
        .complete = result->sample_count,
        .errors = bench_result_wrong_bytes(result) ? 1 : 0,
        .ranks = 2 * profile->plan->endpoints,
        .traces = traces,
        .sizes = (uint32_t)profile->plan->size_count,
        .sizes_complete = (uint32_t)profile->plan->size_count,
        .seed = profile->plan->seed,
        .digest = digest,
        .drift_ppm = worst_drift(profile),
        .watched = was_watched(profile),
        .model_written = true,
    };
    for (size_t i = 0; i < profile->row_count; i++)
        input->throttled += (profile->rows[i].stamps & BENCH_STAMP_THROTTLED) != 0;
    compare_kinds(profile, input);
}

/* --- for people --- */

static int longest_name(const struct bench_plan *plan)
{
    int longest = 0;

    for (int i = 0; i < plan->backend_count; i++)
        if ((int)strlen(plan->backends[i]->name) > longest)
            longest = (int)strlen(plan->backends[i]->name);
    return longest;
}

static void print_size(const struct profile *profile, int backend, uint64_t size, double *times, FILE *out)
{
    const struct bench_result *result = profile->site->result;
    size_t count = 0, doubtful = 0;
    char shown[32], least[32], middle[32], most[32];

    for (size_t i = 0; i < result->sample_count; i++) {
        const struct bench_sample *sample = &result->samples[i];
        if (sample->backend != profile->plan->backends[backend] || sample->size != size)
            continue;
        times[count++] = sample->time.p50;
        doubtful += sample->stamps != 0;
    }
    double median = wf_median(times, count); /* sorts */
    if (count == 0)
        return;
    fprintf(out, "%-*s %9s  %9s  %9s  %9s  %8.3f  %4zu of %zu\n", longest_name(profile->plan),
            profile->plan->backends[backend]->name, wf_format_size(size, shown, sizeof shown),
            bench_time_text(times[0], least, sizeof least), bench_time_text(median, middle, sizeof middle),
            bench_time_text(times[count - 1], most, sizeof most), median > 0 ? (double)size / (median * 1e3) : 0,
            doubtful, count);
}

static void print_table(const struct profile *profile, FILE *out)
{
    double *times = calloc(profile->site->result->sample_count + 1, sizeof *times);

    fprintf(out, "\n%-*s %9s  %9s  %9s  %9s  %8s  %s\n", longest_name(profile->plan), "", "size", "fastest", "median",
            "slowest", "GB/s", "doubtful pairs");
    for (int backend = 0; times && backend < profile->plan->backend_count; backend++)
        for (int i = 0; i < profile->plan->size_count; i++)
            print_size(profile, backend, profile->plan->sizes[i], times, out);
    free(times);
}

static void print_stamps(const struct profile *profile, FILE *out)
{
    size_t counts[BENCH_STAMPS] = {0};
    bool any = false;

    for (size_t i = 0; i < profile->row_count; i++)
        for (int bit = 0; bit < BENCH_STAMPS; bit++)
            counts[bit] += (profile->rows[i].stamps >> bit) & 1;
    for (int bit = 0; bit < BENCH_STAMPS; bit++) {
        if (counts[bit] == 0)
            continue;
        fprintf(out, "%s %s %zu", any ? "," : "messages that are doubtful:", bench_stamp_name(bit), counts[bit]);
        any = true;
    }
    fputs(any ? "\n" : "", out);
}

/* --- all of it --- */

int profile_judge(struct profile *profile, uint32_t traces, const char *path, struct wf_status *status)
{
    const char *backends[BENCH_BACKENDS_MAX];
    struct bench_criteria_input input;
    struct bench_model model = {0};
    char digest[24];

    for (int i = 0; i < profile->plan->backend_count; i++)
        backends[i] = profile->plan->backends[i]->name;
    snprintf(digest, sizeof digest, "%016" PRIx64, profile_order_digest(profile));
    int result = bench_model_init(&model, profile->rows, profile->row_count, status);
    if (result == 0) {
        json_t *json = bench_model_to_json(&model, backends);
        result = bench_write_json(json, path, status);
        json_decref(json);
    }
    if (result == 0) {
        fill_input(profile, traces, digest, &input);
        result = bench_criteria_measure(&model, &input, status);
    }
    bench_model_fini(&model);
    if (result)
        return result;
    bench_criteria_judge(&input, profile->judged);
    profile->criteria = bench_criteria_to_json(profile->judged, BENCH_CRITERIA);
    return 0;
}

void profile_tell(const struct profile *profile)
{
    FILE *news = profile->site->news;

    if (!news)
        return;
    bench_progress_end(profile->site->progress);
    print_table(profile, news);
    print_stamps(profile, news);
    fputc('\n', news);
    bench_sense_put_summary(profile->sense, news, bench_columns(news));
    fputc('\n', news);
    bench_criteria_print(news, profile->judged, BENCH_CRITERIA);
    fprintf(news, "traces: %s\n", profile->folder);
}
