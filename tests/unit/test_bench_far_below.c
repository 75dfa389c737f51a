/* When a run is said to be far too slow, and what is said to be the cause. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "bench/backends/backend.h"
#include "bench/result/far_below.h"

static const struct bench_backend_ops weft = {.name = "weft", .moves_data = true};
static const struct bench_backend_ops nccl = {.name = "nccl", .moves_data = true};
static const struct bench_plan plan = {.pair_count = 4};

/* Two nodes with two rails each, of 100 Gbit/s. */
struct world {
    struct bench_result result;
    json_t *rail_totals[2], *fallbacks[2]; /* its lists */
    struct bench_sample sample;
    struct bench_set set;
    struct bench_way way;
    char text[512];
};

static json_t *rail(const char *name, int mtu, json_int_t bytes)
{
    return json_pack("{s:s, s:i, s:i, s:I}", "name", name, "speed_mbit", 100000, "mtu", mtu, "bytes", bytes);
}

static void make(struct world *world)
{
    memset(world, 0, sizeof *world);
    world->sample = (struct bench_sample){.backend = &weft, .mode = BENCH_LOADED, .size = 64 << 20, .inflight = 1};
    world->set = (struct bench_set){.backend = &weft, .mode = BENCH_LOADED, .size = 64 << 20};
    world->way = (struct bench_way){0, 1};
    world->result.plan = &plan;
    world->result.samples = &world->sample;
    world->result.sample_count = 1;
    world->result.node_count = 2;
    world->result.rail_totals = world->rail_totals;
    world->result.fallbacks = world->fallbacks;
    for (int node = 0; node < 2; node++) {
        world->result.rail_totals[node] = json_pack("[o, o]", rail("eth0", 9000, 500), rail("eth1", 9000, 500));
        world->result.fallbacks[node] = json_array();
    }
}

static void unmake(struct world *world)
{
    for (int node = 0; node < 2; node++) {
        json_decref(world->result.rail_totals[node]);
        json_decref(world->result.fallbacks[node]);
    }
}

/* With a rate and a line rate in GB/s. */
static const char *said(struct world *world, double rate, double line)
{
    return bench_far_below_text(&world->result, &world->set, &world->way, rate, line, world->text, sizeof world->text);
}

static void only_far_below(void **state)
{
    struct world world;

    (void)state;
    make(&world);
    assert_string_equal(said(&world, 25, 25), "");
    assert_string_equal(said(&world, 2.5, 25), ""); /* the bound itself */
    assert_non_null(strstr(said(&world, 2.49, 25), "none of the usual causes"));
    assert_non_null(strstr(said(&world, 0, 25), "none of the usual causes"));
    assert_string_equal(said(&world, 0.1, -1), ""); /* not known */
    assert_string_equal(said(&world, -1, 25), "");  /* nothing was moved */
    unmake(&world);
}

/* A message at a time fills no rail. */
static void only_of_much(void **state)
{
    struct world world;

    (void)state;
    make(&world);
    world.set.size = world.sample.size = 4 << 20; /* four pairs at a time */
    assert_string_not_equal(said(&world, 0.1, 25), "");
    world.set.mode = world.sample.mode = BENCH_ISOLATED;
    assert_string_equal(said(&world, 0.1, 25), "");
    world.sample.inflight = 4;
    assert_string_not_equal(said(&world, 0.1, 25), "");
    world.result.sample_count = 0;
    assert_string_equal(said(&world, 0.1, 25), "");
    unmake(&world);
}

static void causes_are_named(void **state)
{
    struct world world;

    (void)state;
    make(&world);
    json_object_set_new(json_array_get(world.result.rail_totals[1], 1), "bytes", json_integer(10));
    assert_string_equal(said(&world, 0.1, 25), "one interface of 2 carries nearly everything (eth0 of node1)");
    json_object_set_new(json_array_get(world.result.rail_totals[0], 1), "mtu", json_integer(1500));
    assert_non_null(strstr(said(&world, 0.1, 25), "the MTU of eth1 of node0 is 1500"));
    assert_non_null(strstr(world.text, "; one interface of 2"));
    json_array_append_new(world.result.fallbacks[1],
                          json_string("cuda: staging memory of GPU 0 is not pinned, copies are slower: no"));
    assert_non_null(strstr(said(&world, 0.1, 25), "staging memory of node1 is not pinned"));
    world.set.backend = world.sample.backend = &nccl;
    assert_ptr_equal(strstr(said(&world, 0.1, 25), "NCCL"), world.text);
    unmake(&world);
}

/* 1500 is enough for a slow card. */
static void a_slow_card_has_a_small_mtu(void **state)
{
    struct world world;
    json_t *first;

    (void)state;
    make(&world);
    first = json_array_get(world.result.rail_totals[0], 0);
    json_object_set_new(first, "mtu", json_integer(1500));
    json_object_set_new(first, "speed_mbit", json_integer(1000));
    assert_non_null(strstr(said(&world, 0.1, 25), "none of the usual causes"));
    unmake(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_far_below),
        cmocka_unit_test(only_of_much),
        cmocka_unit_test(causes_are_named),
        cmocka_unit_test(a_slow_card_has_a_small_mtu),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
