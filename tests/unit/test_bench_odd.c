/*
 * The rule for odd links, on meshes that are made up: healthy ones in which nothing may be named, and ones with a slow
 * pair or endpoint, which is to be named once. Noise is normal, or has the tails of Student's t of 3 degrees.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "bench/result/odd.h"
#include "noise.h"

#define SIZES_MOST 6
#define SIDE_MOST 8
#define RATE 10.0

struct mesh {
    size_t sources, targets, sizes;
    double forth[SIZES_MOST * SIDE_MOST * SIDE_MOST], back[SIZES_MOST * SIDE_MOST * SIDE_MOST];
};

static double *forth(struct mesh *mesh, size_t size, size_t src, size_t dst)
{
    return &mesh->forth[(size * mesh->sources + src) * mesh->targets + dst];
}

static double *back(struct mesh *mesh, size_t size, size_t src, size_t dst)
{
    return &mesh->back[(size * mesh->targets + src) * mesh->sources + dst];
}

static void make(struct mesh *mesh, size_t side, size_t sizes, double cv, bool tails, uint64_t *random)
{
    *mesh = (struct mesh){.sources = side, .targets = side, .sizes = sizes};
    for (size_t i = 0; i < sizes * side * side; i++) {
        mesh->forth[i] = RATE * fmax(0.05, 1 + cv * noise(random, tails));
        mesh->back[i] = RATE / 2 * fmax(0.05, 1 + cv * noise(random, tails));
    }
}

static void slow_pair(struct mesh *mesh, size_t src, size_t dst, double by)
{
    for (size_t size = 0; size < mesh->sizes; size++)
        *forth(mesh, size, src, dst) *= by;
}

static void slow_receiver(struct mesh *mesh, size_t dst, double by)
{
    for (size_t src = 0; src < mesh->sources; src++)
        slow_pair(mesh, src, dst, by);
}

static void slow_sender(struct mesh *mesh, size_t src, double by)
{
    for (size_t dst = 0; dst < mesh->targets; dst++)
        slow_pair(mesh, src, dst, by);
}

static int find(const struct mesh *mesh, struct bench_odd *found, size_t most)
{
    struct bench_links links = {mesh->sources, mesh->targets, mesh->sizes, mesh->forth, mesh->back, NULL, false};

    return bench_odd_find(&links, found, most);
}

/* --- healthy meshes --- */

static void nothing_is_named_where_nothing_is_odd(void **state)
{
    static const double cvs[] = {0.02, 0.04, 0.07, 0.1};
    uint64_t random = 1;
    int named = 0, meshes = 0;

    (void)state;
    for (size_t sizes = 3; sizes <= 5; sizes++)
        for (size_t i = 0; i < 4; i++)
            for (int kind = 0; kind < 4; kind++)
                for (int turn = 0; turn < (kind / 2 ? 8 : 60); turn++) {
                    struct mesh mesh;
                    make(&mesh, kind / 2 ? 8 : 4, sizes, cvs[i], kind % 2, &random);
                    named += find(&mesh, NULL, 0) != 0;
                    meshes++;
                }
    if (named)
        fail_msg("%d of %d", named, meshes);
}

static void a_difference_of_all_sizes_is_judged_by_the_others(void **state)
{
    uint64_t random = 2;
    int named = 0;

    (void)state;
    for (int turn = 0; turn < 200; turn++) {
        struct mesh mesh;
        make(&mesh, 4, 4, 0.01, false, &random);
        for (size_t src = 0; src < 4; src++)
            for (size_t dst = 0; dst < 4; dst++)
                slow_pair(&mesh, src, dst, 1 + 0.05 * normal(&random));
        named += find(&mesh, NULL, 0) != 0;
    }
    assert_in_range(named, 0, 1);
}

/* --- odd ones --- */

/* How often, of 100 meshes, nothing but this pair is named. */
static int times_named(size_t side, size_t sizes, double cv, bool tails, double by)
{
    uint64_t random = 3;
    int times = 0;

    for (int turn = 0; turn < 100; turn++) {
        struct mesh mesh;
        struct bench_odd odd[2];
        make(&mesh, side, sizes, cv, tails, &random);
        slow_pair(&mesh, 1, 0, by);
        times += find(&mesh, odd, 2) == 1 && odd[0].kind == BENCH_ODD_PAIR && odd[0].src == 1 && odd[0].dst == 0;
    }
    return times;
}

static void a_pair_at_80_percent_is_named(void **state)
{
    (void)state;
    for (int tails = 0; tails < 2; tails++) {
        assert_in_range(times_named(4, 3, 0.02, tails, 0.8), 99, 100);
        assert_in_range(times_named(4, 3, 0.04, tails, 0.8), 95, 100);
        assert_in_range(times_named(4, 5, 0.04, tails, 0.8), 97, 100);
        assert_in_range(times_named(8, 4, 0.04, tails, 0.8), 96, 100);
        assert_in_range(times_named(2, 3, 0.01, tails, 0.8), 97, 100);
    }
    assert_int_equal(times_named(4, 3, 0.01, false, 0.95), 0); /* not worth a word */
}

static void an_endpoint_is_named_once(void **state)
{
    uint64_t random = 4;

    (void)state;
    for (int turn = 0; turn < 60; turn++) {
        struct mesh mesh;
        struct bench_odd odd[4];
        size_t side = turn % 3 == 0 ? 2 : turn % 3 == 1 ? 4 : 8;
        make(&mesh, side, 3, 0.03, turn % 2, &random);
        slow_receiver(&mesh, 1, 0.7);
        assert_int_equal(find(&mesh, odd, 4), 1);
        assert_int_equal(odd[0].kind, BENCH_ODD_RECEIVER);
        assert_int_equal(odd[0].dst, 1);
        assert_true(fabs(odd[0].of_peers - 0.7) < 0.08);
        make(&mesh, side, 3, 0.02, turn % 2, &random);
        slow_sender(&mesh, 0, 0.7);
        assert_int_equal(find(&mesh, odd, 4), 1);
        assert_int_equal(odd[0].kind, BENCH_ODD_SENDER);
        assert_int_equal(odd[0].src, 0);
    }
}

static void a_pair_is_judged_beside_its_endpoint(void **state)
{
    struct mesh mesh;
    struct bench_odd odd[4];
    uint64_t random = 5;

    (void)state;
    make(&mesh, 4, 3, 0.01, false, &random);
    slow_receiver(&mesh, 2, 0.7);
    slow_pair(&mesh, 3, 2, 0.5); /* beside the 70 % that all have there */
    slow_pair(&mesh, 0, 1, 0.8);
    assert_int_equal(find(&mesh, odd, 4), 3);
    assert_int_equal(odd[0].kind, BENCH_ODD_PAIR); /* the worst first */
    assert_true(odd[0].src == 3 && odd[0].dst == 2 && fabs(odd[0].of_peers - 0.5) < 0.05);
    assert_true(fabs(odd[0].rate - 3.5) < 0.3 && fabs(odd[0].peers_rate - 7) < 0.5);
    assert_int_equal(odd[1].kind, BENCH_ODD_RECEIVER);
    assert_true(odd[1].dst == 2 && fabs(odd[1].rate - 7) < 0.3 && fabs(odd[1].peers_rate - 10) < 0.3);
    assert_int_equal(odd[2].kind, BENCH_ODD_PAIR);
    assert_true(odd[2].src == 0 && odd[2].dst == 1 && odd[2].sizes_seen == 3 && odd[2].sigmas > 5);
    assert_int_equal(find(&mesh, odd, 1), 3);
}

static void the_way_back_is_looked_at(void **state)
{
    struct mesh mesh;
    struct bench_odd odd[1];
    uint64_t random = 6;

    (void)state;
    make(&mesh, 4, 3, 0.01, false, &random);
    slow_pair(&mesh, 3, 1, 0.6);
    assert_int_equal(find(&mesh, odd, 1), 1);
    assert_true(odd[0].one_way);
    for (size_t size = 0; size < 3; size++)
        *back(&mesh, size, 1, 3) *= 0.6;
    assert_int_equal(find(&mesh, odd, 1), 1);
    assert_false(odd[0].one_way);
    struct bench_links links = {4, 4, 3, mesh.forth, NULL, NULL, false};
    assert_int_equal(bench_odd_find(&links, odd, 1), 1);
    assert_false(odd[0].one_way);
}

/* --- what is no oddity --- */

static void a_half_is_a_group(void **state)
{
    struct mesh mesh;
    uint64_t random = 7;

    (void)state;
    make(&mesh, 4, 3, 0.01, false, &random);
    slow_receiver(&mesh, 2, 0.7);
    slow_receiver(&mesh, 3, 0.7);
    assert_int_equal(find(&mesh, NULL, 0), 0);
    make(&mesh, 8, 3, 0.01, false, &random);
    slow_receiver(&mesh, 2, 0.7);
    slow_receiver(&mesh, 3, 0.7);
    assert_int_equal(find(&mesh, NULL, 0), 2);
}

static void one_disturbed_size_is_nothing(void **state)
{
    struct mesh mesh;
    uint64_t random = 8;

    (void)state;
    make(&mesh, 4, 3, 0.01, false, &random);
    *forth(&mesh, 2, 1, 1) *= 0.3;
    assert_int_equal(find(&mesh, NULL, 0), 0);
    make(&mesh, 4, 5, 0.01, false, &random);
    slow_pair(&mesh, 1, 1, 0.7);
    *forth(&mesh, 2, 1, 1) /= 0.7; /* and hides nothing among many */
    assert_int_equal(find(&mesh, NULL, 0), 1);
}

static void small_sizes_do_not_count(void **state)
{
    static const double bytes[] = {1024, 1 << 20, 1 << 21, 1 << 22};
    struct mesh mesh;
    struct bench_odd odd[1];
    uint64_t random = 9;

    (void)state;
    make(&mesh, 4, 4, 0.01, false, &random);
    slow_pair(&mesh, 2, 0, 0.7);
    for (size_t i = 0; i < 16; i++)
        mesh.forth[i] = RATE / 5 * (1 + 0.01 * normal(&random)); /* of the smallest: as for all, by latency */
    assert_int_equal(find(&mesh, odd, 1), 1);
    assert_int_equal(odd[0].sizes_seen, 3);
    for (size_t i = 0; i < 16; i++)
        mesh.forth[i] *= 4;
    assert_int_equal(find(&mesh, odd, 1), 0);
    struct bench_links links = {4, 4, 4, mesh.forth, mesh.back, bytes, false};
    assert_int_equal(bench_odd_find(&links, odd, 1), 1);
}

static void holes_are_no_zeros(void **state)
{
    struct mesh mesh;
    struct bench_odd odd[2];
    uint64_t random = 10;

    (void)state;
    make(&mesh, 4, 3, 0.01, false, &random);
    slow_pair(&mesh, 0, 3, 0.6);
    for (size_t size = 0; size < 3; size++)
        *forth(&mesh, size, 2, 2) = NAN;
    *forth(&mesh, 2, 0, 3) = NAN; /* of the odd pair the largest size */
    assert_int_equal(find(&mesh, odd, 2), 1);
    assert_true(odd[0].src == 0 && odd[0].dst == 3 && odd[0].sizes_seen == 2 && odd[0].rate > 5);
    for (size_t i = 0; i < 3 * 16; i++)
        mesh.forth[i] = NAN;
    assert_int_equal(find(&mesh, odd, 2), 0);
}

static void of_few_pairs_nothing_is_usual(void **state)
{
    double rates[] = {10, 10, 2, 10, 10, 2}, equal[] = {10, 10, 10, 2, 10, 10, 10, 2};
    struct bench_links three = {1, 3, 2, rates, NULL, NULL, false}, none = {0},
                       four = {1, 4, 2, equal, NULL, NULL, false};
    struct bench_odd odd[1];

    (void)state;
    assert_int_equal(bench_odd_find(&three, NULL, 0), 0);
    assert_int_equal(bench_odd_find(&none, NULL, 0), 0);
    assert_int_equal(bench_odd_find(&four, odd, 1), 1); /* of one pair it is the pair, not its receiver */
    assert_int_equal(odd[0].kind, BENCH_ODD_PAIR);
    assert_int_equal(odd[0].dst, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_named_where_nothing_is_odd),
        cmocka_unit_test(a_difference_of_all_sizes_is_judged_by_the_others),
        cmocka_unit_test(a_pair_at_80_percent_is_named),
        cmocka_unit_test(an_endpoint_is_named_once),
        cmocka_unit_test(a_pair_is_judged_beside_its_endpoint),
        cmocka_unit_test(the_way_back_is_looked_at),
        cmocka_unit_test(a_half_is_a_group),
        cmocka_unit_test(one_disturbed_size_is_nothing),
        cmocka_unit_test(small_sizes_do_not_count),
        cmocka_unit_test(holes_are_no_zeros),
        cmocka_unit_test(of_few_pairs_nothing_is_usual),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
