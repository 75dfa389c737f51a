/* When a backend of weft collective is said to be far too slow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "bench/collective/far_below.h"

#define RANKS 4
#define MIB (UINT64_C(1) << 20)

/* Weft and Gloo with an all-reduce of 64 MiB among four ranks, whose rails allow each of them 12.5 GB/s. */
struct world {
    struct coll_found found;
    struct coll_sample samples[2];
    double means[2]; /* microseconds */
    char text[512];
};

static void put_run(struct world *world, const char *backend, uint32_t ranks, double line)
{
    json_t *facts = json_pack("{s:s}", "library", "any");

    if (line > 0)
        json_object_set_new(facts, "line_gb_per_s", json_real(line));
    json_array_append_new(world->found.runs,
                          json_pack("{s:s, s:I, s:o}", "backend", backend, "ranks", (json_int_t)ranks, "facts", facts));
}

static void make(struct world *world)
{
    static const char *const names[] = {"weft", "gloo"};

    memset(world, 0, sizeof *world);
    world->found.runs = json_array();
    world->found.samples = world->samples;
    world->found.count = 2;
    for (int i = 0; i < 2; i++) {
        const struct coll_backend *backend = coll_backend_find(names[i]);
        world->samples[i] = (struct coll_sample){.backend = backend,
                                                 .way = &backend->ways[0],
                                                 .ranks = RANKS,
                                                 .op = BENCH_ALL_REDUCE,
                                                 .size = 64 * MIB,
                                                 .rounds = 1,
                                                 .means = &world->means[i]};
        world->means[i] = 1e4; /* 10 GB/s of bus bandwidth */
        put_run(world, names[i], RANKS, i == 0 ? 12.5 : 0);
    }
}

static const char *said(struct world *world, const char *backend, uint32_t ranks)
{
    return coll_far_below(&world->found, coll_backend_find(backend), ranks, world->text, sizeof world->text);
}

static void only_far_below(void **state)
{
    struct world world;

    (void)state;
    make(&world);
    assert_string_equal(said(&world, "gloo", RANKS), "");
    world.means[1] = 8e4; /* 1.26 GB/s: a tenth, and a little more */
    assert_string_equal(said(&world, "gloo", RANKS), "");
    world.means[1] = 1e5;
    assert_string_equal(said(&world, "gloo", RANKS),
                        "far below what the rails allow (12.50 GB/s for each rank): gloo, 4 ranks, 1.007 GB/s at most "
                        "(all_reduce, 67108864 bytes): Gloo copies through host memory and few streams: is NCCL or "
                        "Weft meant?");
    assert_string_equal(said(&world, "weft", RANKS), "");
    world.means[0] = 1e5;
    assert_non_null(strstr(said(&world, "weft", RANKS), "bytes): 'weft doctor' examines the path"));
    json_decref(world.found.runs);
}

static void only_of_much(void **state)
{
    struct world world;

    (void)state;
    make(&world);
    world.means[1] = 1e6;
    world.samples[1].size = 16 * MIB;
    assert_string_not_equal(said(&world, "gloo", RANKS), "");
    world.samples[1].size = 16 * MIB - 4;
    assert_string_equal(said(&world, "gloo", RANKS), "");
    json_decref(world.found.runs);
}

static void only_where_the_line_rate_is_known(void **state)
{
    struct world world;

    (void)state;
    make(&world);
    world.means[1] = 1e6;
    json_array_clear(world.found.runs);
    put_run(&world, "weft", RANKS, 0);
    put_run(&world, "gloo", RANKS, 0);
    assert_string_equal(said(&world, "gloo", RANKS), "");
    put_run(&world, "weft", RANKS + 1, 12.5); /* of other ranks, which may share their rails otherwise */
    assert_string_equal(said(&world, "gloo", RANKS), "");
    put_run(&world, "weft", RANKS, 12.5);
    assert_string_not_equal(said(&world, "gloo", RANKS), "");
    assert_string_equal(said(&world, "gloo", RANKS + 1), "");
    json_decref(world.found.runs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_far_below),
        cmocka_unit_test(only_of_much),
        cmocka_unit_test(only_where_the_line_rate_is_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
