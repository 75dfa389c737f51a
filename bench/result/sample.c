#include "sample.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bench/backends/backend.h"
#include "bench/buffers/memory.h"
#include "bench/plan/names.h"
#include "bench/words/heard.h"
#include "bench/words/json.h"

_Static_assert(sizeof(struct bench_sample) <= BENCH_SAMPLE_BYTES, "a plan's need of memory counts less than it takes");

double bench_sample_rate(const struct bench_sample *sample)
{
    if (sample->latency || !sample->backend->moves_data || sample->time.p50 <= 0)
        return -1;
    return (double)sample->size / (sample->time.p50 * 1e3);
}

/* Times cover the measured time without gaps, so it is the mean times the iterations. */
double bench_sample_messages_per_s(const struct bench_sample *sample)
{
    if (sample->latency || !sample->backend->moves_data || sample->time.mean <= 0)
        return -1;
    return 1e6 / sample->time.mean;
}

bool bench_sample_counted(const struct bench_sample *sample)
{
    return !sample->latency && sample->grouped == sample->iters && sample->iters > sample->inflight;
}

uint64_t bench_sample_measured_bytes(const struct bench_sample *sample)
{
    return sample->size * sample->iters * (sample->latency ? 2 : 1);
}

double bench_background_rate(const struct bench_sample *sample, const struct bench_flux *flux)
{
    return flux->elapsed_ns ? (double)(sample->background * flux->messages) / (double)flux->elapsed_ns : -1;
}

static json_t *times_to_json(const struct wf_times *time)
{
    return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "min", time->min, "p10", time->p10, "p50",
                     time->p50, "p90", time->p90, "p99", time->p99, "p999", time->p999, "max", time->max, "mean",
                     time->mean, "cv", time->cv);
}

static json_t *rails_to_json(const struct bench_sample *sample, const struct bench_rail_names *rails)
{
    json_t *array = json_array();

    for (int i = 0; i < sample->rail_count; i++)
        json_array_append_new(array, json_pack("{s:o, s:I}", "name",
                                               bench_heard_string(i < rails->count ? rails->names[i] : "?"), "bytes",
                                               (json_int_t)sample->rail_bytes[i]));
    return array;
}

static json_t *bytes_to_json(const uint8_t *bytes, int count)
{
    char text[2 * BENCH_SHOWN + 1] = "";

    for (int i = 0; i < count; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    return json_string(text);
}

static json_t *wrong_to_json(const struct bench_wrong *wrong)
{
    return json_pack("{s:I, s:I, s:I, s:o, s:o}", "size_bytes", (json_int_t)wrong->size, "offset_bytes",
                     (json_int_t)wrong->first, "iteration", (json_int_t)wrong->iteration, "expected_hex",
                     bytes_to_json(wrong->expected, wrong->shown), "found_hex",
                     bytes_to_json(wrong->found, wrong->shown));
}

static json_t *flux_to_json(const struct bench_sample *sample, const struct bench_flux *flux)
{
    return json_pack("{s:I, s:I, s:o}", "messages", (json_int_t)flux->messages, "elapsed_ns",
                     (json_int_t)flux->elapsed_ns, "bw_gb_per_s",
                     bench_number_or_null(bench_background_rate(sample, flux)));
}

static json_t *background_to_json(const struct bench_sample *sample)
{
    if (sample->background == 0)
        return json_null();
    return json_pack("{s:I, s:I, s:o, s:o}", "size_bytes", (json_int_t)sample->background, "inflight",
                     (json_int_t)sample->background_inflight, "src_to_dst", flux_to_json(sample, &sample->forth),
                     "dst_to_src", flux_to_json(sample, &sample->back));
}

static json_t *name_or_null(const char *name)
{
    return name ? json_string(name) : json_null();
}

static json_t *path_to_json(const struct bench_sample *sample)
{
    const char *send = bench_path_name((enum bench_path)sample->path_send);
    const char *receive = bench_path_name((enum bench_path)sample->path_receive);

    return send || receive ? json_pack("{s:o, s:o}", "send", name_or_null(send), "receive", name_or_null(receive))
                           : json_null();
}

json_t *bench_sample_to_json(const struct bench_sample *sample, const char *pattern,
                             const struct bench_rail_names *rails)
{
    char src[32], dst[32], memory[48];
    json_t *json = json_object();

    bench_src_name(&sample->pair, src, sizeof src);
    bench_dst_name(&sample->pair, dst, sizeof dst);
    json_object_set_new(json, "backend", json_string(sample->backend->name));
    json_object_set_new(
        json, "memory",
        json_string(bench_both_memories(sample->pair.src_memory, sample->pair.dst_memory, memory, sizeof memory)));
    json_object_set_new(json, "mode", json_string(bench_mode_name(sample->mode)));
    json_object_set_new(json, "pattern", json_string(pattern));
    json_object_set_new(json, "scope", json_string(sample->pair.src_node == sample->pair.dst_node ? "intra" : "inter"));
    json_object_set_new(json, "test", json_string(sample->latency ? "latency" : "bandwidth"));
    json_object_set_new(json, "src", json_string(src));
    json_object_set_new(json, "dst", json_string(dst));
    json_object_set_new(json, "size_bytes", json_integer((json_int_t)sample->size));
    json_object_set_new(json, "iters", json_integer(sample->iters));
    json_object_set_new(json, "inflight", json_integer(sample->inflight));
    json_object_set_new(json, "buffers", json_integer(sample->buffers));
    json_object_set_new(json, "grouped", json_integer(sample->grouped));
    json_object_set_new(json, "time_us", times_to_json(&sample->time));
    json_object_set_new(json, "bw_gb_per_s", bench_number_or_null(bench_sample_rate(sample)));
    json_object_set_new(json, "messages_per_s", bench_number_or_null(bench_sample_messages_per_s(sample)));
    json_object_set_new(json, "wrong_bytes",
                        sample->checked ? json_integer((json_int_t)sample->wrong.bytes) : json_null());
    json_object_set_new(json, "verified_bytes", json_integer((json_int_t)sample->verified_bytes));
    json_object_set_new(json, "measured_bytes", json_integer((json_int_t)bench_sample_measured_bytes(sample)));
    json_object_set_new(json, "times_contain_verification", json_boolean(sample->timed_check));
    if (sample->wrong.bytes)
        json_object_set_new(json, "first_wrong", wrong_to_json(&sample->wrong));
    json_object_set_new(json, "background", background_to_json(sample));
    json_object_set_new(json, "path", path_to_json(sample));
    json_object_set_new(json, "rails", rails_to_json(sample, rails));
    json_object_set_new(json, "cpu_s_per_gb", bench_number_or_null(sample->cpu_s_per_gb));
    json_object_set_new(json, "page_faults", json_integer((json_int_t)sample->page_faults));
    json_object_set_new(json, "retransmits", json_integer((json_int_t)sample->retransmits));
    json_object_set_new(json, "failures", json_integer((json_int_t)sample->failures));
    json_object_set_new(json, "resent_bytes", json_integer((json_int_t)sample->resent_bytes));
    json_object_set_new(json, "stamp", bench_stamps_to_json(sample->stamps));
    return json;
}

/* --- the other way --- */

static double real_of(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);

    return json_is_number(value) ? json_number_value(value) : -1;
}

static uint64_t integer_of(const json_t *object, const char *name)
{
    return (uint64_t)json_integer_value(json_object_get(object, name));
}

static void times_from_json(const json_t *json, struct wf_times *time)
{
    time->min = real_of(json, "min");
    time->p10 = real_of(json, "p10");
    time->p50 = real_of(json, "p50");
    time->p90 = real_of(json, "p90");
    time->p99 = real_of(json, "p99");
    time->p999 = real_of(json, "p999");
    time->max = real_of(json, "max");
    time->mean = real_of(json, "mean");
    time->cv = real_of(json, "cv");
}

static void wrong_from_json(const json_t *json, struct bench_wrong *wrong)
{
    wrong->size = integer_of(json, "size_bytes");
    wrong->first = integer_of(json, "offset_bytes");
    wrong->iteration = integer_of(json, "iteration");
    wrong->shown = bench_heard_bytes(json_object_get(json, "expected_hex"), wrong->expected, BENCH_SHOWN);
    if (wrong->shown < 0 ||
        bench_heard_bytes(json_object_get(json, "found_hex"), wrong->found, BENCH_SHOWN) != wrong->shown)
        wrong->shown = 0;
}

static void flux_from_json(const json_t *json, struct bench_flux *flux)
{
    flux->messages = integer_of(json, "messages");
    flux->elapsed_ns = integer_of(json, "elapsed_ns");
}

static void background_from_json(const json_t *json, struct bench_sample *sample)
{
    sample->background = integer_of(json, "size_bytes");
    sample->background_inflight = (uint32_t)integer_of(json, "inflight");
    flux_from_json(json_object_get(json, "src_to_dst"), &sample->forth);
    flux_from_json(json_object_get(json, "dst_to_src"), &sample->back);
}

static void path_from_json(const json_t *json, struct bench_sample *sample)
{
    sample->path_send = (uint8_t)bench_path_named(json_string_value(json_object_get(json, "send")));
    sample->path_receive = (uint8_t)bench_path_named(json_string_value(json_object_get(json, "receive")));
}

/* As bench_plan_outer() has it: the processes of a node are not told apart. */
static bool endpoint_from_json(const json_t *json, const struct bench_plan *plan, uint16_t *node, uint32_t *endpoint)
{
    unsigned at_node, at_endpoint, processes = (unsigned)plan->processes;
    const char *text = json_string_value(json);

    if (!text || sscanf(text, "node%4u:%*[a-z]%10u", &at_node, &at_endpoint) != 2 ||
        at_node >= (unsigned)plan->node_count / processes || at_endpoint >= plan->endpoints * processes)
        return false;
    *node = (uint16_t)at_node;
    *endpoint = at_endpoint;
    return true;
}

/* "cuda", or "host/cuda". */
static bool memories_from_json(const json_t *json, struct bench_pair *pair)
{
    const char *text = json_string_value(json), *slash = text ? strchr(text, '/') : NULL;
    char src[48];

    snprintf(src, sizeof src, "%.*s", slash ? (int)(slash - text) : 47, text ? text : "");
    pair->src_memory = (uint8_t)bench_memory_named(src);
    pair->dst_memory = (uint8_t)bench_memory_named(slash ? slash + 1 : src);
    return pair->src_memory < BENCH_MEMORIES && pair->dst_memory < BENCH_MEMORIES;
}

int bench_sample_from_json(const json_t *json, const struct bench_backend_choice *backends,
                           const struct bench_plan *plan, struct bench_sample *sample, struct wf_status *status)
{
    const char *backend = json_string_value(json_object_get(json, "backend"));
    const struct bench_backend_choice *choice = backend ? bench_backend_find(backends, backend) : NULL;
    const char *mode = json_string_value(json_object_get(json, "mode"));
    const char *test = json_string_value(json_object_get(json, "test"));
    const json_t *rails = json_object_get(json, "rails");

    memset(sample, 0, sizeof *sample);
    sample->backend = choice ? choice->ops : NULL;
    if (!choice || !mode || !test ||
        !endpoint_from_json(json_object_get(json, "src"), plan, &sample->pair.src_node, &sample->pair.src) ||
        !endpoint_from_json(json_object_get(json, "dst"), plan, &sample->pair.dst_node, &sample->pair.dst) ||
        !memories_from_json(json_object_get(json, "memory"), &sample->pair))
        return wf_fail(status, -EPROTO, "the other node sent a sample that is none: use the same build on both");
    sample->mode = strcmp(mode, "loaded") == 0 ? BENCH_LOADED : BENCH_ISOLATED;
    sample->latency = strcmp(test, "latency") == 0;
    sample->size = integer_of(json, "size_bytes");
    sample->iters = (uint32_t)integer_of(json, "iters");
    sample->inflight = (uint32_t)integer_of(json, "inflight");
    sample->buffers = (uint32_t)integer_of(json, "buffers");
    sample->grouped = (uint32_t)integer_of(json, "grouped");
    times_from_json(json_object_get(json, "time_us"), &sample->time);
    sample->checked = json_is_integer(json_object_get(json, "wrong_bytes"));
    sample->wrong.bytes = sample->checked ? integer_of(json, "wrong_bytes") : 0;
    sample->verified_bytes = integer_of(json, "verified_bytes");
    sample->timed_check = json_is_true(json_object_get(json, "times_contain_verification"));
    wrong_from_json(json_object_get(json, "first_wrong"), &sample->wrong);
    background_from_json(json_object_get(json, "background"), sample);
    path_from_json(json_object_get(json, "path"), sample);
    sample->cpu_s_per_gb = real_of(json, "cpu_s_per_gb");
    sample->page_faults = integer_of(json, "page_faults");
    sample->retransmits = integer_of(json, "retransmits");
    sample->failures = integer_of(json, "failures");
    sample->resent_bytes = integer_of(json, "resent_bytes");
    sample->stamps = bench_stamps_from_json(json_object_get(json, "stamp"));
    for (size_t i = 0; i < json_array_size(rails) && i < BENCH_RAILS_MAX; i++)
        sample->rail_bytes[sample->rail_count++] = integer_of(json_array_get(rails, i), "bytes");
    return 0;
}
