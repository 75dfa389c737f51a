/* Which GPUs become ranks of NCCL's: the same ranks at both nodes, one for each GPU that is used. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "bench/backends/nccl/ranks.h"

#define PAIRS_MAX 64

struct scene {
    struct bench_pair pairs[PAIRS_MAX];
    struct bench_plan plan;
    struct nccl_ranks ranks;
    struct wf_status status;
};

static void make(struct scene *scene, uint32_t gpus0, uint32_t gpus1)
{
    memset(scene, 0, sizeof(*scene));
    scene->plan.pairs = scene->pairs;
    scene->plan.nodes[0].gpus = gpus0;
    scene->plan.nodes[1].gpus = gpus1;
}

static void add(struct scene *scene, uint8_t src_node, uint32_t src, uint8_t dst_node, uint32_t dst)
{
    scene->pairs[scene->plan.pair_count++] =
        (struct bench_pair){.src_node = src_node, .src = src, .dst_node = dst_node, .dst = dst};
}

static void add_mesh(struct scene *scene, uint32_t endpoints)
{
    scene->plan.endpoints = endpoints;
    for (uint32_t a = 0; a < endpoints; a++)
        for (uint32_t b = 0; b < endpoints; b++) {
            add(scene, 0, a, 1, b);
            add(scene, 1, b, 0, a);
        }
}

static uint32_t rank_of(const struct scene *scene, int node, uint32_t endpoint)
{
    return nccl_rank_of(&scene->ranks, &scene->plan, node, endpoint);
}

static void a_gpu_each_counts_through_both_nodes(void **state)
{
    struct scene scene;

    (void)state;
    make(&scene, 4, 4);
    add_mesh(&scene, 4);
    assert_int_equal(nccl_ranks_of(&scene.plan, &scene.ranks, &scene.status), 0);
    assert_int_equal(scene.ranks.count, 8);
    for (int node = 0; node < 2; node++)
        for (uint32_t endpoint = 0; endpoint < 4; endpoint++)
            assert_int_equal(rank_of(&scene, node, endpoint), (uint32_t)node * 4 + endpoint);
    assert_int_equal(scene.ranks.first[1], 4);
    assert_int_equal(scene.ranks.own[0], 4);
}

static void endpoints_of_one_gpu_share_its_rank(void **state)
{
    struct scene scene;

    (void)state;
    make(&scene, 1, 2);
    add_mesh(&scene, 4);
    assert_int_equal(nccl_ranks_of(&scene.plan, &scene.ranks, &scene.status), 0);
    assert_int_equal(scene.ranks.count, 3);
    assert_int_equal(rank_of(&scene, 0, 3), 0);
    assert_int_equal(rank_of(&scene, 1, 2), 1);
    assert_int_equal(rank_of(&scene, 1, 3), 2);
}

/* No context is made on a GPU that nobody named. */
static void gpus_that_no_pair_uses_are_no_ranks(void **state)
{
    struct scene scene;

    (void)state;
    make(&scene, 8, 8);
    scene.plan.endpoints = 8;
    add(&scene, 0, 5, 1, 3);
    assert_int_equal(nccl_ranks_of(&scene.plan, &scene.ranks, &scene.status), 0);
    assert_int_equal(scene.ranks.count, 2);
    assert_int_equal(rank_of(&scene, 0, 5), 0);
    assert_int_equal(rank_of(&scene, 1, 3), 1);
    assert_int_equal(rank_of(&scene, 0, 0), NCCL_NO_RANK);
    assert_int_equal(scene.ranks.place[0], 5);
    assert_int_equal(scene.ranks.place[1], 3);
}

static void host_memory_has_no_ranks(void **state)
{
    struct scene scene;

    (void)state;
    make(&scene, 2, 0);
    add_mesh(&scene, 2);
    assert_int_equal(nccl_ranks_of(&scene.plan, &scene.ranks, &scene.status), -EOPNOTSUPP);
    assert_non_null(strstr(scene.status.text, "node1"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gpu_each_counts_through_both_nodes),
        cmocka_unit_test(endpoints_of_one_gpu_share_its_rank),
        cmocka_unit_test(gpus_that_no_pair_uses_are_no_ranks),
        cmocka_unit_test(host_memory_has_no_ranks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
