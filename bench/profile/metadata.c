/* What there is to know beside the times: of each node, and of each rank. */
#include <stdio.h>
#include <string.h>

#include "bench/backends/backend.h"
#include "bench/words/json.h"
#include "mem/nvml.h"
#include "parts.h"
#include "weft.h"

#define SCHEMA "weft.profile/1"

/* --- clocks --- */

json_t *profile_drift_to_json(const struct bench_drift *drift)
{
    if (drift->fixes < 3)
        return json_null();
    return json_pack("{s:f, s:f, s:I, s:f, s:f, s:f, s:f, s:I}", "drift_ppm", drift->ppm, "drift_error_ppm",
                     drift->ppm_error, "at_ns", (json_int_t)drift->at_ns, "offset_us", (double)drift->offset_ns / 1e3,
                     "offset_error_us", (double)drift->offset_error_ns / 1e3, "residual_us", drift->residual_ns / 1e3,
                     "seconds", drift->seconds, "readings", (json_int_t)drift->fixes);
}

static json_t *gpu_windows(const struct profile *profile, const struct profile_window *windows)
{
    json_t *all = json_array();

    for (int i = 0; i < profile->windows; i++) {
        json_t *gpus = json_array();
        for (int gpu = 0; gpu < windows[i].gpu_count; gpu++)
            json_array_append_new(gpus, profile_drift_to_json(&windows[i].gpus[gpu]));
        json_array_append_new(all, gpus);
    }
    return all;
}

static json_t *node_windows(const struct profile *profile, const struct profile_window *windows)
{
    json_t *all = json_array();

    for (int i = 0; i < profile->windows; i++)
        json_array_append_new(all, json_pack("{s:o, s:[f, f]}", "node1_against_node0",
                                             profile_drift_to_json(&windows[i].nodes), "monotonic_against_raw_ppm",
                                             windows[i].steered_ppm[0], windows[i].steered_ppm[1]));
    return all;
}

static json_t *alignment(const struct profile *profile)
{
    int64_t worst = 0;

    for (size_t i = 0; i < profile->track.count; i++)
        if (profile->track.fixes[i].error_ns > worst)
            worst = profile->track.fixes[i].error_ns;
    return json_pack("{s:I, s:f}", "readings", (json_int_t)profile->track.count, "largest_error_us",
                     (double)worst / 1e3);
}

/* --- GPUs --- */

static json_t *known(int value)
{
    return value == WF_NVML_UNKNOWN ? json_null() : json_integer(value);
}

static json_t *pcie_to_json(struct wf_nvml *nvml, const char *pci)
{
    struct wf_status ignored;
    struct wf_nvml_pcie pcie;

    if (wf_nvml_pcie(nvml, pci, &pcie, &ignored))
        return json_null();
    return json_pack("{s:s, s:o, s:o, s:o, s:o}", "pci", pci, "generation", known(pcie.generation), "lanes",
                     known(pcie.lanes), "most_generation", known(pcie.most_generation), "most_lanes",
                     known(pcie.most_lanes));
}

static json_t *link_to_json(struct wf_nvml *nvml, const struct bench_gpus *gpus, int from, int to)
{
    struct wf_status ignored;
    struct wf_nvml_link link;

    if (wf_nvml_link(nvml, gpus->infos[from].pci, gpus->infos[to].pci, &link, &ignored))
        return json_null();
    return json_pack("{s:i, s:i, s:o, s:o, s:o, s:s}", "from", from, "to", to, "nvlinks", known(link.nvlinks),
                     "nvlinks_to_switch", known(link.switched), "nvlink_version", known(link.nvlink_version), "pcie",
                     link.path);
}

/* What connects the GPUs of this node. */
static json_t *topology(const struct profile *profile)
{
    const struct bench_gpus *gpus = &profile->site->link->gpus;
    json_t *pcie = json_array(), *links = json_array();
    struct wf_nvml *nvml = NULL;
    struct wf_status ignored;

    if (gpus->count && wf_nvml_open(&nvml, &ignored) == 0) {
        for (int i = 0; i < (int)gpus->count; i++) {
            json_array_append_new(pcie, pcie_to_json(nvml, gpus->infos[i].pci));
            for (int j = 0; j < (int)gpus->count; j++)
                if (i != j)
                    json_array_append_new(links, link_to_json(nvml, gpus, i, j));
        }
        wf_nvml_close(nvml);
    }
    return json_pack("{s:o, s:o}", "pcie", pcie, "links", links);
}

/* --- a node --- */

static json_t *figure(const struct bench_sense_figure *figure)
{
    if (figure->count == 0)
        return json_null();
    return json_pack("{s:f, s:f, s:f, s:f}", "mean", figure->mean, "sd", figure->sd, "min", figure->min, "max",
                     figure->max);
}

static json_t *sensors(const struct profile *profile)
{
    struct bench_sense_summary all[BENCH_SENSE_GPUS_MAX + 1];
    int count = bench_sense_summarize(profile->sense, all, BENCH_SENSE_GPUS_MAX + 1);
    json_t *array = json_array();

    for (int i = 0; i < count && i <= BENCH_SENSE_GPUS_MAX; i++)
        json_array_append_new(array,
                              json_pack("{s:s, s:o, s:o, s:o, s:I, s:I}", "device", all[i].device, "temperature_c",
                                        figure(&all[i].celsius), "power_w", figure(&all[i].watts), "clock_mhz",
                                        figure(&all[i].mhz), "samples_throttled", (json_int_t)all[i].held_back,
                                        "samples_throttle_known", (json_int_t)all[i].told));
    return array;
}

json_t *profile_about(const struct profile *profile)
{
    struct bench_sense_cost cost;

    bench_sense_cost(profile->sense, &cost);
    return json_pack("{s:O, s:{s:b, s:s}, s:{s:s, s:i}, s:o, s:f, s:o, s:o, s:o, s:I}", "before_the_start",
                     profile->before, "gpu_clocks", "locked", (int)profile->site->lock->locked, "text",
                     profile->site->lock->text, "warm_up", "text", profile->warmed, "again", profile->rewarmed,
                     "sensors", sensors(profile), "sampler_cpu_share", cost.share, "topology", topology(profile),
                     "gpu_clock_at_start", gpu_windows(profile, profile->start), "gpu_clock_at_end",
                     gpu_windows(profile, profile->end), "trace_events_lost",
                     (json_int_t)(profile->spans_lost[0] + profile->spans_lost[1]));
}

/* --- a rank --- */

static json_t *stamps_of_rank(const struct profile *profile, uint32_t rank)
{
    json_int_t counts[BENCH_STAMPS] = {0}, messages = 0, stamped = 0;
    json_t *json = json_object();

    for (size_t i = 0; i < profile->row_count; i++) {
        const struct bench_profile_row *row = &profile->rows[i];
        if (row->src != rank && row->dst != rank)
            continue;
        messages++;
        stamped += row->stamps != 0;
        for (int bit = 0; bit < BENCH_STAMPS; bit++)
            counts[bit] += (row->stamps >> bit) & 1;
    }
    json_object_set_new(json, "messages", json_integer(messages));
    json_object_set_new(json, "stamped", json_integer(stamped));
    for (int bit = 0; bit < BENCH_STAMPS; bit++)
        json_object_set_new(json, bench_stamp_name(bit), json_integer(counts[bit]));
    return json;
}

static json_t *plan_to_json(const struct profile *profile)
{
    static const char *const verified[] = {
        [BENCH_CHECK_NONE] = "nothing",
        [BENCH_CHECK_AGAIN] = "the last warm-up of each configuration",
        [BENCH_CHECK_ALL] = "the last warm-up of each configuration, and every timed message",
    };
    const struct bench_plan *plan = profile->plan;
    json_t *sizes = json_array(), *backends = json_array();

    for (int i = 0; i < plan->size_count; i++)
        json_array_append_new(sizes, json_integer((json_int_t)plan->sizes[i]));
    for (int i = 0; i < plan->backend_count; i++)
        json_array_append_new(backends, json_string(plan->backends[i]->name));
    return json_pack("{s:I, s:s, s:I, s:I, s:I, s:o, s:s, s:o, s:o, s:s}", "configurations",
                     (json_int_t)profile->config_count, "numbered_by", "source rank, destination rank, size, backend",
                     "repetitions", (json_int_t)plan->iters, "warm_ups", (json_int_t)profile_warm_ups(plan), "seed",
                     (json_int_t)plan->seed, "order_digest",
                     json_sprintf("%016llx", (unsigned long long)profile_order_digest(profile)), "scope",
                     wf_config_text(profile->site->options->config, WF_SET_SCOPE), "backends", backends, "sizes_bytes",
                     sizes, "verified", verified[plan->check]);
}

/* Without what the rails have carried: that stands in the samples. */
static json_t *rails_to_json(const json_t *totals)
{
    static const char *const kept[] = {"name", "local", "remote", "speed_mbit", "mtu", "device_bound"};
    json_t *rails = json_array(), *rail;
    size_t index;

    json_array_foreach(totals, index, rail)
    {
        json_t *copy = json_object();
        for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
            json_object_set(copy, kept[i], json_object_get(rail, kept[i]));
        json_array_append_new(rails, copy);
    }
    return rails;
}

/* The settings that act on this command. */
static json_t *settings_to_json(const struct wf_config *config)
{
    json_t *settings = bench_config_to_json(config);

    for (int id = 0; id < WF_SETTING_COUNT; id++)
        if (!(wf_setting(id)->uses & WF_USE_PROFILE))
            json_object_del(settings, wf_setting(id)->name);
    return settings;
}

json_t *profile_metadata(const struct profile *profile, uint32_t rank)
{
    const struct bench_result *result = profile->site->result;
    uint32_t endpoints = profile->plan->endpoints;
    int node = rank < endpoints ? 0 : 1;
    json_t *json = json_pack("{s:s, s:i, s:i, s:i, s:i, s:s, s:s}", "schema", SCHEMA, "rank", (int)rank, "world_size",
                             (int)(2 * endpoints), "node", node, "endpoint", (int)(rank % endpoints), "weft",
                             weft_version(), "started", result->started);

    json_object_set(json, "host", result->host[node]);
    json_object_set_new(json, "plan", plan_to_json(profile));
    json_object_set_new(json, "clocks",
                        json_pack("{s:s, s:o, s:o, s:o}", "timestamps", "CLOCK_MONOTONIC of node0", "alignment",
                                  alignment(profile), "at_start", node_windows(profile, profile->start), "at_end",
                                  node_windows(profile, profile->end)));
    json_object_set_new(json, "stamps", stamps_of_rank(profile, rank));
    json_object_update_missing(json, profile->about[node]);
    json_object_set_new(json, "rails", rails_to_json(result->rail_totals[node]));
    json_object_set(json, "fallbacks", result->fallbacks[node]);
    json_object_set_new(json, "settings", settings_to_json(profile->site->options->config));
    if (profile->criteria)
        json_object_set(json, "criteria", profile->criteria);
    return json;
}
