/*
 * The samples of a run as a table, and the pairs that are odd in it.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/report/figures.h"
#include "bench/report/oddities.h"
#include "report_fixture.h"

static void open_grid(struct report_grid *grid, json_t *result)
{
    struct wf_status status = {0};

    if (report_grid_init(grid, report_run_of(result), &status))
        fail_msg("%s", status.text);
}

static void close_grid(struct report_grid *grid)
{
    struct report_run *run = (struct report_run *)grid->run;

    report_grid_fini(grid);
    report_run_destroy(run);
}

static uint32_t end_of(const struct report_grid *grid, const char *name)
{
    for (uint32_t i = 0; i < grid->run->ends.count; i++)
        if (strcmp(grid->run->ends.list[i], name) == 0)
            return i;
    fail_msg("no endpoint %s", name);
    return 0;
}

/* --- the table --- */

static void pairs_are_in_the_order_of_numbers(void **state)
{
    static const char *const names[] = {"node0:host10", "node0:host9", "node0:host1"};
    json_t *result = report_result();
    struct report_grid grid;

    (void)state;
    for (size_t i = 0; i < 3; i++)
        report_sample(result, names[i], "node1:host0", 1024, 5, 1);
    report_sample(result, "node1:host0", "node0:host9", 1024, 5, 1);
    report_sample(result, "node0:host1", "node0:host9", 1024, 5, 1);
    open_grid(&grid, result);
    assert_int_equal(grid.pair_count, 5);
    assert_string_equal(grid.run->ends.list[grid.pairs[0].src], "node0:host1");
    assert_string_equal(grid.run->ends.list[grid.pairs[1].src], "node0:host9");
    assert_string_equal(grid.run->ends.list[grid.pairs[2].src], "node0:host10");
    /* There, back, and within a node last. */
    char text[64];
    assert_int_equal(grid.way_count, 3);
    assert_string_equal(report_way_name(&grid, 0, text, sizeof text), "node0 > node1");
    assert_string_equal(report_way_name(&grid, 1, text, sizeof text), "node1 > node0");
    assert_string_equal(report_way_name(&grid, 2, text, sizeof text), "node0 > node0");
    assert_int_equal(grid.pairs[2].way, 0);
    assert_int_equal(grid.pairs[3].way, 1);
    assert_int_equal(grid.pairs[4].way, 2);
    for (size_t i = 0; i < grid.pair_count; i++)
        assert_int_equal(report_pair_find(&grid, grid.pairs[i].src, grid.pairs[i].dst), i);
    assert_true(report_pair_find(&grid, end_of(&grid, "node0:host9"), end_of(&grid, "node0:host1")) == SIZE_MAX);
    close_grid(&grid);
}

static void a_cell_is_a_sample_or_none(void **state)
{
    json_t *result = report_result();
    struct report_grid grid;

    (void)state;
    report_sample(result, "node0:a", "node1:a", 1024, 5, 1);
    report_sample(result, "node0:b", "node1:a", 1024, 6, 1);
    report_sample(result, "node0:a", "node1:a", 64, 7, 1);
    report_sample(result, "node0:a", "node1:a", 64, 8, 1); /* the later one counts */
    json_object_set_new(report_sample(result, "node0:a", "node1:a", 64, 9, 1), "mode", json_string("loaded"));
    json_object_set_new(report_sample(result, "node0:a", "node1:a", 64, 10, 1), "test", json_string("latency"));
    open_grid(&grid, result);
    assert_int_equal(grid.pair_count, 2);
    assert_int_equal(grid.set_count, 4); /* isolated 64, 1024, loaded 64, latency 64 */
    assert_true(grid.sets[0].size == 64 && grid.sets[1].size == 1024 && grid.sets[2].mode == REPORT_LOADED);
    assert_true(grid.sets[3].latency);
    assert_true(report_cell(&grid, 0, 0)->p50 == 8 && report_cell(&grid, 1, 0)->p50 == 5);
    assert_true(report_cell(&grid, 1, 1)->p50 == 6 && report_cell(&grid, 2, 0)->p50 == 9);
    assert_true(report_cell(&grid, 3, 0)->p50 == 10);
    assert_null(report_cell(&grid, 0, 1));
    assert_null(report_cell(&grid, 2, 1));
    struct report_set set = grid.sets[0];
    set.mode = REPORT_LOADED;
    assert_int_equal(report_set_find(&grid, &set), 2);
    set.size = 65;
    assert_true(report_set_find(&grid, &set) == SIZE_MAX);
    close_grid(&grid);
}

static void strange_names_are_pairs_too(void **state)
{
    static const char *const names[] = {"a",         "node2147483647:x", "node-1:x", "node0:01",
                                        "node0:1",   "node0:001",        "node0:0a", "node0:1.10",
                                        "node0:1.9", "node0:",           "node0:00", "node0:0"};
    size_t count = sizeof names / sizeof names[0];
    json_t *result = report_result();
    struct report_grid grid;

    (void)state;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < count; k++)
            report_sample(result, names[i], names[k], 1, 5, 1);
    open_grid(&grid, result);
    assert_int_equal(grid.pair_count, count * count);
    for (size_t i = 0; i < grid.pair_count; i++)
        assert_non_null(report_cell(&grid, 0, i));
    close_grid(&grid);
}

static void of_many_nodes_there_are_pairs_between_and_within(void **state)
{
    json_t *result = report_result();
    struct report_grid grid;
    char name[32];

    (void)state;
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "node%d:a", i);
        report_sample(result, name, "node39:a", 1, 5, 1);
    }
    open_grid(&grid, result);
    assert_true(grid.many);
    assert_int_equal(grid.pair_count, 40);
    assert_int_equal(grid.way_count, 2);
    assert_string_equal(report_way_name(&grid, 0, name, sizeof name), "between nodes");
    assert_string_equal(report_way_name(&grid, 1, name, sizeof name), "within nodes");
    for (size_t i = 0; i < grid.pair_count; i++) {
        assert_non_null(report_cell(&grid, 0, i));
        assert_int_equal(report_pair_find(&grid, grid.pairs[i].src, grid.pairs[i].dst), i);
    }
    close_grid(&grid);
}

/* --- what is odd --- */

#define SIDE 4

/* A mesh of hosts there and back, whose rates differ by a little that is no chance; `factor` is a pair's. */
static json_t *mesh(double (*factor)(int way, int src, int dst), const char *mode)
{
    json_t *result = report_result();
    char src[32], dst[32];

    for (int size = 0; size < 4; size++)
        for (int way = 0; way < 2; way++)
            for (int i = 0; i < SIDE; i++)
                for (int k = 0; k < SIDE; k++) {
                    snprintf(src, sizeof src, "node%d:host%d", way, i);
                    snprintf(dst, sizeof dst, "node%d:host%d", 1 - way, k);
                    double wobble = 1 + 0.01 * ((i * 7 + k * 5 + size * 3 + way) % 11 - 5) / 5;
                    json_t *sample =
                        report_sample(result, src, dst, (1 << 18) << 2 * size, 50, 5 * wobble * factor(way, i, k));
                    json_object_set_new(sample, "mode", json_string(mode));
                }
    return result;
}

static double healthy(int way, int src, int dst)
{
    (void)way, (void)src, (void)dst;
    return 1;
}

static double a_pair(int way, int src, int dst)
{
    return way == 0 && src == 1 && dst == 2 ? 0.8 : 1;
}

static double a_pair_both_ways(int way, int src, int dst)
{
    return (way == 0 && src == 1 && dst == 2) || (way == 1 && src == 2 && dst == 1) ? 0.8 : 1;
}

static double a_sender(int way, int src, int dst)
{
    (void)dst;
    return way == 1 && src == 3 ? 0.7 : 1;
}

static double a_receiver(int way, int src, int dst)
{
    (void)src;
    return way == 0 && dst == 0 ? 0.7 : 1;
}

static struct report_oddities odd; /* large */

static void find(struct report_grid *grid, json_t *result)
{
    struct wf_status status = {0};

    open_grid(grid, result);
    assert_int_equal(report_oddities_find(grid, &odd, &status), 0);
}

static const char *word_on(const struct report_grid *grid, size_t set, const char *src, const char *dst)
{
    return report_oddity_of(&odd, grid, set, report_pair_find(grid, end_of(grid, src), end_of(grid, dst)));
}

static void in_a_healthy_mesh_nothing_is(void **state)
{
    struct report_grid grid;

    (void)state;
    find(&grid, mesh(healthy, "isolated"));
    assert_int_equal(odd.count, 0);
    for (size_t pair = 0; pair < grid.pair_count; pair++)
        assert_null(report_oddity_of(&odd, &grid, 0, pair));
    close_grid(&grid);
}

static void a_slow_pair_is_named_with_its_way(void **state)
{
    struct report_grid grid;

    (void)state;
    find(&grid, mesh(a_pair, "isolated"));
    assert_int_equal(odd.count, 1);
    assert_int_equal(odd.list[0].odd.kind, BENCH_ODD_PAIR);
    assert_int_equal(odd.list[0].odd.src, end_of(&grid, "node0:host1"));
    assert_int_equal(odd.list[0].odd.dst, end_of(&grid, "node1:host2"));
    assert_true(fabs(odd.list[0].odd.of_peers - 0.8) < 0.02);
    assert_int_equal(odd.list[0].size, 1 << 24);
    assert_string_equal(word_on(&grid, 0, "node0:host1", "node1:host2"), "slow one way");
    assert_null(word_on(&grid, 0, "node1:host2", "node0:host1"));
    assert_null(word_on(&grid, 0, "node0:host1", "node1:host1"));
    close_grid(&grid);
    find(&grid, mesh(a_pair_both_ways, "isolated"));
    assert_int_equal(odd.count, 2);
    assert_string_equal(word_on(&grid, 0, "node0:host1", "node1:host2"), "slow");
    assert_string_equal(word_on(&grid, 0, "node1:host2", "node0:host1"), "slow");
    close_grid(&grid);
}

static void an_endpoint_marks_all_its_pairs_of_that_way(void **state)
{
    struct report_grid grid;

    (void)state;
    find(&grid, mesh(a_sender, "isolated"));
    assert_int_equal(odd.count, 1);
    assert_int_equal(odd.list[0].odd.kind, BENCH_ODD_SENDER);
    assert_int_equal(odd.list[0].odd.src, end_of(&grid, "node1:host3"));
    assert_true(odd.list[0].odd.dst == UINT32_MAX);
    assert_non_null(word_on(&grid, 0, "node1:host3", "node0:host0"));
    assert_non_null(word_on(&grid, 3, "node1:host3", "node0:host3"));
    assert_null(word_on(&grid, 0, "node0:host0", "node1:host3"));
    close_grid(&grid);
    find(&grid, mesh(a_receiver, "loaded"));
    assert_int_equal(odd.count, 1);
    assert_int_equal(odd.list[0].odd.kind, BENCH_ODD_RECEIVER);
    assert_int_equal(odd.list[0].mode, REPORT_LOADED);
    assert_int_equal(odd.list[0].odd.dst, end_of(&grid, "node1:host0"));
    assert_non_null(word_on(&grid, 0, "node0:host3", "node1:host0"));
    assert_null(word_on(&grid, 0, "node0:host3", "node1:host1"));
    close_grid(&grid);
}

/* The endpoints of node0 become GPUs. */
static void give_gpus(json_t *result)
{
    json_t *sample;
    size_t index;
    char name[32];

    json_array_foreach(json_object_get(result, "samples"), index, sample)
    {
        bool sends = strncmp(json_string_value(json_object_get(sample, "src")), "node0:", 6) == 0;
        const char *end = sends ? "src" : "dst";
        snprintf(name, sizeof name, "node0:gpu%s",
                 json_string_value(json_object_get(sample, end)) + strlen("node0:host"));
        json_object_set_new(sample, end, json_string(name));
    }
}

static void between_host_memory_over_loopback_no_link_is_slow(void **state)
{
    struct report_grid grid;

    (void)state;
    for (int gpus = 0; gpus < 2; gpus++) {
        json_t *result = mesh(a_pair, "isolated");
        json_object_set_new(result, "loopback", json_true());
        if (gpus)
            give_gpus(result);
        find(&grid, result);
        assert_int_equal(odd.count, gpus);
        close_grid(&grid);
    }
}

/* Of few pairs among many endpoints a cube would take all memory. */
static void a_diagonal_is_no_cube(void **state)
{
    json_t *result = report_result();
    struct report_grid grid;
    char src[32], dst[32];

    (void)state;
    for (int i = 0; i < 6000; i++) {
        snprintf(src, sizeof src, "node0:host%d", i);
        snprintf(dst, sizeof dst, "node1:host%d", i);
        report_sample(result, src, dst, 1024, 5, 1);
    }
    find(&grid, result);
    assert_int_equal(grid.pair_count, 6000);
    assert_int_equal(odd.count, 0);
    close_grid(&grid);
}

/* --- nodes --- */

/* Four nodes with an endpoint each, of which node 3's second rail has half of its rate. */
static json_t *four_nodes(void)
{
    json_t *result = report_result();
    char src[32], dst[32];

    for (int size = 0; size < 3; size++)
        for (int link = 0; link < 16; link++) {
            double wobble = 1 + 0.01 * ((link * 7 + size * 3) % 11 - 5) / 5,
                   part = link / 4 == 3 || link % 4 == 3 ? 0.5 : 1;
            if (link / 4 == link % 4)
                continue;
            snprintf(src, sizeof src, "node%d:host0", link / 4);
            snprintf(dst, sizeof dst, "node%d:host0", link % 4);
            json_t *sample = report_sample(result, src, dst, (1 << 20) << size, 50, 5 * wobble * (1 + part) / 2);
            json_object_set_new(sample, "rails",
                                json_pack("[{s:s, s:f}, {s:s, s:f}]", "name", "eth0", "bytes", 1e9 * wobble, "name",
                                          "eth1", "bytes", 1e9 * part));
        }
    return result;
}

static void a_map_has_the_nodes_in_their_order(void **state)
{
    struct report_figures figures = {0};
    struct wf_status status = {0};
    struct report_grid grid;
    size_t marked = 0, of_rail = 0;

    (void)state;
    find(&grid, four_nodes());
    assert_int_equal(odd.nodes.count, 2);
    assert_string_equal(odd.nodes.list[0].rail, "eth1");
    assert_true(odd.nodes.list[0].slow.odd.kind == BENCH_ODD_NODE && odd.nodes.list[0].slow.odd.src == 3);
    assert_string_equal(odd.nodes.list[1].rail, "");
    assert_string_equal(odd.nodes.list[1].cause, "its rail eth1 is slow");
    assert_int_equal(report_nodes(&figures, &grid, &odd, &status), 0);
    const struct report_figure *map = report_figure_named(&figures, "nodes");
    assert_non_null(map);
    assert_int_equal(map->rows, 12 * 3 + 12 * 2); /* all sizes of all rails, and the largest of each */
    for (int node = 0; node < 4; node++)
        assert_int_equal(map->columns[report_column_named(map, "destination")].texts[node][4], '0' + node);
    for (size_t row = 0; row < map->rows; row++) {
        bool is_rail = strcmp(report_cell_named(map, "rails", row), "eth1") == 0;
        marked += report_cell_named(map, "remark", row)[0] != '\0';
        of_rail += is_rail;
        if (is_rail && strcmp(report_cell_named(map, "source", row), "node3") == 0) {
            assert_string_equal(report_cell_named(map, "remark", row), "slow node");
            assert_true(fabs(report_number_named(map, "rate", row) - 1.25) < 0.1);
        }
    }
    assert_int_equal(of_rail, 12);
    assert_int_equal(marked, 6 * 3 + 6);
    report_figures_fini(&figures);
    close_grid(&grid);
}

static void two_nodes_have_no_map(void **state)
{
    struct report_figures figures = {0};
    struct wf_status status = {0};
    struct report_grid grid;

    (void)state;
    find(&grid, mesh(healthy, "isolated"));
    assert_int_equal(odd.nodes.count, 0);
    assert_int_equal(report_nodes(&figures, &grid, &odd, &status), 0);
    assert_null(report_figure_named(&figures, "nodes"));
    report_figures_fini(&figures);
    close_grid(&grid);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_are_in_the_order_of_numbers),
        cmocka_unit_test(a_cell_is_a_sample_or_none),
        cmocka_unit_test(strange_names_are_pairs_too),
        cmocka_unit_test(of_many_nodes_there_are_pairs_between_and_within),
        cmocka_unit_test(in_a_healthy_mesh_nothing_is),
        cmocka_unit_test(a_slow_pair_is_named_with_its_way),
        cmocka_unit_test(an_endpoint_marks_all_its_pairs_of_that_way),
        cmocka_unit_test(between_host_memory_over_loopback_no_link_is_slow),
        cmocka_unit_test(a_diagonal_is_no_cube),
        cmocka_unit_test(a_map_has_the_nodes_in_their_order),
        cmocka_unit_test(two_nodes_have_no_map),
    };

    return cmocka_run_group_tests(tests, report_folder_setup, report_folder_teardown);
}
