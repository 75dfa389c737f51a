/* What the elements of a measured collective are, and that anything else at their places is found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/collective/ranks/rank.h"
#include "bench/collective/ranks/values.h"

#define RANKS 3
#define COUNT 70001 /* more than a period */

/* What all ranks hand in, and what rank 1 has to get, computed element by element in double. */
struct world {
    struct values of[RANKS];
    struct rank_call call[RANKS];
    char *sent[RANKS], *got;
};

static double number(enum rank_type type, const char *at)
{
    uint16_t half;
    uint32_t bits;
    float single;

    memcpy(&half, at, 2);
    switch (type) {
    case RANK_FLOAT64:
        return *(const double *)at;
    case RANK_FLOAT32:
        return *(const float *)at;
    case RANK_FLOAT16: /* normal numbers and 0 are all there are */
        bits = half ? ((half >> 10) - 15u + 127u) << 23 | (half & 0x3ffu) << 13 : 0;
        memcpy(&single, &bits, 4);
        return single;
    case RANK_BFLOAT16:
        bits = (uint32_t)half << 16;
        memcpy(&single, &bits, 4);
        return single;
    case RANK_INT32:
        return *(const int32_t *)at;
    case RANK_INT64:
        return (double)*(const int64_t *)at;
    case RANK_UINT8:
        return *(const uint8_t *)at;
    }
    return -1;
}

static void set_up(struct world *world, enum bench_collective op, enum rank_type type, enum rank_redop redop)
{
    size_t most = (size_t)COUNT * RANKS * sizeof(double);

    for (uint32_t rank = 0; rank < RANKS; rank++) {
        assert_int_equal(values_init(&world->of[rank], rank, RANKS), 0);
        world->sent[rank] = malloc(most);
        assert_non_null(world->sent[rank]);
        world->call[rank] = (struct rank_call){
            .op = op, .type = type, .redop = redop, .count = COUNT, .send = world->sent[rank], .recv = NULL};
        values_fill(&world->of[rank], &world->call[rank]);
    }
    world->got = malloc(most);
    assert_non_null(world->got);
    world->call[1].recv = world->got;
    world->call[1].result = world->got;
}

static void tear_down(struct world *world)
{
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        values_fini(&world->of[rank]);
        free(world->sent[rank]);
    }
    free(world->got);
}

/* The all-reduce of small whole numbers by double, and back: a sum is found among the sums of the ranks' own values. */
static void check_reduction(enum rank_type type, enum rank_redop redop)
{
    struct world world;
    uint64_t bytes = rank_type_bytes(type), first = 0;

    set_up(&world, BENCH_ALL_REDUCE, type, redop);
    for (uint64_t i = 0; i < COUNT; i++) {
        double all = number(type, world.sent[0] + i * bytes);
        for (int rank = 1; rank < RANKS; rank++) {
            double other = number(type, world.sent[rank] + i * bytes);
            all = redop == RANK_MIN   ? (other < all ? other : all)
                  : redop == RANK_MAX ? (other > all ? other : all)
                                      : all + other;
        }
        if (redop == RANK_AVG)
            all /= RANKS;
        float single = (float)all;
        uint32_t bits;
        memcpy(&bits, &single, 4);
        uint16_t brain = (uint16_t)(bits >> 16),
                 half = all > 0 ? (uint16_t)((((bits >> 23) - 127 + 15) << 10) | ((bits >> 13) & 0x3ff)) : 0;
        int32_t small = (int32_t)all;
        int64_t large = (int64_t)all;
        uint8_t byte = (uint8_t)all;
        const void *as[] = {&all, &single, &half, &brain, &small, &large, &byte};
        memcpy(world.got + i * bytes, as[type], bytes);
        assert_true(number(type, world.got + i * bytes) == all); /* nothing was rounded */
    }
    assert_int_equal(values_wrong(&world.of[1], &world.call[1], &first), 0);
    world.got[(COUNT - 1) * bytes + bytes - 1] ^= 0x40;
    assert_int_equal(values_wrong(&world.of[1], &world.call[1], &first), 1);
    assert_int_equal(first, COUNT - 1);
    tear_down(&world);
}

static void reductions_are_exact_in_every_type(void **state)
{
    (void)state;
    for (int type = 0; type < RANK_TYPES; type++)
        for (int redop = 0; redop < RANK_REDOPS; redop++)
            check_reduction((enum rank_type)type, (enum rank_redop)redop);
}

/* What one rank has handed in is no average, though nothing else may have come. */
static void a_result_without_the_others_is_found(void **state)
{
    struct world world;
    uint64_t first = 0;

    (void)state;
    for (int redop = 0; redop < RANK_REDOPS; redop++) {
        set_up(&world, BENCH_ALL_REDUCE, RANK_FLOAT32, (enum rank_redop)redop);
        memcpy(world.got, world.sent[1], COUNT * sizeof(float));
        assert_true(values_wrong(&world.of[1], &world.call[1], &first) > COUNT / 3);
        tear_down(&world);
    }
}

static void pieces_at_wrong_places_are_found(void **state)
{
    struct world world;
    uint64_t first = 0, bytes = sizeof(float);

    (void)state;
    set_up(&world, BENCH_ALL_GATHER, RANK_FLOAT32, RANK_SUM);
    for (int rank = 0; rank < RANKS; rank++)
        memcpy(world.got + (size_t)rank * COUNT * bytes, world.sent[rank], COUNT * bytes);
    assert_int_equal(values_wrong(&world.of[1], &world.call[1], &first), 0);
    memmove(world.got + 4096, world.got, 4096); /* a block twice */
    assert_true(values_wrong(&world.of[1], &world.call[1], &first) > 900);
    assert_true(first >= 1024 && first < 1030);
    tear_down(&world);

    set_up(&world, BENCH_ALL_TO_ALL, RANK_FLOAT32, RANK_SUM);
    for (int rank = 0; rank < RANKS; rank++)
        memcpy(world.got + (size_t)rank * COUNT * bytes, world.sent[rank] + 1 * COUNT * bytes, COUNT * bytes);
    assert_int_equal(values_wrong(&world.of[1], &world.call[1], &first), 0);
    memcpy(world.got, world.sent[0] + 2 * COUNT * bytes, COUNT * bytes); /* what was for rank 2 */
    assert_true(values_wrong(&world.of[1], &world.call[1], &first) > COUNT / 2);
    tear_down(&world);
}

static void the_ring_and_the_root_are_known(void **state)
{
    struct world world;
    uint64_t first = 0;

    (void)state;
    set_up(&world, BENCH_SEND_RECEIVE, RANK_UINT8, RANK_SUM);
    memcpy(world.got, world.sent[0], COUNT); /* rank 1's left neighbour */
    assert_int_equal(values_wrong(&world.of[1], &world.call[1], &first), 0);
    memcpy(world.got, world.sent[2], COUNT);
    assert_true(values_wrong(&world.of[1], &world.call[1], &first) > COUNT / 2);
    world.call[1].op = BENCH_BROADCAST;
    memcpy(world.got, world.sent[0], COUNT);
    assert_int_equal(values_wrong(&world.of[1], &world.call[1], &first), 0);
    tear_down(&world);
}

static void names_are_those_of_nccl_tests_too(void **state)
{
    (void)state;
    assert_int_equal(rank_type_find("half"), RANK_FLOAT16);
    assert_int_equal(rank_type_find("float32"), RANK_FLOAT32);
    assert_int_equal(rank_type_find("double"), RANK_FLOAT64);
    assert_int_equal(rank_type_find("float8"), -1);
    assert_int_equal(rank_op_find("alltoall"), BENCH_ALL_TO_ALL);
    assert_int_equal(rank_redop_find("prod"), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reductions_are_exact_in_every_type),
        cmocka_unit_test(a_result_without_the_others_is_found),
        cmocka_unit_test(pieces_at_wrong_places_are_found),
        cmocka_unit_test(the_ring_and_the_root_are_known),
        cmocka_unit_test(names_are_those_of_nccl_tests_too),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
