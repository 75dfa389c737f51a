/*
 * The rule for slow nodes, links and rails, on meshes that are made up with noise from a seed: what differs by 15 % is
 * named, alone and once, and of healthy meshes nothing.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/result/slow.h"
#include "noise.h"

#ifdef __SANITIZE_ADDRESS__ /* ten times slower */
#define SEEDS 4
#else
#define SEEDS 20
#endif
#define RATE 10.0
#define RAILS_MOST 8
#define FOUND 8

/* One mesh: how large, how noisy, and what of it is slow. */
struct scene {
    uint32_t nodes, endpoints, rails, sizes;
    double noise;       /* standard deviation of a pair's rate at a size, in parts of it */
    double share_noise; /* of what a rail carries beside the others */
    bool tails;
    double (*part)(uint32_t rail, uint32_t src, uint32_t dst, double by); /* of a rail's rate; NULL: all of it */
    double by;
};

struct mesh {
    struct bench_readings readings;
    struct bench_carried *carried;
    double bytes[8];
};

static void make(struct mesh *mesh, const struct scene *scene, uint64_t seed)
{
    uint32_t links = scene->nodes * scene->nodes, pairs = scene->endpoints * scene->endpoints;
    size_t room = (size_t)links * pairs * scene->sizes;
    uint64_t random = seed;
    struct bench_reading *next = calloc(room, sizeof *next);

    *mesh = (struct mesh){.readings = {.list = next,
                                       .nodes = scene->nodes,
                                       .endpoints = scene->nodes * scene->endpoints,
                                       .sizes = scene->sizes,
                                       .rails = scene->rails,
                                       .rails_compare = true},
                          .carried = calloc(room * scene->rails, sizeof *mesh->carried)};
    assert_true(next && mesh->carried);
    struct bench_carried *carried = mesh->carried;
    for (uint32_t i = 0; i < (uint32_t)room; i++) {
        uint32_t size = i / (links * pairs), src = i / pairs % links / scene->nodes, dst = i / pairs % scene->nodes;
        double rate = 0, parts[RAILS_MOST];
        if (src == dst)
            continue;
        for (uint32_t rail = 0; rail < scene->rails; rail++) {
            parts[rail] = scene->part ? scene->part(rail, src, dst, scene->by) : 1;
            rate += parts[rail] * RATE / scene->rails;
            parts[rail] *= fmax(0.05, 1 + scene->share_noise * noise(&random, scene->tails));
        }
        rate *= fmax(0.05, 1 + scene->noise * noise(&random, scene->tails));
        *next++ = (struct bench_reading){.src_node = src,
                                         .dst_node = dst,
                                         .src = src * scene->endpoints + i / scene->endpoints % scene->endpoints,
                                         .dst = dst * scene->endpoints + i % scene->endpoints,
                                         .size = size,
                                         .rate = rate,
                                         .carried = carried,
                                         .carried_count = scene->rails};
        for (uint32_t rail = 0; rail < scene->rails; rail++)
            *carried++ = (struct bench_carried){rail, 1e9 * parts[rail]};
    }
    mesh->readings.count = (size_t)(next - mesh->readings.list);
    for (uint32_t size = 0; size < scene->sizes; size++)
        mesh->bytes[size] = (double)(1 << (20 + size));
    mesh->readings.bytes = mesh->bytes;
}

static void forget(struct mesh *mesh)
{
    free(mesh->readings.list);
    free(mesh->carried);
}

/* --- what is slow --- */

#define ODD_NODE 1u /* the slow node, */
#define TO_NODE 0u  /* where a slow link leads from it, */
#define ODD_RAIL 1u /* and the slow rail */

static double of_node(uint32_t rail, uint32_t src, uint32_t dst, double by)
{
    (void)rail;
    return src == ODD_NODE || dst == ODD_NODE ? by : 1;
}

static double of_sender(uint32_t rail, uint32_t src, uint32_t dst, double by)
{
    (void)rail, (void)dst;
    return src == ODD_NODE ? by : 1;
}

static double of_receiver(uint32_t rail, uint32_t src, uint32_t dst, double by)
{
    (void)rail, (void)src;
    return dst == ODD_NODE ? by : 1;
}

static double of_link(uint32_t rail, uint32_t src, uint32_t dst, double by)
{
    (void)rail;
    return src == ODD_NODE && dst == TO_NODE ? by : 1;
}

static double of_rail(uint32_t rail, uint32_t src, uint32_t dst, double by)
{
    (void)src, (void)dst;
    return rail == ODD_RAIL ? by : 1;
}

static double of_rail_at_node(uint32_t rail, uint32_t src, uint32_t dst, double by)
{
    return rail == ODD_RAIL ? of_node(rail, src, dst, by) : 1;
}

static double of_rail_of_link(uint32_t rail, uint32_t src, uint32_t dst, double by)
{
    return rail == ODD_RAIL ? of_link(rail, src, dst, by) : 1;
}

static const struct {
    const char *what;
    double (*part)(uint32_t rail, uint32_t src, uint32_t dst, double by);
    enum bench_odd_kind kind;
    uint32_t rail;
    bool everywhere;
} slow[] = {
    {"node", of_node, BENCH_ODD_NODE, BENCH_EVERY_RAIL, false},
    {"sender", of_sender, BENCH_ODD_SENDER, BENCH_EVERY_RAIL, false},
    {"receiver", of_receiver, BENCH_ODD_RECEIVER, BENCH_EVERY_RAIL, false},
    {"link", of_link, BENCH_ODD_PAIR, BENCH_EVERY_RAIL, false},
    {"rail", of_rail, BENCH_ODD_NODE, ODD_RAIL, true},
    {"rail at a node", of_rail_at_node, BENCH_ODD_NODE, ODD_RAIL, false},
    {"rail of a link", of_rail_of_link, BENCH_ODD_PAIR, ODD_RAIL, false},
};

static bool is_it(size_t which, const struct bench_slow *found)
{
    const struct bench_odd *odd = &found->odd;
    bool src = odd->kind == BENCH_ODD_RECEIVER || odd->src == (slow[which].everywhere ? BENCH_EVERY_NODE : ODD_NODE);
    bool dst = (odd->kind != BENCH_ODD_RECEIVER || odd->dst == ODD_NODE) &&
               (odd->kind != BENCH_ODD_PAIR || odd->dst == TO_NODE);

    return odd->kind == slow[which].kind && found->rail == slow[which].rail && src && dst;
}

/* In how many of the seeds it is named, and nothing else is. */
static int times_named(struct scene scene, size_t which, double by)
{
    int times = 0;

    scene.part = slow[which].part;
    scene.by = by;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct bench_slow found[FOUND];
        struct mesh mesh;
        make(&mesh, &scene, seed);
        times += bench_slow_find(&mesh.readings, found, FOUND) == 1 && is_it(which, &found[0]);
        forget(&mesh);
    }
    return times;
}

static int times_wrong(struct scene scene)
{
    int times = 0;

    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct mesh mesh;
        make(&mesh, &scene, seed);
        times += bench_slow_find(&mesh.readings, NULL, 0) != 0;
        forget(&mesh);
    }
    return times;
}

/* --- figures, for the documentation: test_bench_slow figures --- */

static void print_figures(void)
{
    static const double noises[] = {0.01, 0.02, 0.03, 0.05, 0.1};
    static const uint32_t nodes[] = {3, 4, 8, 16};

    for (size_t i = 0; i < sizeof nodes / sizeof nodes[0]; i++)
        for (size_t j = 0; j < sizeof noises / sizeof noises[0]; j++)
            for (int tails = 0; tails < 2; tails++) {
                struct scene scene = {.nodes = nodes[i],
                                      .endpoints = nodes[i] > 16 ? 1 : 2,
                                      .rails = 2,
                                      .sizes = 3,
                                      .noise = noises[j],
                                      .share_noise = noises[j],
                                      .tails = tails};
                printf("%2u nodes, noise %4.1f %%%s: wrong %d; ", scene.nodes, 100 * scene.noise,
                       tails ? ", tails" : "       ", times_wrong(scene));
                for (size_t which = 0; which < sizeof slow / sizeof slow[0]; which++) {
                    int by = 95;
                    while (by > 60 && times_named(scene, which, by / 100.0) < SEEDS)
                        by--;
                    printf("%s%s %d %%", which ? ", " : "", slow[which].what, by);
                }
                printf("\n");
            }
}

/* --- tests --- */

static void healthy_meshes_name_nothing(void **state)
{
    (void)state;
    for (uint32_t nodes = 2; nodes <= 16; nodes *= 2)
        for (int tails = 0; tails < 2; tails++)
            for (double noise = 0.01; noise < 0.11; noise += 0.03) {
                struct scene scene = {.nodes = nodes,
                                      .endpoints = 2,
                                      .rails = 2,
                                      .sizes = 3,
                                      .noise = noise,
                                      .share_noise = noise,
                                      .tails = tails};
                int times = times_wrong(scene);
                if (times)
                    fail_msg("%u nodes, noise %.2f, tails %d: %d of %d", nodes, noise, tails, times, SEEDS);
            }
}

static void what_is_15_percent_slower_is_named(void **state)
{
    (void)state;
    for (size_t which = 0; which < sizeof slow / sizeof slow[0]; which++)
        for (uint32_t nodes = 4; nodes <= 16; nodes *= 2)
            for (uint32_t rails = 2; rails <= RAILS_MOST; rails += 6) {
                struct scene scene = {.nodes = nodes,
                                      .endpoints = 2,
                                      .rails = rails,
                                      .sizes = 3,
                                      .noise = 0.02,
                                      .share_noise = 0.02,
                                      .tails = true};
                int times = times_named(scene, which, 0.85);
                if (times != SEEDS)
                    fail_msg("%s of %u nodes, %u rails: %d of %d", slow[which].what, nodes, rails, times, SEEDS);
            }
}

/* A slow endpoint of many is no slow node, and is named for all that it sends, not by link. */
static void an_endpoint_is_judged_beside_its_link(void **state)
{
    struct scene scene = {.nodes = 4,
                          .endpoints = 4,
                          .rails = 2,
                          .sizes = 3,
                          .noise = 0.02,
                          .share_noise = 0.02,
                          .part = of_node,
                          .by = 0.8};
    struct bench_slow found[FOUND];
    struct bench_odd ends[FOUND];
    struct mesh mesh;

    (void)state;
    make(&mesh, &scene, 1);
    for (size_t i = 0; i < mesh.readings.count; i++)
        if (mesh.readings.list[i].src == 14)
            mesh.readings.list[i].rate *= 0.7;
    assert_int_equal(bench_slow_find(&mesh.readings, found, FOUND), 1);
    assert_true(found[0].odd.kind == BENCH_ODD_NODE && found[0].odd.src == ODD_NODE);
    assert_int_equal(bench_slow_endpoints(&mesh.readings, ends, FOUND), 1);
    assert_true(ends[0].kind == BENCH_ODD_SENDER && ends[0].src == 14 && fabs(ends[0].of_peers - 0.7) < 0.05);
    forget(&mesh);
}

static double of_half(uint32_t rail, uint32_t src, uint32_t dst, double by)
{
    (void)rail, (void)dst;
    return src < 2 ? by : 1;
}

static double of_dead_rail(uint32_t rail, uint32_t src, uint32_t dst, double by)
{
    (void)by;
    return of_rail_at_node(rail, src, dst, 0);
}

static void a_half_is_a_group_and_a_dead_rail_is_slow(void **state)
{
    struct scene scene = {.nodes = 4,
                          .endpoints = 1,
                          .rails = 4,
                          .sizes = 3,
                          .noise = 0.01,
                          .share_noise = 0.01,
                          .part = of_half,
                          .by = 0.8};
    struct bench_slow found[FOUND];
    struct mesh mesh;

    (void)state;
    make(&mesh, &scene, 1);
    assert_int_equal(bench_slow_find(&mesh.readings, found, FOUND), 0);
    forget(&mesh);
    scene.part = of_dead_rail;
    make(&mesh, &scene, 1);
    assert_int_equal(bench_slow_find(&mesh.readings, found, FOUND), 2); /* and it takes a quarter of the node's rate */
    assert_true(is_it(5, &found[0]) && bench_slow_nothing(&found[0]));
    assert_true(is_it(0, &found[1]) && !bench_slow_nothing(&found[1]));
    forget(&mesh);
}

/* What comes from a file may be anything. */
static void what_is_no_reading_is_passed_over(void **state)
{
    static const struct bench_reading strange[] = {
        {.src_node = 9, .dst_node = 1, .rate = 1},     {.src_node = 1, .dst_node = 9, .rate = 1},
        {.src_node = 1, .dst_node = 1, .rate = 1},     {.src_node = 0, .dst_node = 1, .size = 99, .rate = 1},
        {.src_node = 0, .dst_node = 1, .rate = NAN},   {.src_node = 0, .dst_node = 1, .rate = -1},
        {.src_node = 3, .dst_node = 1, .rate = 1e-30},
    };
    struct bench_readings none = {.nodes = 4, .endpoints = 8, .sizes = 1, .bytes = (double[]){1}};
    struct bench_readings large = {.nodes = 4096, .endpoints = 8192, .sizes = 64};
    struct bench_carried carried[] = {{7, 1}, {0, NAN}, {1, 0}};
    struct bench_slow found[FOUND];
    struct bench_odd ends[FOUND];
    struct bench_reading list[sizeof strange / sizeof strange[0]];

    (void)state;
    memcpy(list, strange, sizeof list);
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        list[i].carried = carried;
        list[i].carried_count = 3;
    }
    none.list = list;
    assert_int_equal(bench_slow_find(&none, found, FOUND), 0);
    none.count = sizeof list / sizeof list[0];
    none.rails = 2;
    none.rails_compare = true;
    assert_int_equal(bench_slow_find(&none, found, FOUND), 0);
    assert_int_equal(bench_slow_endpoints(&none, ends, FOUND), 0);
    assert_int_equal(bench_slow_find(&large, found, FOUND), -E2BIG);
    assert_int_equal(bench_slow_endpoints(&large, ends, FOUND), -E2BIG);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(healthy_meshes_name_nothing),
        cmocka_unit_test(what_is_15_percent_slower_is_named),
        cmocka_unit_test(an_endpoint_is_judged_beside_its_link),
        cmocka_unit_test(a_half_is_a_group_and_a_dead_rail_is_slow),
        cmocka_unit_test(what_is_no_reading_is_passed_over),
    };

    if (argc > 1 && strcmp(argv[1], "figures") == 0) {
        print_figures();
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
