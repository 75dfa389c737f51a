/* The files of a profile, all written by node0. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/backends/backend.h"
#include "bench/plan/names.h"
#include "bench/words/heard.h"
#include "bench/words/interrupt.h"
#include "bench/words/json.h"
#include "bench/words/whole.h"
#include "bench/words/words.h"
#include "graph.h"
#include "judge.h"
#include "log.h"
#include "parts.h"
#include "trace.h"
#include "yaml.h"

#define ROWS_AT_ONCE 4096 /* between two looks for signals */

/* --- traces --- */

static int by_row(const void *one, const void *other)
{
    const struct bench_profile_span *a = one, *b = other;

    if (a->row != b->row)
        return a->row < b->row ? -1 : 1;
    return (a->begin_ns > b->begin_ns) - (a->begin_ns < b->begin_ns);
}

/* Names that a trace needs, for as long as it is written. */
struct naming {
    const char *backends[BENCH_BACKENDS_MAX];
    char name[64], label[80], device[32];
    json_t *devices; /* owned */
};

/* As Kineto has them, of the node's GPUs. */
static json_t *devices_of(const json_t *host)
{
    const json_t *gpus = json_object_get(host, "gpus"), *gpu;
    json_t *devices = json_array();
    size_t index;

    json_array_foreach(gpus, index, gpu) json_array_append_new(
        devices, json_pack("{s:I, s:s, s:O?}", "id", (json_int_t)index, "name", bench_heard_text(gpu, "name"),
                           "totalGlobalMem", json_object_get(gpu, "memory_bytes")));
    return devices;
}

static void name_rank(const struct profile *profile, uint32_t rank, struct naming *naming, struct bench_trace_rank *out)
{
    const struct bench_plan *plan = profile->plan;
    uint32_t endpoint = rank % plan->endpoints;
    int node = rank < plan->endpoints ? 0 : 1;
    const json_t *host = profile->site->result->host[node];
    char place[32];

    for (int i = 0; i < plan->backend_count; i++)
        naming->backends[i] = plan->backends[i]->name;
    naming->devices = devices_of(host);
    bench_endpoint_name(node, endpoint, plan->nodes[node].memory, place, sizeof place);
    snprintf(naming->name, sizeof naming->name, "rank %u: %s", rank, place);
    bench_copy_text(naming->label, sizeof naming->label, bench_heard_text(host, "name"));
    if (plan->nodes[node].memory == BENCH_HOST)
        bench_copy_text(naming->device, sizeof naming->device, "cpu");
    else
        snprintf(naming->device, sizeof naming->device, "cuda:%u", endpoint % plan->nodes[node].gpus);
    *out = (struct bench_trace_rank){
        .rank = rank,
        .world = 2 * plan->endpoints,
        .pid = rank,
        .backend = plan->backends[0]->name,
        .name = naming->name,
        .label = naming->label,
        .device = naming->device,
        .backends = naming->backends,
        .devices = naming->devices,
        .base_ns = profile->base_ns,
        .base_unix_ns = profile->base_unix_ns,
    };
}

static int write_trace(struct profile *profile, uint32_t rank, struct wf_status *status)
{
    char name[64], path[PROFILE_PATH];
    struct bench_trace_rank about;
    struct bench_trace trace = {0};
    struct naming naming;
    size_t span = 0;

    name_rank(profile, rank, &naming, &about);
    snprintf(name, sizeof name, "rank_%u.pt.trace.json", rank);
    int result = bench_trace_open(&trace, profile_path(profile, name, path, sizeof path), &about, status);
    for (size_t row = 0; result == 0 && row < profile->row_count; row++) {
        if (row % ROWS_AT_ONCE == 0 && bench_interrupted(status))
            trace.error = -EINTR;
        bench_trace_message(&trace, &profile->rows[row]);
        for (; span < profile->span_count && profile->spans[span].row == row; span++)
            bench_trace_span(&trace, &profile->spans[span]);
    }
    if (result == 0)
        result = bench_trace_close(&trace, status);
    json_decref(naming.devices);
    return result;
}

static int write_graph(struct profile *profile, uint32_t rank, struct wf_status *status)
{
    char name[64], path[PROFILE_PATH];
    struct bench_trace_rank about;
    struct bench_graph graph = {0};
    struct naming naming;

    name_rank(profile, rank, &naming, &about);
    snprintf(name, sizeof name, "rank_%u_CPU_trace.json", rank);
    int result =
        bench_graph_open(&graph, profile_path(profile, name, path, sizeof path), &about, profile->base_ns, status);
    for (size_t row = 0; result == 0 && row < profile->row_count; row++)
        bench_graph_message(&graph, &profile->rows[row]);
    if (result == 0)
        result = bench_graph_close(&graph, profile->rows[profile->row_count - 1].end_ns, status);
    json_decref(naming.devices);
    return result;
}

/* --- tables --- */

/* Node1's rows have its own clock: their first field is put right. */
static void put_moved(const struct profile *profile, const char *lines, FILE *file)
{
    for (const char *at = lines; *at;) {
        char *rest;
        int64_t ns = strtoll(at, &rest, 10);
        if (ns < 0 || ns > INT64_MAX / 4)
            ns = 0;
        size_t length = strcspn(rest, "\n");
        fprintf(file, "%lld%.*s\n", (long long)profile_time(profile, 1, ns), (int)length, rest);
        at = rest + length + (rest[length] == '\n');
    }
}

static int put_temperatures(const void *what, FILE *file)
{
    const struct profile *profile = what;
    const json_t *text;
    size_t index;
    int result = bench_sense_write_csv(profile->sense, file, 0);

    json_array_foreach(profile->sensed, index, text) put_moved(profile, json_string_value(text), file);
    return result;
}

static int put_metadata(const void *what, FILE *file)
{
    bench_put_yaml(what, file);
    return 0;
}

static int write_metadata(const struct profile *profile, uint32_t rank, struct wf_status *status)
{
    json_t *metadata = profile_metadata(profile, rank);
    char name[64], path[PROFILE_PATH];

    snprintf(name, sizeof name, "metadata_rank_%u.yml", rank);
    int result = bench_write_whole(profile_path(profile, name, path, sizeof path), put_metadata, metadata, status);
    json_decref(metadata);
    return result;
}

static int write_tables(struct profile *profile, struct wf_status *status)
{
    char path[PROFILE_PATH];
    int result = bench_profile_write_log(profile_path(profile, "execution_log.csv", path, sizeof path), profile->rows,
                                         profile->row_count, status);

    if (result == 0)
        result = bench_profile_write_stamps(profile_path(profile, "stamps.csv", path, sizeof path), profile->rows,
                                            profile->row_count, status);
    return result ? result
                  : bench_write_whole(profile_path(profile, "temperatures.csv", path, sizeof path), put_temperatures,
                                      profile, status);
}

/* --- all of them --- */

static int write_rank(struct profile *profile, uint32_t rank, struct wf_status *status)
{
    int result = bench_interrupted(status); /* node1 has told all that it knows, and may leave */

    if (result == 0)
        result = write_trace(profile, rank, status);
    return result ? result : write_graph(profile, rank, status);
}

static int write_all(struct profile *profile, struct wf_status *status)
{
    uint32_t ranks = 2 * profile->plan->endpoints, traces = 0;
    char path[PROFILE_PATH];
    int result = write_tables(profile, status);

    for (uint32_t rank = 0; result == 0 && rank < ranks; rank++) {
        result = write_rank(profile, rank, status);
        traces += result == 0;
    }
    if (result == 0)
        result = profile_judge(profile, traces, profile_path(profile, "model.json", path, sizeof path), status);
    for (uint32_t rank = 0; result == 0 && rank < ranks; rank++)
        result = write_metadata(profile, rank, status);
    return result;
}

int profile_write(struct profile *profile, struct wf_status *status)
{
    if (profile->span_count)
        qsort(profile->spans, profile->span_count, sizeof *profile->spans, by_row);
    int result = write_all(profile, status);
    if (result == 0)
        result = profile_folder_publish(profile, status);
    if (result == 0)
        profile_tell(profile);
    return result;
}
