/* weft overlap without ranks: buckets, gradients and their proof, the thread that communicates, figures of lines. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/collective/ranks/courier.h"
#include "bench/collective/ranks/layers.h"
#include "bench/overlap/parts.h"
#include "bench/report/timeline.h"

#define MIB (UINT64_C(1) << 20)

/* --- buckets --- */

static void buckets_hold_all_layers_in_their_order(void **state)
{
    static const struct {
        uint32_t layers;
        uint64_t layer_mb, bucket_mb;
        uint32_t count, first, last; /* buckets, layers of the first and of the last one */
    } cases[] = {
        {1, 5, 25, 1, 1, 1},  {10, 5, 25, 2, 5, 5}, {12, 5, 25, 3, 5, 2},  {4, 30, 25, 4, 1, 1},
        {5, 10, 25, 2, 3, 2}, {7, 1, 1, 7, 1, 1},   {7, 1, 1000, 1, 7, 7},
    };
    struct rank_bucket buckets[16];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint32_t next = 0, count = rank_buckets_cut(cases[i].layers, cases[i].layer_mb, cases[i].bucket_mb, buckets);
        assert_int_equal(count, cases[i].count);
        assert_int_equal(buckets[0].count, cases[i].first);
        assert_int_equal(buckets[count - 1].count, cases[i].last);
        for (uint32_t bucket = 0; bucket < count; bucket++) {
            assert_int_equal(buckets[bucket].first, next);
            next += buckets[bucket].count;
        }
        assert_int_equal(next, cases[i].layers);
    }
}

/* --- layers --- */

#define LAYERS 3
#define RANKS 2
#define ELEMENTS (LAYERS * MIB / sizeof(float))

/* What an all-reduce would leave: computed for each rank, and added. `layers` is that of the last rank. */
static void sum_of_all(struct layers *layers, float *sums, bool plain)
{
    const struct rank_overlap asked = {.layers = LAYERS, .layer_bytes = MIB, .batch = 5};
    float *own = malloc(ELEMENTS * sizeof *own);
    struct wf_status status;

    memset(sums, 0, ELEMENTS * sizeof *sums);
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        assert_int_equal(layers_init(layers, &asked, NULL, own, rank, RANKS, &status), 0);
        if (plain)
            layers->multiply = NULL;
        for (uint32_t layer = 0; layer < LAYERS; layer++)
            assert_int_equal(layers_compute(layers, layer, &status), 0);
        assert_true(layers_wrong(layers, own) > 0); /* of one rank alone */
        for (uint64_t i = 0; i < ELEMENTS; i++)
            sums[i] += own[i];
        if (rank + 1 < RANKS)
            layers_fini(layers);
    }
    free(own);
    layers->gradients = sums;
}

static void sums_of_gradients_are_proved_element_by_element(void **state)
{
    float *sums = malloc(ELEMENTS * sizeof *sums);
    struct layers layers;

    (void)state;
    for (int plain = 0; plain < 2; plain++) { /* the loop, and what is here of BLAS: the same numbers */
        sum_of_all(&layers, sums, plain == 1);
        assert_int_equal(layers_wrong(&layers, sums), 0);
        sums[0] += 1;
        sums[ELEMENTS / 2] = 0.0f / 0.0f;
        sums[ELEMENTS - 1] = -sums[ELEMENTS - 1];
        assert_int_equal(layers_wrong(&layers, sums), 3);
        layers_fini(&layers);
    }
    free(sums);
}

/* A backend with memory of its own, which is the process's. */
static struct rank_product last;
static int taken;

static int take(uint64_t bytes, void **out, struct wf_status *status)
{
    *out = malloc(bytes);
    taken++;
    return *out ? 0 : wf_fail(status, -ENOMEM, "no memory");
}

static void give(void *memory)
{
    free(memory);
    taken--;
}

static int copy(void *to, const void *from, uint64_t bytes, struct wf_status *status)
{
    (void)status;
    memcpy(to, from, bytes);
    return 0;
}

static int multiply(const struct rank_product *product, struct wf_status *status)
{
    (void)status;
    last = *product;
    memset(product->out, 0, (size_t)product->rows * product->columns * sizeof(float));
    for (uint32_t i = 0; i < product->rows; i++)
        for (uint32_t k = 0; k < product->batch; k++)
            for (uint32_t j = 0; j < product->columns; j++)
                product->out[(size_t)i * product->columns + j] +=
                    product->left[(size_t)k * product->rows + i] * product->right[(size_t)k * product->columns + j];
    return 0;
}

static int refuse(const struct rank_product *product, struct wf_status *status)
{
    (void)product;
    return wf_fail(status, -EIO, "no GPU any more");
}

static void a_backend_multiplies_in_its_memory(void **state)
{
    static const struct {
        uint32_t asked, batch, at_once, times;
    } cases[] = {{5, 5, 5, 1}, {256, 256, 256, 1}, {300, 256, 256, 1}, {1000, 768, 256, 3}};
    struct rank_backend backend = {
        .take = take, .give = give, .copy = copy, .multiply = multiply, .multiplier = "a test"};
    const struct rank_overlap asked = {.layers = LAYERS, .layer_bytes = MIB};
    float *gradients = malloc(ELEMENTS * sizeof *gradients);
    struct layers layers;
    struct wf_status status;

    (void)state;
    assert_int_equal(layers_init(&layers, &asked, &backend, gradients, 0, 1, &status), 0);
    assert_string_equal(layers.how, "a test");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        layers_set_batch(&layers, cases[i].asked);
        for (uint32_t layer = 0; layer < LAYERS; layer++)
            assert_int_equal(layers_compute(&layers, layer, &status), 0);
        assert_int_equal(layers.batch, cases[i].batch);
        assert_int_equal(last.batch, cases[i].at_once);
        assert_int_equal(last.times, cases[i].times);
        assert_int_equal(layers_wrong(&layers, gradients), 0);
    }
    gradients[1] += 1;
    assert_int_equal(layers_wrong(&layers, gradients), 1);
    backend.multiply = refuse;
    assert_int_equal(layers_compute(&layers, 0, &status), -EIO);
    layers_fini(&layers);
    assert_int_equal(taken, 0);
    free(gradients);
}

/* --- the thread --- */

static int note(void *context, const struct rank_bucket *bucket, struct wf_status *status)
{
    uint32_t *seen = context; /* how many, then which layers */

    seen[++seen[0]] = bucket->first;
    return bucket->first == 13 ? wf_fail(status, -EIO, "no luck") : 0;
}

static void buckets_are_communicated_in_order_until_one_fails(void **state)
{
    const struct rank_bucket buckets[] = {{11, 1}, {12, 1}, {13, 1}, {14, 1}};
    struct courier_times times[4] = {0};
    struct courier courier;
    struct wf_status status;
    uint32_t seen[8] = {0};

    (void)state;
    assert_int_equal(courier_start(&courier, note, seen, &status), 0);
    courier_begin(&courier, buckets, times);
    assert_int_equal(courier_wait(&courier, &status), 0); /* nothing was handed over */
    courier_hand(&courier);
    courier_hand(&courier);
    assert_int_equal(courier_wait(&courier, &status), 0);
    assert_int_equal(seen[0], 2);
    assert_true(times[0].ready <= times[0].begun && times[0].begun <= times[0].ended);
    assert_true(times[0].ended <= times[1].begun);
    courier_hand(&courier);
    courier_hand(&courier);
    assert_int_equal(courier_wait(&courier, &status), -EIO);
    assert_string_equal(status.text, "no luck");
    courier_stop(&courier);
    assert_int_equal(seen[0], 3);
    assert_int_equal(seen[1], 11);
    assert_int_equal(seen[2], 12);
    assert_int_equal(seen[3], 13);
}

/* --- options --- */

static void wrong_values_of_options_are_named(void **state)
{
    static const struct {
        const char *option, *value, *text;
    } wrong[] = {
        {"layers", "0", "--layers '0'"},
        {"layers", "4097", "from 1 to 4096"},
        {"layer-mb", "-1", "--layer-mb '-1'"},
        {"batch", "8193", "from 1 to 8192"},
        {"bucket-mb", "5,5", "5 twice"},
        {"bucket-mb", "", "needs a value"},
        {"bucket-mb", "1,x", "--bucket-mb 'x'"},
        {"style", "tree", "none of"},
        {"style", "server,server", "server twice"},
    };
    struct wf_status status;

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct rank_asked asked = {0};
        assert_int_equal(rank_overlap_take(&asked, wrong[i].option, wrong[i].value, &status), -EINVAL);
        assert_non_null(strstr(status.text, wrong[i].text));
    }
    struct rank_asked asked = {0};
    assert_int_equal(rank_overlap_take(&asked, "bucket-mb", "1,25", &status), 0);
    assert_int_equal(asked.size_count, 2);
    assert_int_equal(asked.sizes[1], 25 * MIB);
    assert_int_equal(rank_overlap_take(&asked, "colour", "red", &status), -ENOENT);
}

/* --- lines --- */

#define FACTS "{\"schema\": \"weft.rank/1\", \"backend\": \"weft\", \"ranks\": 2, \"facts\": {\"library\": \"Weft\"}}\n"
#define START                                                                                                          \
    "{\"event\": \"start\", \"style\": \"all_reduce\", \"bucket_bytes\": 26214400, \"layers\": 48, \"layer_bytes\": "  \
    "5242880, \"batch\": 7, \"buckets\": 10, \"last_bucket_bytes\": 15728640, \"computed_by\": \"a loop\"}\n"
#define ITERATION(serial, overlapped)                                                                                  \
    "{\"event\": \"iteration\", \"style\": \"all_reduce\", \"bucket_bytes\": 26214400, \"compute_s\": 3, "             \
    "\"communicate_s\": 2, \"serial_s\": " #serial ", \"overlapped_s\": " #overlapped ", \"compute_cpu_s\": 6, "       \
    "\"communicate_cpu_s\": 0.5, \"serial_cpu_s\": 6.5, \"overlapped_cpu_s\": 6.5}\n"
#define END "{\"event\": \"end\", \"wrong\": 2, \"checked\": 40, \"timeline\": {}}\n"

static int read_lines(struct overlap_found *found, const char *text)
{
    const struct coll_run run = {
        .backend = coll_backend_find("weft"), .way = coll_backend_find("weft")->ways, .ranks = 2};
    struct wf_status status;
    json_t *facts;

    assert_int_equal(overlap_found_init(found, &status), 0);
    int result = overlap_read(found, &run, text, &facts, &status);
    json_decref(facts);
    return result;
}

static double figure(const struct overlap_found *found, const char *group, const char *name)
{
    const json_t *one = json_array_get(found->cases, 0);

    return json_number_value(json_object_get(group ? json_object_get(one, group) : one, name));
}

static void the_hidden_share_is_of_each_iteration(void **state)
{
    struct overlap_found found;

    (void)state;
    assert_int_equal(
        read_lines(&found, FACTS START ITERATION(5, 3.4) ITERATION(5.2, 4.2) ITERATION(5, 3.2) "a word\n" END), 0);
    assert_int_equal(json_array_size(found.cases), 1);
    assert_float_equal(figure(&found, "hidden", "median"), 0.8, 1e-9);
    assert_float_equal(figure(&found, "hidden", "min"), 0.5, 1e-9);
    assert_float_equal(figure(&found, "hidden", "max"), 0.9, 1e-9);
    assert_float_equal(figure(&found, "wall_s", "overlapped"), 3.4, 1e-9);
    /* The last but one is ready after 45 of 48 layers and takes longer than the 3 that are left. */
    assert_float_equal(figure(&found, NULL, "hidden_at_most"), (5 - (3 * 45 / 48.0 + 2 * 40 / 240.0)) / 2, 1e-9);
    assert_float_equal(figure(&found, NULL, "cores_to_communicate"), 0.125, 1e-9);
    assert_int_equal(found.wrong, 2);
    overlap_found_fini(&found);
}

static void lines_that_are_none_are_refused(void **state)
{
    static const char *const wrong[] = {
        START,                                      /* before it is known who speaks */
        FACTS ITERATION(5, 3),                      /* of nothing */
        FACTS START "{\"event\": \"iteration\"}\n", /* without figures */
        FACTS START "{\"event\": \"end\"}\n",       /* without a timeline */
        FACTS "{\"event\": \"start\"}\n",           /* of no layers */
        FACTS "{\"event\": \"dance\"}\n",
        FACTS "{\"event\": \"iter", /* cut short */
    };
    struct overlap_found found;

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(read_lines(&found, wrong[i]), -EPROTO);
        overlap_found_fini(&found);
    }
}

static void what_a_backend_lacks_is_kept_with_its_reason(void **state)
{
    struct overlap_found found;

    (void)state;
    assert_int_equal(read_lines(&found, FACTS "{\"event\": \"lack\", \"style\": \"server\", \"bucket_bytes\": 1048576, "
                                              "\"why\": \"no messages\"}\n"),
                     0);
    const json_t *entry = json_array_get(found.absent, 0);
    assert_string_equal(json_string_value(json_object_get(entry, "what")), "weft, server, buckets of 1 MiB");
    assert_string_equal(json_string_value(json_object_get(entry, "reason")), "no messages");
    overlap_found_fini(&found);
}

/* --- the drawing --- */

static char *draw(const char *text)
{
    json_t *one = json_loads(text, 0, NULL);

    assert_non_null(one);
    char *svg = report_timeline(one);
    json_decref(one);
    return svg;
}

static void a_timeline_is_drawn_of_numbers_alone(void **state)
{
    static const char *const nothing[] = {
        "{}",
        "{\"timeline\": 7}",
        "{\"timeline\": {\"serial\": {\"layers\": [[0, 0]], \"buckets\": []}}}",
        "{\"timeline\": {\"serial\": {\"layers\": [[\"a\", \"b\"], 7, []]}}}",
        "{\"timeline\": {\"serial\": {\"layers\": [[0, -1]]}}}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof nothing / sizeof nothing[0]; i++)
        assert_null(draw(nothing[i]));
    char *svg = draw("{\"layer_bytes\": 0, \"timeline\": {\"overlapped\": {\"layers\": [[0, 2], [\"<b>\", 1], [3, 2]], "
                     "\"buckets\": [[2, 2, 4], [null, -5, 1e3]]}}}");
    assert_non_null(svg);
    assert_non_null(strstr(svg, "With overlap: 1e+03 s"));
    assert_null(strstr(svg, "<b>"));
    assert_null(strstr(svg, "nan"));
    free(svg);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buckets_hold_all_layers_in_their_order),
        cmocka_unit_test(sums_of_gradients_are_proved_element_by_element),
        cmocka_unit_test(a_backend_multiplies_in_its_memory),
        cmocka_unit_test(buckets_are_communicated_in_order_until_one_fails),
        cmocka_unit_test(wrong_values_of_options_are_named),
        cmocka_unit_test(the_hidden_share_is_of_each_iteration),
        cmocka_unit_test(lines_that_are_none_are_refused),
        cmocka_unit_test(what_a_backend_lacks_is_kept_with_its_reason),
        cmocka_unit_test(a_timeline_is_drawn_of_numbers_alone),
    };

    layers_limit_threads();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
