/*
 * What the report of a mesh of four nodes says first: the slow node, link, rail or endpoint, each once, and what is
 * known about it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/backends/backend.h"
#include "bench/result/report_nodes.h"
#include "noise.h"

#define NODES 4
#define ENDPOINTS 4
#define RAILS 2
#define RATE 10.0
#define TEXT_MOST 8192

static const struct bench_backend_ops moving = {.name = "weft", .moves_data = true};

struct scene {
    struct wf_config *config;
    struct bench_options options;
    struct bench_plan *plan;
    struct bench_result result;
};

/* What a rail from a node to a node, or an endpoint of it, has of its rate. */
typedef double part_of(int src_node, int dst_node, uint32_t src, int rail);

static double all_of_it(int src_node, int dst_node, uint32_t src, int rail)
{
    (void)src_node, (void)dst_node, (void)src, (void)rail;
    return 1;
}

static void add(struct scene *scene, enum bench_mode mode, uint64_t size, const struct bench_pair *pair, part_of *part,
                uint64_t *random)
{
    struct bench_sample sample = {.backend = &moving,
                                  .mode = mode,
                                  .pair = *pair,
                                  .size = size,
                                  .iters = 100,
                                  .inflight = 4,
                                  .grouped = 1,
                                  .rail_count = RAILS,
                                  .retransmits = pair->src_node == 2 || pair->dst_node == 2 ? 9 : 0};
    struct wf_status status = {0};
    double rate = 0;

    for (int rail = 0; rail < RAILS; rail++) {
        double share = part(pair->src_node, pair->dst_node, pair->src, rail);
        rate += share * RATE / RAILS;
        sample.rail_bytes[rail] = (uint64_t)(1e9 * share * (1 + 0.01 * normal(random)));
    }
    double us = (double)size / (rate * (1 + 0.02 * normal(random)) * 1e3);
    sample.time = (struct wf_times){us, us, us, us, us, us, us, us, 0};
    assert_int_equal(bench_result_add(&scene->result, &sample, &status), 0);
}

static void fill(struct scene *scene, part_of *part)
{
    uint64_t random = 1;

    for (int i = 0; i < BENCH_MODES * scene->plan->size_count; i++)
        for (int pair = 0; pair < NODES * NODES * ENDPOINTS * ENDPOINTS; pair++) {
            struct bench_pair of = {.src_node = (uint16_t)(pair / ENDPOINTS / ENDPOINTS / NODES),
                                    .dst_node = (uint16_t)(pair / ENDPOINTS / ENDPOINTS % NODES),
                                    .src = (uint32_t)(pair / ENDPOINTS % ENDPOINTS),
                                    .dst = (uint32_t)(pair % ENDPOINTS)};
            if (of.src_node != of.dst_node)
                add(scene, i % BENCH_MODES, scene->plan->sizes[i / BENCH_MODES], &of, part, &random);
        }
}

static struct scene *scene_create(part_of *part)
{
    struct scene *scene = calloc(1, sizeof *scene);
    struct wf_status status = {0};

    assert_non_null(scene);
    scene->config = malloc(sizeof *scene->config);
    scene->plan = calloc(1, sizeof *scene->plan);
    assert_true(scene->config && scene->plan);
    wf_config_init(scene->config);
    scene->options = (struct bench_options){.command = BENCH_MESH, .config = scene->config};
    *scene->plan = (struct bench_plan){.command = BENCH_MESH,
                                       .node_count = NODES,
                                       .endpoints = ENDPOINTS,
                                       .modes = {true, true},
                                       .sizes = {1 << 20, 1 << 21, 1 << 22},
                                       .size_count = 3,
                                       .backends = {&moving},
                                       .backend_count = 1};
    bench_result_init(&scene->result, &scene->options, 0);
    assert_int_equal(bench_result_set_nodes(&scene->result, NODES, &status), 0);
    scene->result.plan = scene->plan;
    for (int node = 0; node < NODES; node++) {
        scene->result.rails[node] = (struct bench_rail_names){.count = RAILS, .names = {"eth0", "eth1"}};
        scene->result.host[node] = json_pack("{s:o, s:i}", "node", json_sprintf("node%d", node), "cpus", 16);
    }
    fill(scene, part);
    return scene;
}

static void scene_destroy(struct scene *scene)
{
    bench_result_fini(&scene->result);
    free(scene->plan);
    free(scene->config);
    free(scene);
}

/* Lines that are wrapped are one. */
static void print(struct scene *scene, char text[TEXT_MOST])
{
    FILE *out = tmpfile();

    assert_non_null(out);
    bench_report_nodes(&scene->result, out);
    rewind(out);
    size_t length = fread(text, 1, TEXT_MOST - 1, out);
    text[length] = '\0';
    fclose(out);
    for (char *at; (at = strstr(text, "\n  ")) != NULL;)
        memmove(at, at + 2, strlen(at + 2) + 1);
}

static size_t lines_of(const char *text)
{
    size_t count = 0;

    for (; *text; text++)
        count += text[0] == '\n' && text[1] && text[1] != '\n';
    return count;
}

/* That it says `count` lines, and these words. */
static void says(part_of *part, size_t count, const char *words, const char *more)
{
    struct scene *scene = scene_create(part);
    char text[TEXT_MOST];

    print(scene, text);
    if (lines_of(text) != count || !strstr(text, words) || !strstr(text, more))
        fail_msg("not %zu lines with '%s' and '%s' but: %s", count, words, more, text);
    scene_destroy(scene);
}

static double of_node(int src_node, int dst_node, uint32_t src, int rail)
{
    (void)src, (void)rail;
    return src_node == 2 || dst_node == 2 ? 0.8 : 1;
}

static double of_link(int src_node, int dst_node, uint32_t src, int rail)
{
    (void)src, (void)rail;
    return src_node == 3 && dst_node == 0 ? 0.8 : 1;
}

static double of_rail(int src_node, int dst_node, uint32_t src, int rail)
{
    return rail == 1 && of_node(src_node, dst_node, src, rail) < 1 ? 0.86 : 1;
}

static double of_endpoint(int src_node, int dst_node, uint32_t src, int rail)
{
    (void)dst_node, (void)rail;
    return src_node == 1 && src == 1 ? 0.7 : 1;
}

static void what_is_slow_is_said_once_with_what_is_known(void **state)
{
    (void)state;
    says(all_of_it, 0, "", "");
    says(of_node, 1, "\nslow: node2 sends and receives 7.9", "; loaded: 80 %): TCP sent ");
    says(of_link, 1, "\nasymmetric: node3 to node0 has 7.", ", and the way back is as fast as the others (isolated");
    says(of_rail, 1, "\nslow rail: rail eth1 of node2 carries 86 % of its peers (isolated)", "");
    says(of_endpoint, 1, "\nasymmetric: what node1:host1 sends has ", "% of its peers (isolated)");
}

/* As fast as the others alone, and not when all send. */
static void a_straggler_is_slow_when_all_send(void **state)
{
    struct scene *scene = scene_create(of_node);
    char text[TEXT_MOST];

    (void)state;
    for (size_t i = 0; i < scene->result.sample_count; i++) {
        struct bench_sample *sample = &scene->result.samples[i];
        if (sample->mode == BENCH_ISOLATED && (sample->pair.src_node == 2 || sample->pair.dst_node == 2))
            sample->time.p50 *= 0.8;
    }
    print(scene, text);
    assert_non_null(strstr(text, "\nstraggler: node2 sends and receives "));
    assert_non_null(strstr(text, " % of its peers (loaded)"));
    scene_destroy(scene);
}

static void over_loopback_nothing_is_slow(void **state)
{
    struct scene *scene = scene_create(of_node);
    char text[TEXT_MOST];

    (void)state;
    scene->result.nearness = BENCH_LOOPBACK;
    print(scene, text);
    assert_string_equal(text, "");
    scene_destroy(scene);
}

/* Where rails serve the endpoints that they are near, what they carried says who sent. */
static void rails_are_compared_where_all_serve_all(void **state)
{
    struct scene *scene = scene_create(of_rail);
    char text[TEXT_MOST];

    (void)state;
    json_object_set_new(scene->result.host[1], "affinity", json_pack("{s:s}", "rail_policy", "near"));
    print(scene, text);
    assert_null(strstr(text, "slow rail"));
    scene_destroy(scene);
}

static void what_differs_at_the_node_is_said(void **state)
{
    struct scene *scene = scene_create(of_node);
    char text[TEXT_MOST];

    (void)state;
    json_object_set_new(scene->result.host[2], "cpus", json_integer(8));
    json_object_set_new(scene->result.host[2], "gpus",
                        json_pack("[{s:i, s:{s:s}}]", "gpu", 3, "after", "throttling", "hw thermal slowdown"));
    json_object_set_new(scene->result.host[2], "affinity",
                        json_pack("{s:[{s:s, s:i}], s:[{s:s, s:i}]}", "rails", "rail", "eth0", "numa_node", 0,
                                  "threads", "rail", "eth0", "numa_node", 1));
    print(scene, text);
    assert_non_null(strstr(text, "its GPU 3 slowed down: hw thermal slowdown; "));
    assert_non_null(strstr(text, "it has 8 processors, most have 16; "));
    assert_non_null(strstr(text, "threads of its rails ran on another NUMA node than these: 1; "));
    scene_destroy(scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_slow_is_said_once_with_what_is_known),
        cmocka_unit_test(a_straggler_is_slow_when_all_send),
        cmocka_unit_test(over_loopback_nothing_is_slow),
        cmocka_unit_test(rails_are_compared_where_all_serve_all),
        cmocka_unit_test(what_differs_at_the_node_is_said),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
