#include "reading.h"

#include <errno.h>
#include <math.h>
#include <string.h>

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

void bench_reading_fini(struct bench_reading *reading)
{
    json_decref(reading->sets);
    reading->sets = NULL;
}
