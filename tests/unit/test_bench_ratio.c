/* What may be laid beside each other, and which way round a ratio is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "bench/backends/backend.h"
#include "bench/result/ratio.h"

static const struct bench_backend_ops weft = {.name = "weft", .moves_data = true};
static const struct bench_backend_ops other = {.name = "nccl", .moves_data = true};
static const struct bench_backend_ops idle = {.name = "null"};

/* The rest of the result, as result.c and histogram.c have it, for one pair. */
bool bench_sample_in_set(const struct bench_sample *sample, const struct bench_set *set)
{
    return sample->backend == set->backend && sample->mode == set->mode && sample->size == set->size;
}

size_t bench_set_rates(const struct bench_result *result, const struct bench_set *set, double *rates)
{
    size_t count = 0;

    for (size_t i = 0; i < result->sample_count; i++)
        if (bench_sample_in_set(&result->samples[i], set))
            rates[count++] = (double)set->size / (result->samples[i].time.p50 * 1e3);
    return count;
}

double bench_set_aggregate(const struct bench_set *set)
{
    return set->elapsed_ns ? (double)set->bytes / (double)set->elapsed_ns : -1;
}

double wf_median(double *values, size_t count)
{
    return values[count / 2];
}

const char *bench_mode_name(enum bench_mode mode)
{
    return mode == BENCH_LOADED ? "loaded" : "isolated";
}

static const struct bench_sample one_sample = {.backend = &weft,
                                               .size = 1000,
                                               .iters = 10,
                                               .inflight = 4,
                                               .buffers = 4,
                                               .grouped = 4,
                                               .checked = true,
                                               .pair = {.dst_node = 1}};

static void only_like_is_compared(void **state)
{
    struct bench_sample one = one_sample, two = one_sample;
    char why[BENCH_UNLIKE];

    (void)state;
    two.backend = &other;
    two.time.p50 = 5;
    assert_string_equal(bench_samples_unlike(&one, &two, why), "");
#define UNLIKE(field, value, word)                                                                                     \
    two.field = value;                                                                                                 \
    assert_non_null(strstr(bench_samples_unlike(&one, &two, why), word));                                              \
    two.field = one.field
    UNLIKE(pair.dst_memory, BENCH_CUDA, "memory: host with weft, host/cuda with the other");
    UNLIKE(checked, false, "verification");
    UNLIKE(size, 999, "bytes: 1000 with weft, 999 with the other");
    UNLIKE(inflight, 5, "in flight");
    UNLIKE(buffers, 5, "buffers");
    UNLIKE(grouped, 1, "completions");
    UNLIKE(latency, true, "ping-pong");
    assert_string_equal(bench_samples_unlike(&one, &two, why), "");
    two.iters = 11; /* medians of more messages are medians, */
    assert_string_equal(bench_samples_unlike(&one, &two, why), "");
    two.grouped = 11;
    assert_non_null(strstr(bench_samples_unlike(&one, &two, why), "completions"));
    one.grouped = 10; /* and so are means of all messages */
    assert_string_equal(bench_samples_unlike(&one, &two, why), "");
}

/* Two samples, one with each backend. */
struct scene {
    struct bench_sample samples[2];
    struct bench_set sets[3];
    json_t *hosts[2];
    struct bench_result result;
};

static void make(struct scene *scene)
{
    memset(scene, 0, sizeof(*scene));
    scene->samples[0] = scene->samples[1] = one_sample;
    scene->samples[1].backend = &other;
    scene->samples[0].time.p50 = 2;
    scene->samples[1].time.p50 = 3;
    scene->sets[0] = (struct bench_set){.backend = &other, .size = 1000, .bytes = 4000, .elapsed_ns = 2000};
    scene->sets[1] = (struct bench_set){.backend = &idle, .size = 1000};
    scene->sets[2] = (struct bench_set){.backend = &weft, .size = 1000, .bytes = 4000, .elapsed_ns = 500};
    scene->result.samples = scene->samples;
    scene->result.sample_count = 2;
    scene->result.sets = scene->sets;
    scene->result.set_count = 3;
    scene->result.host = scene->hosts;
    scene->result.node_count = 2;
}

static void above_one_weft_is_the_faster(void **state)
{
    struct scene scene;
    struct bench_ratio ratio;
    int index = 0;

    (void)state;
    make(&scene);
    assert_true(bench_ratio_next(&scene.result, &index, &ratio));
    assert_string_equal(ratio.unlike, "");
    assert_ptr_equal(ratio.other->backend, &other);
    assert_float_equal(bench_ratio_rate(&ratio), 1.5, 1e-9);
    assert_float_equal(bench_ratio_time(&ratio), 1.5, 1e-9);
    assert_float_equal(bench_ratio_aggregate(&ratio), 4, 1e-9);
    /* Neither Weft beside itself nor beside what moves nothing. */
    assert_false(bench_ratio_next(&scene.result, &index, &ratio));
}

static void a_pair_that_lacks_one_is_no_ratio(void **state)
{
    struct scene scene;
    struct bench_ratio ratio;
    int index = 0;

    (void)state;
    make(&scene);
    scene.samples[1].pair.dst = 7;
    assert_true(bench_ratio_next(&scene.result, &index, &ratio));
    assert_non_null(strstr(ratio.unlike, "pairs"));
    index = 0;
    scene.result.sample_count = 1;
    assert_true(bench_ratio_next(&scene.result, &index, &ratio));
    assert_non_null(strstr(ratio.unlike, "pairs"));
}

static void what_was_in_force_decides_whether_figures_count(void **state)
{
    struct scene scene;
    json_t *all, *entry;

    (void)state;
    make(&scene);
    assert_null(bench_ratio_caveat(&scene.result));
    scene.result.host[1] = json_pack("{s:[{s:b, s:b}]}", "backends", "emulated", 0, "time_sliced", 1);
    assert_string_equal(bench_ratio_caveat(&scene.result), "not comparable: kernels are time-sliced without MPS");
    all = bench_ratios_to_json(&scene.result);
    entry = json_array_get(all, 0);
    assert_int_equal(json_array_size(all), 1);
    assert_true(json_is_false(json_object_get(entry, "comparable")));
    assert_string_equal(json_string_value(json_object_get(entry, "why")), bench_ratio_caveat(&scene.result));
    assert_float_equal(json_real_value(json_object_get(entry, "median_bw")), 1.5, 1e-9);
    json_decref(all);
    json_decref(scene.result.host[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_like_is_compared),
        cmocka_unit_test(above_one_weft_is_the_faster),
        cmocka_unit_test(a_pair_that_lacks_one_is_no_ratio),
        cmocka_unit_test(what_was_in_force_decides_whether_figures_count),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
