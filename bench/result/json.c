#include "json.h"

#include <stdlib.h>

#include "bench/backends/backend.h"
#include "bench/plan/names.h"
#include "bench/words/interrupt.h"
#include "bench/words/json.h"
#include "limit.h"
#include "ratio.h"
#include "report_matrix.h"

/* Lists of all nodes one after the other; shares the entries. */
static json_t *joined(const struct bench_result *result, json_t *const *lists)
{
    json_t *all = json_array();

    for (int node = 0; node < result->node_count; node++)
        if (lists[node])
            json_array_extend(all, lists[node]);
    return all;
}

static json_t *hosts(const struct bench_result *result)
{
    json_t *all = json_array();

    for (int node = 0; node < result->node_count; node++)
        if (result->host[node])
            json_array_append(all, result->host[node]);
    return all;
}

/* Of the nodes that inject some. */
static json_t *faults(const struct bench_result *result)
{
    json_t *all = json_array();

    for (int node = 0; node < result->node_count; node++)
        if (json_is_object(result->faults[node]))
            json_array_append(all, result->faults[node]);
    return all;
}

static json_t *samples(const struct bench_result *result)
{
    json_t *all = json_array();

    for (size_t i = 0; i < result->sample_count; i++) {
        const struct bench_sample *sample = &result->samples[i];
        int receiver = sample->latency ? sample->pair.src_node : sample->pair.dst_node;
        json_array_append_new(all, bench_sample_to_json(sample, result->plan->pattern, &result->rails[receiver]));
    }
    return all;
}

static json_t *busy_of(const struct bench_result *result, const struct bench_set *set)
{
    json_t *all = json_array();

    for (int node = 0; node < result->node_count; node++)
        json_array_append_new(all, bench_busy_to_json(&set->busy[node]));
    return all;
}

static json_t *set_to_json(const struct bench_result *result, const struct bench_set *set, double *room)
{
    size_t count = bench_set_rates(result, set, room);
    double median = count ? wf_median(room, count) : -1; /* sorts */
    double times = -1;
    size_t time_count = 0;
    double least = count ? room[0] : -1, peak = count ? room[count - 1] : -1;

    for (size_t i = 0; i < result->sample_count; i++)
        if (bench_sample_in_set(&result->samples[i], set))
            room[time_count++] = result->samples[i].time.p50;
    if (time_count)
        times = wf_median(room, time_count);
    return json_pack("{s:s, s:s, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:f, s:o}", "backend", set->backend->name,
                     "mode", bench_mode_name(set->mode), "size_bytes", (json_int_t)set->size, "samples",
                     (json_int_t)time_count, "median_p50_us", bench_number_or_null(times), "min_bw_gb_per_s",
                     bench_number_or_null(least), "median_bw_gb_per_s", bench_number_or_null(median),
                     "peak_bw_gb_per_s", bench_number_or_null(peak), "aggregate_bw_gb_per_s",
                     bench_number_or_null(bench_set_aggregate(set)), "cpu_s_per_gb",
                     bench_number_or_null(set->cpu_s_per_gb), "ended_s", set->ended_s, "busy", busy_of(result, set));
}

/* What was in the way, of the largest size of each mode and backend: as the report on the terminal says it. */
static json_t *with_limit(const struct bench_result *result, int index, json_t *json, double *room)
{
    const struct bench_set *set = &result->sets[index];
    char text[256];

    if (set->backend->moves_data && !result->plan->latency && result->options->command != BENCH_PROFILE &&
        bench_is_last_set(result, index))
        json_object_set_new(json, "limited_by", json_string(bench_limit_text(result, set, room, text, sizeof text)));
    return json;
}

/* The best sample, with where and when: a peak without its size says nothing. */
static json_t *peak(const struct bench_result *result)
{
    const struct bench_sample *best = NULL;
    char src[32], dst[32];

    for (size_t i = 0; i < result->sample_count; i++)
        if (bench_sample_rate(&result->samples[i]) >= 0 &&
            (!best || bench_sample_rate(&result->samples[i]) > bench_sample_rate(best)))
            best = &result->samples[i];
    if (!best)
        return json_null();
    return json_pack("{s:f, s:I, s:s, s:s, s:s}", "bw_gb_per_s", bench_sample_rate(best), "size_bytes",
                     (json_int_t)best->size, "mode", bench_mode_name(best->mode), "src",
                     bench_src_name(&best->pair, src, sizeof src), "dst", bench_dst_name(&best->pair, dst, sizeof dst));
}

/* 0 where the run ended before there was a plan. */
static json_int_t samples_planned(const struct bench_result *result)
{
    return result->plan ? (json_int_t)bench_plan_samples(result->plan) : 0;
}

static json_t *summary(const struct bench_result *result)
{
    double *room = calloc(result->sample_count + 1, sizeof *room);
    json_t *sets = json_array();

    for (int i = 0; room && i < result->set_count; i++)
        json_array_append_new(sets, with_limit(result, i, set_to_json(result, &result->sets[i], room), room));
    free(room);
    return json_pack("{s:b, s:b, s:I, s:I, s:I, s:o, s:I, s:I, s:o, s:o, s:f}", "passed", bench_result_passed(result),
                     "verified", bench_result_checked(result) && bench_result_passed(result), "pairs",
                     result->plan ? (json_int_t)result->plan->pair_count : 0, "samples",
                     (json_int_t)result->sample_count, "samples_planned", samples_planned(result), "wrong_bytes",
                     bench_result_checked(result) ? json_integer((json_int_t)bench_result_wrong_bytes(result))
                                                  : json_null(),
                     "verified_bytes", (json_int_t)bench_result_verified_bytes(result), "measured_bytes",
                     (json_int_t)bench_result_measured_bytes(result), "peak", peak(result), "sets", sets, "duration_s",
                     (double)result->took_ns / 1e9);
}

/* null: everything that was planned was measured. */
static json_t *cut_short(const struct bench_result *result)
{
    const struct bench_cut *cut = &result->cut;
    const char *by = cut->by == BENCH_CUT_SIGNAL ? bench_signal_name(cut->signal)
                     : cut->by == BENCH_CUT_LOSS ? "loss"
                                                 : "failure";

    if (!cut->by)
        return json_null();
    return json_pack("{s:o, s:s, s:s, s:I, s:I}", "node", json_sprintf("node%d", cut->node), "by", by, "reason",
                     result->error, "samples", (json_int_t)result->sample_count, "samples_planned",
                     samples_planned(result));
}

/* null: what the messages lie in was not decided yet. */
static json_t *memory(const struct bench_result *result)
{
    char text[48];

    if (!result->plan)
        return json_null();
    return json_string(
        bench_both_memories(result->plan->nodes[0].memory, result->plan->nodes[1].memory, text, sizeof text));
}

static json_t *everything(const struct bench_result *result)
{
    json_t *root = json_object();

    json_object_set_new(root, "schema", json_string("weft.result/1"));
    json_object_set_new(root, "command", json_string(bench_command_name(result->options->command)));
    json_object_set_new(root, "version", json_string(weft_version()));
    json_object_set_new(root, "started", json_string(result->started));
    json_object_set_new(root, "memory", memory(result));
    json_object_set_new(root, "emulated", json_boolean(result->plan && bench_plan_emulated(result->plan)));
    json_object_set_new(root, "role", json_string(result->node == 0 ? "server" : "client"));
    json_object_set_new(root, "loopback", json_boolean(result->nearness == BENCH_LOOPBACK));
    json_object_set_new(root, "one_machine", json_boolean(result->nearness != BENCH_APART));
    json_object_set_new(root, "interrupted", json_boolean(result->cut.by == BENCH_CUT_SIGNAL));
    json_object_set_new(root, "cut_short", cut_short(result));
    json_object_set_new(root, "error", result->error[0] ? json_string(result->error) : json_null());
    json_object_set_new(root, "error_code", bench_error_code_to_json(result->error_code));
    json_object_set_new(root, "exit_status", json_integer(bench_result_exit_status(result)));
    json_object_set_new(root, "host", hosts(result));
    json_object_set_new(root, "config", bench_config_to_json(result->options->config));
    json_object_set_new(root, "rails", joined(result, result->rail_totals));
    json_object_set_new(root, "fallbacks", joined(result, result->fallbacks));
    json_object_set_new(root, "faults", faults(result));
    json_object_set_new(root, "samples", samples(result));
    json_object_set_new(root, "ratios", bench_ratios_to_json(result));
    json_object_set_new(root, "summary", summary(result));
    return root;
}

int bench_result_json(const struct bench_result *result, const char *path, struct wf_status *status)
{
    json_t *root = everything(result);
    int code = bench_write_json(root, path, status);

    json_decref(root);
    return code;
}
