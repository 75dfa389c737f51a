/*
 * The pairs of a group of nodes: which node pairs meet in which round.
 *
 *     every node pair that the pattern has, once;  in a round no node twice
 *
 * All pairs of N nodes take N - 1 rounds, or N where N is odd: the circle method, in which one node stays and the
 * others move on by one place. Node pairs are taken in that order, and each goes to the first round in which both nodes
 * are free. For all of them that is the tournament itself; a ring or permutation is done after three rounds at most.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pairs.h"

/* Owner: bench_plan_bouts(). */
struct draw {
    struct bench_plan *plan;
    uint64_t *taken; /* by node: bits of the rounds in which it has a partner */
    size_t words;
    size_t room; /* of the plan's bouts */
};

static int grow(struct draw *draw, struct wf_status *status)
{
    struct bench_plan *plan = draw->plan;

    if (plan->bout_count < draw->room)
        return 0;
    size_t room = draw->room ? 2 * draw->room : 64;
    struct bench_bout *grown = realloc(plan->bouts, room * sizeof *grown);
    if (!grown)
        return wf_fail(status, -ENOMEM, "no memory for the rounds of %d nodes", plan->node_count);
    plan->bouts = grown;
    draw->room = room;
    return 0;
}

static int add_bout(struct draw *draw, int low, int high, uint32_t round, struct wf_status *status)
{
    struct bench_plan *plan = draw->plan;
    int result = grow(draw, status);

    if (result)
        return result;
    plan->bouts[plan->bout_count++] = (struct bench_bout){.low = (uint16_t)low, .high = (uint16_t)high, .round = round};
    if (round >= plan->round_count)
        plan->round_count = round + 1;
    return 0;
}

/* The first round in which both are free. */
static uint32_t take_round(struct draw *draw, int one, int other)
{
    uint64_t *first = draw->taken + (size_t)one * draw->words, *second = draw->taken + (size_t)other * draw->words;
    size_t word = 0;

    while (~(first[word] | second[word]) == 0)
        word++;
    uint32_t bit = (uint32_t)__builtin_ctzll(~(first[word] | second[word]));
    first[word] |= 1ull << bit;
    second[word] |= 1ull << bit;
    return (uint32_t)word * 64 + bit;
}

/* Of each two processes of two nodes: a round has one process of a node. */
static int draw_pair(struct draw *draw, int one, int other, struct wf_status *status)
{
    const struct bench_plan *plan = draw->plan;
    int processes = plan->processes, low = one < other ? one : other, high = one < other ? other : one, result = 0;

    if (high >= plan->node_count / processes) /* the place that stays empty where their number is odd */
        return 0;
    for (int i = 0; result == 0 && i < processes * processes; i++) {
        int first = low * processes + i / processes, second = high * processes + i % processes;
        if (bench_plan_sends(plan, first, second) || bench_plan_sends(plan, second, first))
            result = add_bout(draw, first, second, take_round(draw, low, high), status);
    }
    return result;
}

/* All node pairs, in the order of a tournament. */
static int draw_all(struct draw *draw, struct wf_status *status)
{
    int nodes = draw->plan->node_count / draw->plan->processes;
    int places = nodes + nodes % 2, circle = places - 1, result = 0;

    for (int turn = 0; turn < circle; turn++) {
        result = draw_pair(draw, turn, circle, status);
        for (int k = 1; result == 0 && k < places / 2; k++)
            result = draw_pair(draw, (turn + k) % circle, (turn - k + circle) % circle, status);
        if (result)
            return result;
    }
    return 0;
}

/* Pairs within a node are a round of their own, the first one. */
static int draw_selves(struct draw *draw, struct wf_status *status)
{
    struct bench_plan *plan = draw->plan;
    int result = 0;

    for (uint32_t i = 0; i < plan->bout_count; i++)
        plan->bouts[i].round++;
    plan->round_count++;
    for (int node = 0; result == 0 && node < plan->node_count; node++)
        result = add_bout(draw, node, node, 0, status);
    return result;
}

static int compare_bouts(const void *one, const void *other)
{
    const struct bench_bout *a = one, *b = other;

    return a->round != b->round ? (a->round > b->round) - (a->round < b->round) : (a->low > b->low) - (a->low < b->low);
}

/* The pairs of each bout, in an order by the seed. One without any is none. */
static int fill(struct bench_plan *plan, struct wf_status *status)
{
    uint64_t state = plan->seed;
    uint32_t kept = 0;
    int result = 0;

    for (uint32_t i = 0; result == 0 && i < plan->bout_count; i++) {
        struct bench_bout bout = plan->bouts[i];
        bout.first = plan->pair_count;
        result = bout.low == bout.high ? bench_plan_add_intra(plan, bout.low, status)
                                       : bench_plan_add_inter(plan, bout.low, bout.high, status);
        bout.count = plan->pair_count - bout.first;
        bench_plan_shuffle(plan, bout.first, bout.count, &state);
        if (bout.count)
            plan->bouts[kept++] = bout;
    }
    plan->bout_count = kept;
    return result;
}

static int find_busiest(struct bench_plan *plan, struct wf_status *status)
{
    uint32_t *pairs = calloc((size_t)plan->node_count, sizeof *pairs);

    if (!pairs)
        return wf_fail(status, -ENOMEM, "no memory for the pairs of %d nodes", plan->node_count);
    for (uint32_t i = 0; i < plan->bout_count; i++) {
        const struct bench_bout *bout = &plan->bouts[i];
        pairs[bout->low] += bout->count;
        pairs[bout->high] += bout->count; /* within a node it has both ends */
    }
    for (int node = 0; node < plan->node_count; node++)
        if (pairs[node] > plan->busiest)
            plan->busiest = pairs[node];
    free(pairs);
    return 0;
}

int bench_plan_bouts(struct bench_plan *plan, const char *scope, struct wf_status *status)
{
    struct draw draw = {.plan = plan, .words = (size_t)plan->node_count * (size_t)plan->processes / 32 + 2};
    int result = 0;

    draw.taken = calloc((size_t)plan->node_count * draw.words, sizeof *draw.taken);
    if (!draw.taken)
        return wf_fail(status, -ENOMEM, "no memory for the rounds of %d nodes", plan->node_count);
    if (strcmp(scope, "intra") != 0)
        result = draw_all(&draw, status);
    if (result == 0 && strcmp(scope, "inter") != 0)
        result = draw_selves(&draw, status);
    free(draw.taken);
    if (result)
        return result;
    qsort(plan->bouts, plan->bout_count, sizeof *plan->bouts, compare_bouts);
    result = fill(plan, status);
    return result ? result : find_busiest(plan, status);
}
