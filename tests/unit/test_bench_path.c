/* Which way the messages of a sample went: the rule, the names, and how a sample carries them to the other node. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bench/backends/backend.h"
#include "bench/result/path.h"
#include "bench/result/sample.h"

static void bytes_decide(void **state)
{
    (void)state;
    for (int memory = BENCH_CUDA; memory < BENCH_MEMORIES; memory++) {
        assert_int_equal(bench_path_of((enum bench_memory)memory, 0, 1000), BENCH_PATH_STAGED);
        assert_int_equal(bench_path_of((enum bench_memory)memory, 949, 1000), BENCH_PATH_STAGED);
        assert_int_equal(bench_path_of((enum bench_memory)memory, 950, 1000), BENCH_PATH_DEVMEM);
        assert_int_equal(bench_path_of((enum bench_memory)memory, 2000, 1000), BENCH_PATH_DEVMEM); /* sent again */
        assert_int_equal(bench_path_of((enum bench_memory)memory, UINT64_MAX, UINT64_MAX), BENCH_PATH_DEVMEM);
        assert_int_equal(bench_path_of((enum bench_memory)memory, 0, 0), BENCH_PATH_STAGED);
        assert_int_equal(bench_path_of((enum bench_memory)memory, 0, 1), BENCH_PATH_STAGED);
    }
    assert_int_equal(bench_path_of(BENCH_HOST, 1000, 1000), BENCH_PATH_HOST);
}

static void every_path_has_its_name(void **state)
{
    (void)state;
    for (int path = 0; path < BENCH_PATHS; path++)
        assert_int_equal(bench_path_named(bench_path_name((enum bench_path)path)), path);
    assert_null(bench_path_name(BENCH_PATH_UNKNOWN));
    assert_int_equal(bench_path_named("carrier pigeon"), BENCH_PATH_UNKNOWN);
}

/* To JSON and back. */
static struct bench_sample sent(const struct bench_sample *sample, const char **send, bool *known)
{
    const struct bench_backend_choice backends[2] = {{.name = "weft", .ops = sample->backend}};
    const struct bench_rail_names rails = {0};
    const struct bench_plan plan = {.node_count = 2, .endpoints = 4, .processes = 1};
    struct bench_sample heard;
    struct wf_status status;
    json_t *json = bench_sample_to_json(sample, "mesh", &rails), *path = json_object_get(json, "path");

    assert_non_null(path);
    *known = json_is_object(path);
    *send = bench_path_name(bench_path_named(json_string_value(json_object_get(path, "send"))));
    assert_int_equal(bench_sample_from_json(json, backends, &plan, &heard, &status), 0);
    json_decref(json);
    return heard;
}

static void a_sample_carries_both(void **state)
{
    static const struct bench_backend_ops weft = {.name = "weft", .moves_data = true};
    struct bench_sample sample = {
        .backend = &weft, .iters = 1, .path_send = BENCH_PATH_DEVMEM, .path_receive = BENCH_PATH_STAGED};
    struct bench_sample heard;
    const char *send;
    bool known;

    (void)state;
    heard = sent(&sample, &send, &known);
    assert_true(known);
    assert_string_equal(send, "devmem");
    assert_int_equal(heard.path_send, BENCH_PATH_DEVMEM);
    assert_int_equal(heard.path_receive, BENCH_PATH_STAGED);

    sample.path_send = sample.path_receive = BENCH_PATH_UNKNOWN; /* null, as of other backends */
    heard = sent(&sample, &send, &known);
    assert_false(known);
    assert_int_equal(heard.path_send, BENCH_PATH_UNKNOWN);
    assert_int_equal(heard.path_receive, BENCH_PATH_UNKNOWN);
}

/* Results are kept by node and endpoint. */
static void of_endpoints_that_are_planned(void **state)
{
    static const struct bench_backend_ops weft = {.name = "weft", .moves_data = true};
    static const struct {
        uint16_t node;
        uint32_t endpoint;
        int result;
    } rows[] = {{1, 3, 0}, {1, 4, -EPROTO}, {2, 3, -EPROTO}, {1, UINT32_MAX, -EPROTO}};
    const struct bench_backend_choice backends[2] = {{.name = "weft", .ops = &weft}};
    const struct bench_rail_names rails = {0};
    const struct bench_plan plan = {.node_count = 4, .endpoints = 2, .processes = 2}; /* 2 nodes, 4 endpoints each */

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (int end = 0; end < 2; end++) {
            struct bench_sample sample = {.backend = &weft, .iters = 1}, heard;
            struct wf_status status = {0};
            if (end == 0)
                sample.pair.src_node = rows[i].node, sample.pair.src = rows[i].endpoint;
            else
                sample.pair.dst_node = rows[i].node, sample.pair.dst = rows[i].endpoint;
            json_t *json = bench_sample_to_json(&sample, "mesh", &rails);
            assert_int_equal(bench_sample_from_json(json, backends, &plan, &heard, &status), rows[i].result);
            json_decref(json);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_decide),
        cmocka_unit_test(every_path_has_its_name),
        cmocka_unit_test(a_sample_carries_both),
        cmocka_unit_test(of_endpoints_that_are_planned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
