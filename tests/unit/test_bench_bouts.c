/* Which node pairs of a group meet in which round, and which pairs of endpoints a pattern has. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/backends/backend.h"
#include "bench/plan/schedule.h"

static const struct bench_backend_ops backend = {.name = "weft", .moves_data = true};
static const struct bench_backend_choice backends[] = {{"weft", &backend}, {NULL, NULL}};
static struct wf_config config;

static void plan_of(struct bench_plan *plan, int nodes, const char *endpoints, const char *pattern, const char *scope)
{
    struct bench_options options = {
        .command = BENCH_MESH, .config = &config, .backends = backends, .nodes = nodes, .rank = -1};
    struct wf_status status = {0};

    wf_config_init(&config);
    assert_int_equal(wf_config_set(&config, WF_SET_ENDPOINTS, endpoints, WF_ORIGIN_COMMAND, "command line", &status),
                     0);
    assert_int_equal(wf_config_set(&config, WF_SET_PATTERN, pattern, WF_ORIGIN_COMMAND, "command line", &status), 0);
    assert_int_equal(wf_config_set(&config, WF_SET_SIZE, "1K", WF_ORIGIN_COMMAND, "command line", &status), 0);
    if (scope)
        assert_int_equal(wf_config_set(&config, WF_SET_SCOPE, scope, WF_ORIGIN_COMMAND, "command line", &status), 0);
    assert_int_equal(bench_plan_init(plan, &options, &status), 0);
    assert_int_equal(plan->node_count, nodes);
}

/* No node is in two bouts of a round, the bouts are in the order of rounds, and all pairs are in them once. */
static void expect_rounds(const struct bench_plan *plan)
{
    uint32_t *seen = calloc((size_t)plan->node_count, sizeof *seen), next = 0, round = 0;

    assert_non_null(seen);
    for (uint32_t i = 0; i < plan->bout_count; i++) {
        const struct bench_bout *bout = &plan->bouts[i];
        assert_true(bout->round >= round && bout->round < plan->round_count);
        round = bout->round;
        assert_int_not_equal(seen[bout->low], round + 1);
        assert_int_not_equal(seen[bout->high], round + 1);
        seen[bout->low] = seen[bout->high] = round + 1;
        assert_int_equal(bout->first, next);
        assert_true(bout->count > 0);
        next += bout->count;
        for (uint32_t k = bout->first; k < next; k++) {
            const struct bench_pair *pair = &plan->pairs[k];
            assert_true((pair->src_node == bout->low && pair->dst_node == bout->high) ||
                        (pair->src_node == bout->high && pair->dst_node == bout->low));
        }
    }
    assert_int_equal(next, plan->pair_count);
    free(seen);
}

static void every_two_nodes_meet_once(void **state)
{
    (void)state;
    for (int nodes = 2; nodes <= 33; nodes++) {
        struct bench_plan *plan = calloc(1, sizeof *plan);
        bool met[33][33] = {{false}};
        plan_of(plan, nodes, "2", "mesh", NULL);
        expect_rounds(plan);
        assert_int_equal(plan->round_count, nodes % 2 ? nodes : nodes - 1);
        assert_int_equal(plan->bout_count, nodes * (nodes - 1) / 2);
        for (uint32_t i = 0; i < plan->bout_count; i++) {
            assert_false(met[plan->bouts[i].low][plan->bouts[i].high]);
            met[plan->bouts[i].low][plan->bouts[i].high] = true;
            assert_int_equal(plan->bouts[i].count, 8);
        }
        assert_int_equal(plan->busiest, 8 * (nodes - 1));
        bench_plan_fini(plan);
        free(plan);
    }
}

/* How often each node sends to, and receives from, another one; and whether numbers are equal. */
struct tally {
    uint32_t sends[16], receives[16], own[16];
    bool equal;
};

static void tally_up(const struct bench_plan *plan, struct tally *tally)
{
    *tally = (struct tally){.equal = true};
    for (uint32_t i = 0; i < plan->pair_count; i++) {
        const struct bench_pair *pair = &plan->pairs[i];
        if (pair->src_node == pair->dst_node) {
            tally->own[pair->src_node]++;
            continue;
        }
        tally->sends[pair->src_node]++;
        tally->receives[pair->dst_node]++;
        tally->equal &= pair->src == pair->dst;
    }
}

static void a_pattern_has_its_pairs(void **state)
{
    static const struct {
        const char *pattern;
        int nodes;
        uint32_t sends, receives, own, first_receives; /* of each node with 2 endpoints; received by node0 */
        bool equal;
        uint32_t rounds; /* at most */
    } rows[] = {
        {"mesh", 5, 16, 16, 0, 16, false, 5},    {"pairs", 5, 8, 8, 0, 8, true, 5},
        {"bidir", 4, 12, 12, 0, 12, false, 3},   {"alltoall", 4, 12, 12, 2, 12, false, 4},
        {"ring", 6, 2, 2, 0, 2, true, 3},        {"ring", 7, 2, 2, 0, 2, true, 3},
        {"permutation", 8, 2, 2, 0, 2, true, 3}, {"bisection", 8, 2, 2, 0, 2, true, 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct bench_plan *plan = calloc(1, sizeof *plan);
        struct tally tally;
        plan_of(plan, rows[i].nodes, "2", rows[i].pattern, NULL);
        expect_rounds(plan);
        tally_up(plan, &tally);
        for (int node = 0; node < rows[i].nodes; node++) {
            assert_int_equal(tally.sends[node], rows[i].sends);
            assert_int_equal(tally.receives[node], rows[i].receives);
            assert_int_equal(tally.own[node], rows[i].own);
        }
        assert_int_equal(tally.equal, rows[i].equal);
        assert_true(plan->round_count <= rows[i].rounds);
        bench_plan_fini(plan);
        free(plan);
    }
}

static void a_ring_has_two_neighbours(void **state)
{
    (void)state;
    for (int nodes = 3; nodes <= 16; nodes++) {
        struct bench_plan *plan = calloc(1, sizeof *plan);
        uint32_t neighbours[16] = {0};
        plan_of(plan, nodes, "1", "ring", NULL);
        for (uint32_t i = 0; i < plan->bout_count; i++) {
            neighbours[plan->bouts[i].low]++;
            neighbours[plan->bouts[i].high]++;
        }
        for (int node = 0; node < nodes; node++)
            assert_int_equal(neighbours[node], 2);
        bench_plan_fini(plan);
        free(plan);
    }
}

static void all_send_to_one(void **state)
{
    struct bench_plan *plan = calloc(1, sizeof *plan);

    (void)state;
    plan_of(plan, 5, "2", "incast", NULL);
    expect_rounds(plan);
    assert_int_equal(plan->pair_count, 8);
    for (uint32_t i = 0; i < plan->pair_count; i++) {
        assert_int_equal(plan->pairs[i].dst_node, 0);
        assert_int_equal(plan->pairs[i].dst, 0);
    }
    bench_plan_fini(plan);
    free(plan);
}

/* Where their number is odd, the last one is in neither half. */
static void halves_are_equal(void **state)
{
    struct bench_plan *plan = calloc(1, sizeof *plan);
    struct tally tally;

    (void)state;
    plan_of(plan, 7, "1", "bisection", NULL);
    tally_up(plan, &tally);
    assert_int_equal(plan->pair_count, 6);
    assert_int_equal(tally.sends[6], 0);
    for (int node = 0; node < 6; node++)
        assert_int_equal(tally.sends[node], 1);
    bench_plan_fini(plan);
    free(plan);
}

static void pairs_within_nodes_are_the_first_round(void **state)
{
    struct bench_plan *plan = calloc(1, sizeof *plan);

    (void)state;
    plan_of(plan, 4, "2", "mesh", "all");
    expect_rounds(plan);
    assert_int_equal(plan->round_count, 4);
    for (uint32_t i = 0; i < plan->bout_count; i++)
        assert_int_equal(plan->bouts[i].low == plan->bouts[i].high, plan->bouts[i].round == 0);
    bench_plan_fini(plan);
    free(plan);
}

/* Processes are as nodes to the rounds, but of a node only one is in a round; to the result they are their nodes. */
static void processes_share_the_endpoints(void **state)
{
    struct bench_plan *plan = calloc(1, sizeof *plan);
    struct bench_options options = {
        .command = BENCH_MESH, .config = &config, .backends = backends, .nodes = 6, .rank = -1};
    struct wf_status status = {0};
    uint32_t seen[3][4][3][4] = {{{{0}}}};

    (void)state;
    plan_of(plan, 3, "4", "mesh", NULL);
    bench_plan_fini(plan);
    assert_int_equal(wf_config_set(&config, WF_SET_PROCESSES, "2", WF_ORIGIN_COMMAND, "command line", &status), 0);
    assert_int_equal(bench_plan_init(plan, &options, &status), 0);
    expect_rounds(plan);
    assert_int_equal(plan->endpoints, 2);
    assert_int_equal(plan->pair_count, 3 * 2 * 16);
    for (uint32_t i = 0; i < plan->bout_count; i++)
        for (uint32_t k = i + 1; k < plan->bout_count && plan->bouts[k].round == plan->bouts[i].round; k++) {
            assert_int_not_equal(plan->bouts[i].low / 2, plan->bouts[k].low / 2);
            assert_int_not_equal(plan->bouts[i].high / 2, plan->bouts[k].high / 2);
        }
    for (uint32_t i = 0; i < plan->pair_count; i++) {
        struct bench_pair outer = bench_plan_outer(plan, &plan->pairs[i]);
        assert_int_not_equal(outer.src_node, outer.dst_node);
        seen[outer.src_node][outer.src][outer.dst_node][outer.dst]++;
    }
    for (int i = 0; i < 3 * 4 * 3 * 4; i++)
        assert_int_equal((&seen[0][0][0][0])[i], i / 48 != i / 4 % 3);
    assert_int_equal(wf_config_set(&config, WF_SET_ENDPOINTS, "3", WF_ORIGIN_COMMAND, "command line", &status), 0);
    bench_plan_fini(plan);
    assert_int_equal(bench_plan_init(plan, &options, &status), -EINVAL);
    bench_plan_fini(plan);
    free(plan);
}

/* All nodes make it of the same settings; another seed is another order. */
static void the_order_is_the_seeds(void **state)
{
    struct bench_plan *one = calloc(1, sizeof *one), *same = calloc(1, sizeof *same), *two = calloc(1, sizeof *two);
    struct wf_status status = {0};
    struct bench_options options = {
        .command = BENCH_MESH, .config = &config, .backends = backends, .nodes = 4, .rank = -1};

    (void)state;
    plan_of(one, 4, "3", "mesh", NULL);
    plan_of(same, 4, "3", "mesh", NULL);
    assert_int_equal(bench_plan_digest(one), bench_plan_digest(same));
    assert_int_equal(wf_config_set(&config, WF_SET_SEED, "43", WF_ORIGIN_COMMAND, "command line", &status), 0);
    assert_int_equal(bench_plan_init(two, &options, &status), 0);
    assert_int_not_equal(bench_plan_digest(one), bench_plan_digest(two));
    bench_plan_fini(one);
    bench_plan_fini(same);
    bench_plan_fini(two);
    free(one);
    free(same);
    free(two);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_two_nodes_meet_once),
        cmocka_unit_test(a_pattern_has_its_pairs),
        cmocka_unit_test(a_ring_has_two_neighbours),
        cmocka_unit_test(all_send_to_one),
        cmocka_unit_test(halves_are_equal),
        cmocka_unit_test(pairs_within_nodes_are_the_first_round),
        cmocka_unit_test(processes_share_the_endpoints),
        cmocka_unit_test(the_order_is_the_seeds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
