/*
 * What a report says of a result that has everything a reader could overlook: two groups of pairs, a pair that is slow
 * one way, a processor that others use, and figures that rest on too few messages. The whole text is compared with one
 * that was read by a person: tests/fixtures/report.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "bench/backends/backend.h"
#include "bench/result/expect.h"
#include "bench/result/report.h"
#include "bench/result/spread.h"
#include "bench/words/columns.h"
#include "terminal_fixture.h"
#include "weft.h"

#define ENDPOINTS 4
#define TEXT_MOST 65536

static const struct bench_backend_ops moving = {.name = "weft", .moves_data = true};

/* A result as two nodes with 4 endpoints each leave it. */
struct scene {
    struct wf_config *config;
    struct bench_options options;
    struct bench_plan plan;
    struct bench_pair pairs[2 * ENDPOINTS * ENDPOINTS];
    struct bench_result result;
};

static void set_option(struct scene *scene, enum wf_setting_id id, const char *text)
{
    struct wf_status status = {0};

    assert_int_equal(wf_config_set(scene->config, id, text, WF_ORIGIN_COMMAND, "command line", &status), 0);
}

static void plan_all_pairs(struct bench_plan *plan, struct bench_pair *pairs)
{
    for (uint8_t node = 0; node < 2; node++)
        for (uint32_t src = 0; src < ENDPOINTS; src++)
            for (uint32_t dst = 0; dst < ENDPOINTS; dst++)
                pairs[plan->pair_count++] =
                    (struct bench_pair){.src = src, .dst = dst, .src_node = node, .dst_node = (uint16_t)(1 - node)};
    plan->pairs = pairs;
}

static struct scene *scene_create(void)
{
    struct scene *scene = calloc(1, sizeof *scene);

    assert_non_null(scene);
    scene->config = malloc(sizeof *scene->config);
    assert_non_null(scene->config);
    wf_config_init(scene->config);
    scene->options = (struct bench_options){.command = BENCH_MESH, .config = scene->config};
    scene->plan = (struct bench_plan){.command = BENCH_MESH,
                                      .check = BENCH_CHECK_AGAIN,
                                      .node_count = 2,
                                      .endpoints = ENDPOINTS,
                                      .modes = {true, true},
                                      .sizes = {1024, 1 << 20},
                                      .size_count = 2,
                                      .seed = 42,
                                      .group = 1,
                                      .backends = {&moving},
                                      .backend_count = 1};
    plan_all_pairs(&scene->plan, scene->pairs);
    bench_result_init(&scene->result, &scene->options, 0);
    bench_result_stamp(&scene->result, "20250131T120000Z");
    scene->result.plan = &scene->plan;
    return scene;
}

static void scene_destroy(struct scene *scene)
{
    bench_result_fini(&scene->result);
    free(scene->config);
    free(scene);
}

static void add_node(struct bench_result *result, int node, const char *name, int speed_mbit)
{
    result->host[node] =
        json_pack("{s:s, s:s, s:i, s:s}", "name", name, "kernel", "6.8.0", "cpus", 16, "engine", "uring");
    result->fallbacks[node] = json_array();
    result->rail_totals[node] = json_array();
    for (int rail = 0; rail < 2; rail++)
        json_array_append_new(result->rail_totals[node],
                              json_pack("{s:o, s:o, s:o, s:i, s:I, s:I, s:I, s:i, s:i}", "node",
                                        json_sprintf("node%d", node), "name", json_sprintf("eth%d", rail), "speed_mbit",
                                        speed_mbit ? json_integer(speed_mbit) : json_null(), "mtu", 9000, "bytes",
                                        (json_int_t)(3 - rail) * 20000000000, "sent_bytes",
                                        (json_int_t)(3 - rail) * 10000000000, "received_bytes",
                                        (json_int_t)(3 - rail) * 10000000000, "channels", 1, "channels_up", 1));
    result->rails[node] = (struct bench_rail_names){.count = 2, .names = {"eth0", "eth1"}};
}

/* GB/s of a pair: what node1's host3 receives is slow, and so is one pair in the other direction. */
static double rate_of(const struct bench_pair *pair)
{
    double rate = 2.0 + 0.01 * (double)(pair->src + 2 * pair->dst);

    if (pair->dst_node == 1 && pair->dst == 3)
        return rate / 3;
    if (pair->src_node == 1 && pair->src == 1 && pair->dst == 2)
        return rate / 4;
    return rate;
}

static void add_sample(struct scene *scene, enum bench_mode mode, uint64_t size, const struct bench_pair *pair,
                       uint32_t iters)
{
    double rate = rate_of(pair) / (mode == BENCH_LOADED ? 8 : 1), us = (double)size / (rate * 1e3);
    struct bench_sample sample = {.backend = &moving,
                                  .mode = mode,
                                  .pair = *pair,
                                  .size = size,
                                  .iters = iters,
                                  .inflight = 1,
                                  .grouped = size == 1024 ? iters : 1,
                                  .checked = true,
                                  .verified_bytes = size * iters,
                                  .cpu_s_per_gb = 0.4};
    struct wf_status status = {0};

    sample.time = (struct wf_times){us, us, us, us, us, us, us, us, 0};
    assert_int_equal(bench_result_add(&scene->result, &sample, &status), 0);
}

static void add_set(struct scene *scene, enum bench_mode mode, uint64_t size, uint32_t iters)
{
    struct bench_set set = {.backend = &moving, .mode = mode, .size = size, .cpu_s_per_gb = -1};
    struct wf_status status = {0};

    for (uint32_t i = 0; i < scene->plan.pair_count; i++)
        add_sample(scene, mode, size, &scene->pairs[i], iters);
    if (mode == BENCH_LOADED) {
        set.bytes = scene->plan.pair_count * size * iters;
        set.elapsed_ns = (int64_t)set.bytes / 5;
        set.cpu_s_per_gb = 0.4;
    }
    /* node1 has little to do, node0 is full, and mostly of others. */
    struct bench_busy busy[2];
    set.busy = busy;
    set.busy[0] = (struct bench_busy){1, 16, 15.6, 4.1, 1, 0};
    set.busy[1] = (struct bench_busy){1, 16, 3.2, 3.1, 0.6, 0};
    assert_int_equal(bench_result_add_set(&scene->result, &set, &status), 0);
}

static void fill(struct scene *scene, int speed_mbit)
{
    add_node(&scene->result, 0, "alpha", speed_mbit);
    add_node(&scene->result, 1, "beta", speed_mbit);
    for (int mode = 0; mode < BENCH_MODES; mode++) {
        add_set(scene, mode, 1024, 100);
        add_set(scene, mode, 1 << 20, 5);
    }
    scene->result.complete = true;
    scene->result.took_ns = 12345678901;
}

/* --- what is printed --- */

static void print(struct scene *scene, char *text)
{
    FILE *out = tmpfile();

    assert_non_null(out);
    bench_report(&scene->result, out);
    rewind(out);
    text[fread(text, 1, TEXT_MOST - 1, out)] = '\0';
    fclose(out);
}

struct showing {
    struct scene *scene;
    const char *kind; /* of terminal */
};

static void report_to(int terminal, void *context)
{
    struct showing *showing = context;
    FILE *out = fdopen(terminal, "w");

    setenv("TERM", showing->kind, 1);
    unsetenv("COLORTERM");
    unsetenv("NO_COLOR");
    bench_report(&showing->scene->result, out);
    fclose(out);
}

/* On a terminal of this kind and so many columns. */
static void print_on_terminal(struct scene *scene, const char *kind, unsigned short columns, char *text)
{
    terminal_show(columns, report_to, &(struct showing){scene, kind}, text, TEXT_MOST);
}

/* The first line has the version. */
static void assert_as_in_file(const char *text, const char *name)
{
    char path[512], expected[TEXT_MOST], first[64];

    snprintf(first, sizeof first, "weft %s mesh", weft_version());
    assert_memory_equal(text, first, strlen(first));
    text += strlen(first);
    snprintf(path, sizeof path, "%s/%s", REPORT_FIXTURES, name);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    expected[fread(expected, 1, sizeof expected - 1, file)] = '\0';
    fclose(file);
    if (strcmp(text, expected) != 0)
        fprintf(stderr, "%s", text); /* to be read, and then kept */
    assert_string_equal(text, expected);
}

static void assert_fits(const char *text, size_t columns)
{
    while (*text) {
        size_t length = strcspn(text, "\n");
        if (length > columns)
            fail_msg("%zu columns: %.*s", length, (int)length, text);
        text += length + (text[length] != '\0');
    }
}

static void the_whole_text_on_a_pipe(void **state)
{
    struct scene *scene = scene_create();
    char text[TEXT_MOST];

    (void)state;
    fill(scene, 25000);
    set_option(scene, WF_SET_EXPECT, "0.9");
    print(scene, text);
    assert_fits(text, 80);
    assert_as_in_file(text, "mesh_80.txt");
    scene_destroy(scene);
}

static void the_whole_text_on_a_terminal(void **state)
{
    struct scene *scene = scene_create();
    char text[TEXT_MOST];

    (void)state;
    fill(scene, 25000);
    print_on_terminal(scene, "dumb", 120, text);
    assert_fits(text, 120);
    assert_as_in_file(text, "mesh_120.txt");
    scene_destroy(scene);
}

/* Takes the shades out; returns how many there were, or -1 where one has no end or the end of a line in it. */
static int without_shades(char *text)
{
    bool within = false;
    char *to = text;
    int count = 0;

    for (const char *at = text; *at; at++)
        if (*at == '\033') {
            size_t length = strcspn(at, "m");
            if (within != (strncmp(at, "\033[0m", 4) == 0))
                return -1;
            count += !within;
            within = !within;
            at += length;
        } else {
            if (within && *at == '\n')
                return -1;
            *to++ = *at;
        }
    *to = '\0';
    return within ? -1 : count;
}

static void rates_are_shaded_on_a_terminal(void **state)
{
    static const struct {
        const char *kind, *said;
        int shades; /* of two matrices of 32 */
    } rows[] = {{"xterm-256color", ", darker is slower", 64}, {"xterm", ", the slowest in bold", 10}, {"dumb", "", 0}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct scene *scene = scene_create();
        char text[TEXT_MOST], *said;
        fill(scene, 25000);
        print_on_terminal(scene, rows[i].kind, 120, text);
        assert_int_equal(without_shades(text), rows[i].shades);
        while (rows[i].said[0] && (said = strstr(text, rows[i].said)) != NULL)
            memmove(said, said + strlen(rows[i].said), strlen(said + strlen(rows[i].said)) + 1);
        assert_as_in_file(text, "mesh_120.txt");
        scene_destroy(scene);
    }
}

static size_t lines_with(const char *text, const char *words)
{
    size_t count = 0;

    for (; (text = strstr(text, words)) != NULL; text++)
        count++;
    return count;
}

static void the_text_is_as_wide_as_asked_for(void **state)
{
    (void)state;
    for (int columns = 40; columns <= 200; columns++) {
        struct scene *scene = scene_create();
        char text[TEXT_MOST];
        fill(scene, 25000);
        set_option(scene, WF_SET_EXPECT, "0.9");
        scene->result.faults[1] = json_pack("{s:i, s:i}", "resets", 3, "flips", 2);
        json_object_set_new(json_array_get(scene->result.rail_totals[0], 0), "failures", json_integer(3));
        bench_columns_set(columns);
        print(scene, text);
        bench_columns_set(0);
        assert_fits(text, (size_t)columns);
        assert_null(strstr(text, " \n"));
        /* Two matrices of two directions, in one block or in more, and all figures of a row. */
        assert_int_equal(lines_with(text, "\nhost3 "), columns < 7 + 4 * 6 ? 8 : 4);
        assert_int_equal(lines_with(text, "messages/s\n") + lines_with(text, "messages/s "), columns < 110 ? 0 : 2);
        assert_int_equal(lines_with(text, "median"), 4);
        scene_destroy(scene);
    }
}

static void a_row_goes_on_below(void **state)
{
    FILE *out = tmpfile();
    struct bench_row row;
    char text[256];

    (void)state;
    assert_non_null(out);
    bench_columns_set(20);
    for (int i = 0; i < 2; i++) {
        bench_row_begin(&row, out);
        bench_row_put(&row, -8, "%s", i ? "a" : "name");
        bench_row_put(&row, 6, "%s", i ? "1 " : "n ");
        bench_row_put(&row, 7, "%s", i ? "2" : "median");
        bench_row_put(&row, 7, "%s", i ? "3" : "most");
        bench_row_put(&row, 0, "%s", i ? "a long word" : "");
        bench_row_end(&row);
    }
    bench_columns_set(0);
    rewind(out);
    text[fread(text, 1, sizeof text - 1, out)] = '\0';
    fclose(out);
    assert_string_equal(text, "name        n\n"
                              "     median   most\n"
                              "a           1\n"
                              "          2      3\n"
                              "    a long word\n");
}

/* --- single words of it --- */

static void assert_says(const struct scene *scene, const char *words)
{
    char text[TEXT_MOST], flat[TEXT_MOST];
    size_t length = 0;

    print((struct scene *)(uintptr_t)scene, text);
    /* Lines are broken anywhere. */
    for (const char *at = text; *at; at++) {
        bool blank = *at == ' ' || *at == '\n';
        if (!blank || length == 0 || flat[length - 1] != ' ')
            flat[length++] = blank ? ' ' : *at;
    }
    flat[length] = '\0';
    if (!strstr(flat, words))
        fail_msg("nowhere: %s\n%s", words, text);
}

static void loopback_is_no_network(void **state)
{
    struct scene *scene = scene_create();

    (void)state;
    fill(scene, 0);
    scene->result.nearness = BENCH_LOOPBACK;
    assert_says(scene, "loopback: says nothing about a network");
    scene_destroy(scene);
}

static void limits_are_named(void **state)
{
    struct scene *scene = scene_create();

    (void)state;
    fill(scene, 0);
    assert_says(scene, "limited by (loaded, 1M): the processors of node0: 15.6 of 16 busy, 11.5 of them with other");
    for (int i = 0; i < scene->result.set_count; i++)
        scene->result.sets[i].busy[0] = (struct bench_busy){1, 16, 3, 2.9, 0.99, 0};
    scene->result.shown_head = false;
    assert_says(scene, "limited by (loaded, 1M): one processor of node0, which was always busy (of 16, 3.0 were)");
    for (int i = 0; i < scene->result.set_count; i++)
        scene->result.sets[i].busy[1] = (struct bench_busy){1, 16, 3, 2.9, 0.5, 0.25};
    assert_says(scene, "limited by (loaded, 1M): memory: for 25 % of the time somebody on the peer node1 waited");
    scene_destroy(scene);
}

static void full_rails_are_the_limit(void **state)
{
    struct scene *scene = scene_create();

    (void)state;
    fill(scene, 10500); /* two of them carry 2.625 GB/s */
    assert_says(scene, "limited by (loaded, 1M): the rails: 95 % of their line rate from node0 to node1");
    assert_says(scene, "95.2 % of the line rate (loaded, 1M, node0 -> node1)");
    scene_destroy(scene);
}

static void what_is_not_seen_is_said(void **state)
{
    struct scene *scene = scene_create();

    (void)state;
    fill(scene, 0);
    for (int i = 0; i < scene->result.set_count; i++)
        memset(scene->result.sets[i].busy, 0, 2 * sizeof *scene->result.sets[i].busy);
    assert_says(scene, "limited by (loaded, 1M): not known: it was measured for less than 0.2 s");
    scene->result.sets[1].busy[0] = (struct bench_busy){1, 16, 3, 2.9, 0.5, 0};
    assert_says(scene, "limited by (isolated, 1M): one message in flight");
    scene_destroy(scene);
}

static void a_share_is_met_or_not(void **state)
{
    static const struct {
        int speed_mbit;
        const char *share;
        int ready;
        bool met;
    } rows[] = {
        {10500, "0.9", 0, true}, /* 2.5 of 2.625 GB/s each way */
        {10500, "0.95", 0, true},   {10500, "0.96", 0, false}, {25000, "0.9", 0, false},
        {0, "0.9", -EINVAL, false}, {25000, "", 0, true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct scene *scene = scene_create();
        struct wf_status status = {0};
        char text[256];
        fill(scene, rows[i].speed_mbit);
        set_option(scene, WF_SET_EXPECT, rows[i].share);
        assert_int_equal(bench_expect_ready(&scene->result, &status), rows[i].ready);
        assert_int_equal(bench_expect_met(&scene->result, text, sizeof text), rows[i].met);
        assert_int_equal(text[0] != '\0', rows[i].share[0] != '\0');
        scene->result.nearness = BENCH_LOOPBACK;
        assert_int_equal(bench_expect_ready(&scene->result, &status), rows[i].share[0] ? -EINVAL : 0);
        scene_destroy(scene);
    }
}

static void only_ways_with_pairs_are_judged(void **state)
{
    struct scene *scene = scene_create();
    struct wf_status status = {0};
    char text[256];
    uint32_t kept = 0;

    (void)state;
    for (uint32_t i = 0; i < scene->plan.pair_count; i++)
        if (scene->pairs[i].src_node == 0)
            scene->pairs[kept++] = scene->pairs[i];
    scene->plan.pair_count = kept;
    set_option(scene, WF_SET_EXPECT, "0.7");
    assert_false(bench_expect_met(&scene->result, text, sizeof text)); /* no sample yet */
    assert_non_null(strstr(text, "nothing was measured between the nodes: not met"));
    fill(scene, 25000);
    assert_int_equal(bench_expect_ready(&scene->result, &status), 0);
    assert_true(bench_expect_met(&scene->result, text, sizeof text));
    assert_non_null(strstr(text, "node0 -> node1"));
    assert_null(strstr(text, "node1 -> node0"));
    scene_destroy(scene);
}

/* A direction that is planned counts, whatever the other node has told of it. */
static void a_way_without_times_does_not_meet_it(void **state)
{
    struct scene *scene = scene_create();
    char text[256];

    (void)state;
    add_node(&scene->result, 0, "alpha", 10500);
    add_node(&scene->result, 1, "beta", 10500);
    add_set(scene, BENCH_ISOLATED, 1 << 20, 5);
    set_option(scene, WF_SET_EXPECT, "0.5");
    assert_true(bench_expect_met(&scene->result, text, sizeof text));
    for (size_t i = 0; i < scene->result.sample_count; i++)
        if (scene->result.samples[i].pair.dst_node == 1)
            scene->result.samples[i].time.p50 = -1;
    assert_false(bench_expect_met(&scene->result, text, sizeof text));
    assert_non_null(strstr(text, "node0 -> node1 has no figure, node1 -> node0 reached"));
    scene_destroy(scene);
}

static void a_share_of_nothing_is_refused(void **state)
{
    static const struct bench_backend_ops still = {.name = "null"};
    struct scene *scene = scene_create();
    struct wf_status status = {0};

    (void)state;
    fill(scene, 25000);
    set_option(scene, WF_SET_EXPECT, "0.9");
    scene->plan.backends[0] = &still;
    assert_int_equal(bench_expect_ready(&scene->result, &status), -EINVAL);
    assert_non_null(strstr(status.text, "this run moves none"));
    scene->plan.backends[0] = &moving;
    scene->plan.pair_count = 0;
    assert_int_equal(bench_expect_ready(&scene->result, &status), -EINVAL);
    scene_destroy(scene);
}

/* The pair's messages take so many times as long. */
static void slow_down(struct scene *scene, enum bench_mode mode, int src_node, uint32_t src, uint32_t dst, double by)
{
    for (size_t i = 0; i < scene->result.sample_count; i++) {
        struct bench_sample *sample = &scene->result.samples[i];
        if (sample->mode == mode && sample->pair.src_node == src_node && sample->pair.src == src &&
            sample->pair.dst == dst)
            sample->time.p50 *= by;
    }
}

static void odd_links_are_named_once(void **state)
{
    struct scene *scene = scene_create();

    (void)state;
    fill(scene, 0);
    slow_down(scene, BENCH_ISOLATED, 0, 0, 0, 2.5);
    slow_down(scene, BENCH_ISOLATED, 1, 0, 0, 2.5);
    slow_down(scene, BENCH_LOADED, 1, 2, 1, 2.5);
    assert_says(scene, "slow: node0:host0 -> node1:host0 has 0.800 GB/s, 39 % of its peers, and 0.800 back (isolated)");
    assert_says(scene, "slow: node1:host0 -> node0:host0 has 0.800 GB/s, 39 % of its peers, and 0.800 back (isolated)");
    assert_says(scene,
                "asymmetric: node1:host2 -> node0:host1 has 0.102 GB/s, 40 % of its peers, and 0.256 back (loaded)");
    scene_destroy(scene);
}

/* What is an endpoint's isolated is not said of its pairs again. */
static void a_named_endpoint_covers_its_pairs(void **state)
{
    struct scene *scene = scene_create();
    char text[TEXT_MOST];

    (void)state;
    fill(scene, 0);
    for (uint32_t src = 0; src < 3; src++)
        slow_down(scene, BENCH_LOADED, 0, src, 3, 1.0 / 3); /* one of four is left: no endpoint there */
    print(scene, text);
    assert_null(strstr(text, "node0:host3 -> node1:host3"));
    assert_non_null(strstr(text, "what node1:host3 receives"));
    scene_destroy(scene);
}

/* All pairs of a loopback take turns at the same processors, unless GPUs and what they hang on are between. */
static void between_host_memory_over_loopback_no_link_is_slow(void **state)
{
    static const struct {
        enum bench_memory memory[2];
        bool named;
    } rows[] = {
        {{BENCH_HOST, BENCH_HOST}, false},
        {{BENCH_CUDA, BENCH_CUDA}, true},
        {{BENCH_HOST, BENCH_CUDA}, true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct scene *scene = scene_create();
        char text[TEXT_MOST];
        fill(scene, 0);
        for (int node = 0; node < 2; node++)
            scene->plan.nodes[node].memory = rows[i].memory[node];
        scene->result.nearness = BENCH_LOOPBACK;
        print(scene, text);
        assert_int_equal(strstr(text, "asymmetric: node1:host1") != NULL, rows[i].named);
        assert_int_equal(strstr(text, "asymmetric: what node1:host3 receives") != NULL, rows[i].named);
        scene_destroy(scene);
    }
}

/* --- figures --- */

static void groups_are_far_apart_and_close_together(void **state)
{
    static const struct {
        double rates[8];
        size_t count, low_count; /* 0: no groups */
    } rows[] = {
        {{1, 1.01, 1.02, 2, 2.01, 2.02, 2.03, 2.04}, 8, 3},
        {{2.04, 1, 2.03, 1.01, 2.02, 1.02, 2.01, 2}, 8, 3}, /* in any order */
        {{1, 1.01, 1.02, 1.2, 1.21, 1.22}, 6, 0},           /* too near */
        {{1, 2, 2.01, 2.02, 2.03, 2.04}, 6, 0},             /* one pair is no group */
        {{1, 1.2, 1.4, 1.6, 1.8, 2, 2.2, 2.4}, 8, 0},       /* an even spread */
        {{1, 1.01, 2, 2.01}, 4, 0},                         /* too few */
        {{1, 1, 1, 1, 1, 1}, 6, 0},
        {{0}, 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        double rates[8];
        struct bench_groups groups;
        memcpy(rates, rows[i].rates, sizeof rates);
        bool found = bench_groups_find(rates, rows[i].count, &groups);
        assert_int_equal(found ? groups.low_count : 0, rows[i].low_count);
        if (found)
            assert_int_equal(groups.low_count + groups.high_count, rows[i].count);
    }
}

static void one_pair_has_the_spread_of_its_messages(void **state)
{
    struct scene *scene = scene_create();
    struct bench_set set = {.backend = &moving, .mode = BENCH_ISOLATED, .size = 1000};
    struct bench_sample sample = {.backend = &moving, .size = 1000, .iters = 20, .grouped = 1, .pair = {.dst_node = 1}};
    struct bench_spread spread;
    struct wf_status status = {0};
    double room[4];

    (void)state;
    sample.time = (struct wf_times){.min = 1, .p10 = 2, .p50 = 4, .p90 = 5, .max = 10, .mean = 4, .cv = 0.5};
    assert_int_equal(bench_result_add(&scene->result, &sample, &status), 0);
    bench_spread_of(&scene->result, &set, &bench_ways[0], room, &spread);
    assert_true(spread.by_message);
    assert_float_equal(spread.min, 0.1, 1e-9);
    assert_float_equal(spread.p10, 0.2, 1e-9);
    assert_float_equal(spread.median, 0.25, 1e-9);
    assert_float_equal(spread.p90, 0.5, 1e-9);
    assert_float_equal(spread.cv, 0.5, 1e-9);
    bench_spread_of(&scene->result, &set, &bench_ways[1], room, &spread);
    assert_int_equal(spread.pairs, 0);
    scene_destroy(scene);
}

static void numbers_have_three_digits(void **state)
{
    static const struct {
        double value;
        const char *time, *rate, *count;
    } rows[] = {
        {0, "0.00 us", "0.0000", "0"},        {0.52, "0.52 us", "0.520", "1"},
        {1.234, "1.23 us", "1.23", "1"},      {12.34, "12.3 us", "12.3", "12"},
        {123.4, "123 us", "123", "123"},      {999.9, "1.00 ms", "1000", "1.00k"},
        {12345, "12.3 ms", "12345", "12.3k"}, {1234567, "1.23 s", "1234567", "1.23M"},
        {0.00001, "0.00 us", "1e-05", "0"},   {0.0123, "0.01 us", "0.0123", "0"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[32];
        assert_string_equal(bench_time_text(rows[i].value, text, sizeof text), rows[i].time);
        assert_string_equal(bench_rate_text(rows[i].value, text, sizeof text), rows[i].rate);
        assert_string_equal(bench_count_text(rows[i].value, text, sizeof text), rows[i].count);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_whole_text_on_a_pipe),
        cmocka_unit_test(the_whole_text_on_a_terminal),
        cmocka_unit_test(rates_are_shaded_on_a_terminal),
        cmocka_unit_test(the_text_is_as_wide_as_asked_for),
        cmocka_unit_test(a_row_goes_on_below),
        cmocka_unit_test(loopback_is_no_network),
        cmocka_unit_test(limits_are_named),
        cmocka_unit_test(full_rails_are_the_limit),
        cmocka_unit_test(what_is_not_seen_is_said),
        cmocka_unit_test(a_share_is_met_or_not),
        cmocka_unit_test(only_ways_with_pairs_are_judged),
        cmocka_unit_test(a_way_without_times_does_not_meet_it),
        cmocka_unit_test(a_share_of_nothing_is_refused),
        cmocka_unit_test(odd_links_are_named_once),
        cmocka_unit_test(a_named_endpoint_covers_its_pairs),
        cmocka_unit_test(between_host_memory_over_loopback_no_link_is_slow),
        cmocka_unit_test(groups_are_far_apart_and_close_together),
        cmocka_unit_test(one_pair_has_the_spread_of_its_messages),
        cmocka_unit_test(numbers_have_three_digits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
