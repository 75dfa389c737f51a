#include "reading.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/config.h"

static double set_value(const json_t *set, bool latency)
{
    const json_t *mode = json_object_get(set, "mode");
    bool loaded = json_is_string(mode) && strcmp(json_string_value(mode), "loaded") == 0;

    return json_number_value(json_object_get(set, latency  ? "median_p50_us"
                                                  : loaded ? "aggregate_bw_gb_per_s"
                                                           : "median_bw_gb_per_s"));
}

/* A set's processor time; of pairs one at a time it stands in their samples. Negative: it was not told. */
static double set_cost(const json_t *set, const json_t *samples)
{
    const json_t *whole = json_object_get(set, "cpu_s_per_gb");
    json_t *sample;
    double sum = 0;
    size_t index, told = 0;

    if (json_is_number(whole))
        return json_number_value(whole);
    json_array_foreach(samples, index, sample)
    {
        const json_t *cost = json_object_get(sample, "cpu_s_per_gb");
        if (!json_is_number(cost) || !json_equal(json_object_get(sample, "mode"), json_object_get(set, "mode")) ||
            !json_equal(json_object_get(sample, "size_bytes"), json_object_get(set, "size_bytes")))
            continue;
        sum += json_number_value(cost);
        told++;
    }
    return told ? sum / (double)told : -1;
}

static int read_sets(const json_t *root, bool latency, struct bench_reading *reading, struct wf_status *status)
{
    const json_t *sets = json_object_get(json_object_get(root, "summary"), "sets"),
                 *samples = json_object_get(root, "samples");
    double sum = 0, cpu = 0;
    size_t index, told = 0;
    json_t *set;

    reading->sets = json_array();
    json_array_foreach(sets, index, set)
    {
        double value = set_value(set, latency), cost = set_cost(set, samples);
        if (!(value > 0))
            return wf_fail(status, -EPROTO, "a set of messages has no figure");
        sum += log(value);
        cpu += cost > 0 ? log(cost) : 0;
        told += cost > 0;
        json_array_append_new(reading->sets,
                              json_pack("{s:O?, s:O?, s:f}", "mode", json_object_get(set, "mode"), "size_bytes",
                                        json_object_get(set, "size_bytes"), "value", value));
    }
    if (index == 0)
        return wf_fail(status, -EPROTO, "it measured nothing");
    reading->value = exp(sum / (double)index);
    reading->cpu_s_per_gb = told == index ? exp(cpu / (double)index) : -1;
    return 0;
}

int bench_reading_from_json(const char *text, bool latency, struct bench_reading *reading, struct wf_status *status)
{
    json_error_t error;
    json_t *root = json_loads(text, 0, &error);

    *reading = (struct bench_reading){.cpu_s_per_gb = -1};
    if (!root)
        return wf_fail(status, -EPROTO, "it printed no JSON: line %d: %s", error.line, error.text);
    int result = read_sets(root, latency, reading, status);
    json_decref(root);
    if (result)
        reading->value = 0;
    return result;
}

/* The largest message of a list of sets. */
static uint64_t largest_of(const json_t *sets)
{
    uint64_t most = 0;
    size_t index;
    json_t *set;

    json_array_foreach(sets, index, set)
    {
        json_int_t size = json_integer_value(json_object_get(set, "size_bytes"));
        most = size > 0 && (uint64_t)size > most ? (uint64_t)size : most;
    }
    return most;
}

int bench_reading_check(const struct bench_reading *reading, const json_t *first, struct wf_status *status)
{
    bool same = json_array_size(reading->sets) == json_array_size(first);
    char here[32], there[32];
    size_t index;
    json_t *set;

    json_array_foreach(first, index, set)
    {
        const json_t *mine = json_array_get(reading->sets, index);
        same = same && json_equal(json_object_get(mine, "mode"), json_object_get(set, "mode")) &&
               json_equal(json_object_get(mine, "size_bytes"), json_object_get(set, "size_bytes"));
    }
    if (same || !first)
        return 0;
    return wf_fail(
        status, -EPROTO,
        "it measured other messages than the first run (sets: %zu, up to %s, instead of %zu, up to %s): name "
        "sizes for which the memory suffices, with --size or --end",
        json_array_size(reading->sets), wf_format_size(largest_of(reading->sets), here, sizeof here),
        json_array_size(first), wf_format_size(largest_of(first), there, sizeof there));
}

void bench_reading_fini(struct bench_reading *reading)
{
    json_decref(reading->sets);
    reading->sets = NULL;
}
