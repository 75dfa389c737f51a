/* What gives way where memory does not suffice, and what does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/backends/backend.h"
#include "bench/run/fit.h"

#define MIB (1ull << 20)
#define GIB (1ull << 30)

static const struct bench_backend_ops backend = {.name = "weft", .moves_data = true};
static const struct bench_backend_choice backends[] = {{"weft", &backend}, {NULL, NULL}};

/* ------------------------------------------------------------------------------------------- what gives way */

struct setting {
    enum wf_setting_id id;
    const char *text;
    enum wf_origin origin;
};

static const struct setting script[] = {{WF_SET_BEGIN, "1K", WF_ORIGIN_PRESET},
                                        {WF_SET_END, "64M", WF_ORIGIN_PRESET},
                                        {WF_SET_ITERS, "0", WF_ORIGIN_PRESET}};

/* A node that has been started with some settings. */
struct node {
    struct wf_config config;
    struct bench_options options;
    struct bench_plan plan;
    struct wf_status status;
};

static void offer(struct node *node, const struct setting *settings, int count)
{
    for (int i = 0; i < count; i++)
        assert_int_equal(
            wf_config_offer(&node->config, settings[i].id, settings[i].text, settings[i].origin, "test", &node->status),
            0);
}

static void start(struct node *node, enum bench_command command, const struct setting *said)
{
    memset(node, 0, sizeof(*node));
    wf_config_init(&node->config);
    node->options = (struct bench_options){.command = command, .config = &node->config, .backends = backends};
    offer(node, script, 3);
    offer(node, said, said ? 1 : 0);
    assert_int_equal(bench_plan_init(&node->plan, &node->options, &node->status), 0);
}

static const struct bench_gpus none;

static struct bench_limits limit_of(const char *id, uint64_t bytes)
{
    struct bench_limits limits = {.count = 1, .all = {{.group = true, .free_bytes = bytes}}};

    snprintf(limits.all[0].id, sizeof(limits.all[0].id), "%s", id);
    return limits;
}

/* As --local: both nodes here. */
static int fit_into(struct node *node, uint64_t bytes)
{
    struct bench_limits limits = limit_of("", bytes);
    struct bench_parties parties = {.all = {{0, &none, &limits}, {1, &none, &limits}}, .count = 2};

    return bench_fit(&node->options, &node->plan, &parties, NULL, &node->status);
}

static void the_largest_that_fits_is_taken(void **state)
{
    static const struct {
        uint64_t mib;
        const char *end;
        unsigned endpoints;
    } cases[] = {{16384, "64M", 8}, {4096, "16M", 8}, {2048, "4M", 8}, {1024, "4M", 8},
                 {512, "1M", 8},    {300, "1M", 6},   {210, "64K", 2}};
    struct node *node = malloc(sizeof(*node));

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        start(node, BENCH_MESH, NULL);
        assert_int_equal(fit_into(node, cases[i].mib * MIB), 0);
        assert_string_equal(wf_config_text(&node->config, WF_SET_END), cases[i].end);
        assert_int_equal(node->plan.endpoints, cases[i].endpoints);
        assert_int_equal(bench_plan_largest(&node->plan), wf_config_number(&node->config, WF_SET_END));
        assert_int_equal(node->options.gave_way[0] != '\0', i > 0);
        assert_true(i == 0 || !bench_is_said(&node->config, WF_SET_END));
        bench_plan_fini(&node->plan);
    }
    free(node);
}

static void it_says_what_gave_way_and_why(void **state)
{
    struct node *node = malloc(sizeof(*node));

    (void)state;
    start(node, BENCH_MESH, NULL);
    assert_int_equal(fit_into(node, 2 * GIB), 0);
    assert_string_equal(
        node->options.gave_way,
        "--end 64M gives way to 4M: otherwise the run needs 8.3 GiB of memory here and has 2.0 GiB (the "
        "memory limit of the control group)");
    assert_string_equal(node->config.values[WF_SET_END].source, "gave way to memory");
    bench_plan_fini(&node->plan);
    start(node, BENCH_MESH, NULL);
    assert_int_equal(fit_into(node, 300 * MIB), 0);
    assert_non_null(
        strstr(node->options.gave_way, "--end 64M gives way to 1M, --endpoints 8 gives way to 6: otherwise"));
    bench_plan_fini(&node->plan);
    free(node);
}

static void what_the_user_has_said_never_gives_way(void **state)
{
    static const struct {
        struct setting said;
        uint64_t mib;
        const char *refused, *end; /* refused NULL: it fits */
        unsigned endpoints;
    } cases[] = {
        {{WF_SET_END, "64M", WF_ORIGIN_COMMAND}, 2048, NULL, "64M", 3},
        {{WF_SET_END, "256M", WF_ORIGIN_ENVIRONMENT}, 2048, "even with --endpoints 2 and has 2.0 GiB", "256M", 2},
        {{WF_SET_END, "256M", WF_ORIGIN_FILE}, 2048, "lower --end or --size (now up to 256M), --inflight", "256M", 2},
        {{WF_SET_SIZE, "1G", WF_ORIGIN_COMMAND}, 2048, "(now up to 1G), --inflight, or use --mode isolated", "64M", 2},
        {{WF_SET_ENDPOINTS, "8", WF_ORIGIN_COMMAND}, 2048, NULL, "4M", 8},
        {{WF_SET_ENDPOINTS, "128", WF_ORIGIN_COMMAND}, 256, "even with --end 1K and has 256.0 MiB", "1K", 128},
        {{WF_SET_ENDPOINTS, "128", WF_ORIGIN_COMMAND}, 256, ": lower --endpoints or --inflight, or use", "1K", 128},
    };
    struct node *node = malloc(sizeof(*node));

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        start(node, BENCH_MESH, &cases[i].said);
        assert_int_equal(fit_into(node, cases[i].mib * MIB), cases[i].refused ? -12 : 0);
        assert_true(!cases[i].refused || strstr(node->status.text, cases[i].refused));
        assert_string_equal(wf_config_text(&node->config, WF_SET_END), cases[i].end);
        assert_int_equal(node->plan.endpoints, cases[i].endpoints);
        bench_plan_fini(&node->plan);
    }
    free(node);
}

static void where_nothing_fits_it_is_refused(void **state)
{
    struct node *node = malloc(sizeof(*node));

    (void)state;
    start(node, BENCH_MESH, NULL);
    assert_int_equal(fit_into(node, 128 * MIB), -12);
    assert_non_null(strstr(node->status.text,
                           "even with --end 1K and --endpoints 2 and has 128.0 MiB (the memory limit "
                           "of the control group): raise that limit"));
    bench_plan_fini(&node->plan);
    free(node);
}

static void a_preset_gives_way_to_what_is_said(void **state)
{
    static const struct setting said = {WF_SET_END, "512", WF_ORIGIN_COMMAND};
    struct node *node = malloc(sizeof(*node));

    (void)state;
    start(node, BENCH_MESH, &said); /* --begin is a preset */
    assert_int_equal(node->plan.size_count, 1);
    assert_int_equal(node->plan.sizes[0], 512);
    bench_plan_fini(&node->plan);
    free(node);
}

static void a_pair_keeps_its_endpoints(void **state)
{
    struct node *node = malloc(sizeof(*node));

    (void)state;
    start(node, BENCH_PAIR, NULL);
    assert_int_equal(fit_into(node, 400 * MIB), 0);
    assert_int_equal(node->plan.endpoints, 8);
    assert_string_equal(wf_config_text(&node->config, WF_SET_END), "4M"); /* 16 of them are in flight */
    bench_plan_fini(&node->plan);
    free(node);
}

/* ------------------------------------------------------------------------------------------- two nodes */

static int fit_both(struct node *node, const struct bench_limits *zero, const struct bench_limits *one,
                    const struct bench_gpus *gpus)
{
    struct bench_parties parties = {.all = {{0, gpus, zero}, {1, gpus, one}}, .count = 2, .met = true};

    return bench_fit(&node->options, &node->plan, &parties, NULL, &node->status);
}

static void the_node_with_less_is_heard(void **state)
{
    struct bench_limits much = limit_of("a", 64 * GIB), little = limit_of("b", 2 * GIB);
    struct node *node = malloc(sizeof(*node));

    (void)state;
    for (int less = 0; less < 2; less++) {
        start(node, BENCH_MESH, NULL);
        assert_int_equal(fit_both(node, less == 0 ? &little : &much, less == 1 ? &little : &much, &none), 0);
        assert_string_equal(wf_config_text(&node->config, WF_SET_END), "16M");
        assert_non_null(strstr(node->options.gave_way, less == 0
                                                           ? "otherwise node0 needs 4.2 GiB of memory and has 2.0"
                                                           : "otherwise node1 needs 4.2 GiB of memory and has 2.0"));
        bench_plan_fini(&node->plan);
    }
    free(node);
}

static void what_nodes_share_counts_for_both(void **state)
{
    struct bench_limits one = limit_of("same", 2 * GIB), other = limit_of("same", 2 * GIB);
    struct setting said = {WF_SET_SIZE, "64M", WF_ORIGIN_COMMAND};
    struct node *node = malloc(sizeof(*node));

    (void)state;
    start(node, BENCH_MESH, NULL);
    assert_int_equal(fit_both(node, &one, &other, &none), 0);
    assert_string_equal(wf_config_text(&node->config, WF_SET_END), "4M");
    assert_non_null(strstr(node->options.gave_way, "otherwise the nodes need 8.3 GiB of memory and have 2.0 GiB"));
    bench_plan_fini(&node->plan);
    start(node, BENCH_MESH, &said);
    one = limit_of("a", 64 * GIB);
    other = limit_of("b", 128 * MIB);
    assert_int_equal(fit_both(node, &one, &other, &none), -12);
    assert_non_null(strstr(node->status.text, "node1 needs "));
    assert_non_null(strstr(node->status.text, "MiB of memory even with --endpoints 2 and has 128.0 MiB"));
    bench_plan_fini(&node->plan);
    free(node);
}

static void the_memory_of_gpus_counts(void **state)
{
    struct bench_limits one = limit_of("a", 64 * GIB), other = limit_of("b", 64 * GIB);
    struct bench_gpus gpus = {.count = 8};
    struct node *node = malloc(sizeof(*node));

    (void)state;
    for (int i = 0; i < 8; i++)
        gpus.infos[i] = (struct weft_gpu_info){.index = i, .bytes = 512 * MIB};
    start(node, BENCH_MESH, NULL);
    assert_int_equal(fit_both(node, &one, &other, &gpus), 0);
    assert_string_equal(wf_config_text(&node->config, WF_SET_END), "16M");
    assert_non_null(strstr(node->options.gave_way, "of the memory of GPU 0, which has 512.0 MiB"));
    bench_plan_fini(&node->plan);
    free(node);
}

static void what_node0_makes_of_it_is_adopted_unless_said(void **state)
{
    static const struct setting said = {WF_SET_END, "8M", WF_ORIGIN_COMMAND};
    json_t *settings = json_pack("{s:{s:s}, s:{s:s}}", "end", "value", "4M", "endpoints", "value", "3");
    struct node *node = malloc(sizeof(*node));

    (void)state;
    start(node, BENCH_MESH, NULL);
    assert_int_equal(bench_fit_adopt(&node->options, &node->plan, settings, &node->status), 0);
    assert_int_equal(bench_plan_largest(&node->plan), 4 * MIB);
    assert_int_equal(node->plan.endpoints, 3);
    bench_plan_fini(&node->plan);
    start(node, BENCH_MESH, &said);
    assert_int_equal(bench_fit_adopt(&node->options, &node->plan, settings, &node->status), 0);
    assert_string_equal(wf_config_text(&node->config, WF_SET_END), "8M");
    bench_plan_fini(&node->plan);
    json_decref(settings);
    free(node);
}

static void a_node_tells_what_it_has(void **state)
{
    struct bench_limits limits = limit_of("a b c", 3 * GIB), heard;
    struct bench_gpus gpus = {.count = 2, .staging_bytes = 7}, heard_gpus;
    struct bench_party party = {1, &gpus, &limits};
    json_t *about;

    (void)state;
    gpus.infos[1] = (struct weft_gpu_info){.index = 5, .bytes = GIB, .pci = "0000:01:00.0"};
    about = bench_party_to_json(&party);
    bench_party_from_json(about, &heard_gpus, &heard);
    assert_int_equal(heard.count, 1);
    assert_true(bench_limit_shared(&heard.all[0], &limits.all[0]));
    assert_int_equal(heard.all[0].free_bytes, 3 * GIB);
    assert_string_equal(bench_limit_name(&heard.all[0]), "the memory limit of the control group");
    assert_int_equal(heard_gpus.count, 2);
    assert_int_equal(heard_gpus.staging_bytes, 7);
    assert_int_equal(heard_gpus.infos[1].index, 5);
    assert_int_equal(heard_gpus.infos[1].bytes, GIB);
    assert_string_equal(heard_gpus.infos[1].pci, "0000:01:00.0");
    json_decref(about);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_largest_that_fits_is_taken),
        cmocka_unit_test(it_says_what_gave_way_and_why),
        cmocka_unit_test(what_the_user_has_said_never_gives_way),
        cmocka_unit_test(where_nothing_fits_it_is_refused),
        cmocka_unit_test(a_preset_gives_way_to_what_is_said),
        cmocka_unit_test(a_pair_keeps_its_endpoints),
        cmocka_unit_test(the_node_with_less_is_heard),
        cmocka_unit_test(what_nodes_share_counts_for_both),
        cmocka_unit_test(the_memory_of_gpus_counts),
        cmocka_unit_test(what_node0_makes_of_it_is_adopted_unless_said),
        cmocka_unit_test(a_node_tells_what_it_has),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
