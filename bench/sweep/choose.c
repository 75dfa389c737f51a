/* Which points are run next: what makes a search a search. */
#include "choose.h"

#include <string.h>

#include "bench/words/random.h"

#define HOPELESS_AFTER 3 /* rounds */
#define FIRST_SHARE 0.40 /* of a search's runs: the few points */
#define AGAIN_SHARE 0.08 /* the best, once more */
#define LEADERS 2        /* whose neighbours are looked at */
#define FINALISTS 4

_Static_assert(FINALISTS <= BENCH_BEST_MOST && LEADERS <= BENCH_BEST_MOST, "as many can be found");

static bool is_out(const struct bench_search *search, uint32_t point)
{
    return search->tallies[point].failures >= BENCH_FAILURES_MOST || search->tallies[point].hopeless;
}

static void choose(struct bench_search *search, uint32_t point)
{
    for (uint32_t i = 0; i < search->chosen_count; i++)
        if (search->chosen[i] == point)
            return;
    search->chosen[search->chosen_count++] = point;
}

/* --- the grid --- */

static void drop_hopeless(struct bench_search *search)
{
    uint32_t best = bench_search_best(search);

    for (uint32_t point = 0; point < search->space->points; point++) {
        struct bench_comparison comparison;
        if (point == best || point == search->space->baseline || is_out(search, point))
            continue;
        bench_search_compare_two(search, point, best, false, &comparison);
        search->tallies[point].hopeless = comparison.pairs >= HOPELESS_AFTER && comparison.high < 1;
    }
}

static bool plan_grid(struct bench_search *search)
{
    if (search->batches == search->rounds)
        return false;
    if (search->batches >= HOPELESS_AFTER)
        drop_hopeless(search);
    for (uint32_t point = 0; point < search->space->points; point++)
        if (!is_out(search, point))
            search->chosen[search->chosen_count++] = point;
    return search->chosen_count > 0;
}

/* --- the search --- */

/* How many values of each axis the few points have: as many as there is room for, evenly. */
static void choose_picks(const struct bench_search *search, uint32_t room, int *picks)
{
    const struct bench_space *space = search->space;
    uint64_t points = 1;
    int next = 0;

    for (int i = 0; i < space->axis_count; i++) {
        picks[i] = space->axes[i].count < 2 ? space->axes[i].count : 2;
        points *= (uint64_t)picks[i];
    }
    while (next >= 0) {
        next = -1;
        for (int i = 0; i < space->axis_count; i++)
            if (picks[i] < space->axes[i].count && points / (uint64_t)picks[i] * (uint64_t)(picks[i] + 1) <= room &&
                (next < 0 || space->axes[i].count * picks[next] > space->axes[next].count * picks[i]))
                next = i;
        if (next >= 0) {
            points = points / (uint64_t)picks[next] * (uint64_t)(picks[next] + 1);
            picks[next]++;
        }
    }
}

/* Evenly spread over the values of each axis, its ends among them. */
static void choose_few(struct bench_search *search)
{
    const struct bench_space *space = search->space;
    uint32_t room =
                 ((uint32_t)(FIRST_SHARE * bench_search_runs_left(search)) - 2) * BENCH_BETWEEN / (BENCH_BETWEEN + 1),
             few = 1;
    int picks[BENCH_AXES_MAX];

    choose_picks(search, room, picks);
    for (int i = 0; i < space->axis_count; i++) {
        int gaps = picks[i] > 1 ? picks[i] - 1 : 1, widest = (space->axes[i].count - 1 + gaps - 1) / gaps;
        search->stride[i] = widest > 1 ? (widest + 1) / 2 : 1;
        few *= (uint32_t)picks[i];
    }
    for (uint32_t number = 0; number < few; number++) {
        int at[BENCH_AXES_MAX];
        uint32_t rest = number;
        for (int i = 0; i < space->axis_count; i++) {
            int pick = (int)(rest % (uint32_t)picks[i]);
            rest /= (uint32_t)picks[i];
            at[i] = picks[i] > 1 ? (pick * (space->axes[i].count - 1) + (picks[i] - 1) / 2) / (picks[i] - 1) : 0;
        }
        search->chosen[search->chosen_count++] = bench_space_point(space, at);
    }
    /* Of many settings there are more corners than there is room: some of them, by lot. */
    bench_search_shuffle(search->chosen, search->chosen_count, bench_random_mix(search->seed));
    if (search->chosen_count > room)
        search->chosen_count = room;
}

/* The neighbours of a point that were not run, along one axis or two. */
static void add_neighbours(struct bench_search *search, uint32_t point, uint32_t most)
{
    const struct bench_space *space = search->space;
    int at[BENCH_AXES_MAX], axes = space->axis_count;

    if (!bench_space_place(space, point, at))
        return;
    for (int one = 0; one < axes; one++)
        for (int other = one; other < axes; other++)
            for (int way = 0; way < (other == one ? 2 : 4); way++) {
                int place[BENCH_AXES_MAX];
                memcpy(place, at, sizeof place);
                place[one] += way & 1 ? search->stride[one] : -search->stride[one];
                if (other != one)
                    place[other] += way & 2 ? search->stride[other] : -search->stride[other];
                if (place[one] < 0 || place[one] >= space->axes[one].count || place[other] < 0 ||
                    place[other] >= space->axes[other].count)
                    continue;
                uint32_t neighbour = bench_space_point(space, place);
                if (search->tallies[neighbour].runs == 0 && search->chosen_count < most)
                    choose(search, neighbour);
            }
}

static bool narrow(struct bench_search *search)
{
    bool narrower = false;

    for (int i = 0; i < search->space->axis_count; i++) {
        narrower |= search->stride[i] > 1;
        search->stride[i] = (search->stride[i] + 1) / 2;
    }
    return narrower;
}

/* Every neighbour is run in two batches: between near points, noise decides. */
static bool plan_nearer(struct bench_search *search)
{
    uint32_t kept = (uint32_t)(AGAIN_SHARE * search->runs_most), left = bench_search_runs_left(search),
             leaders[LEADERS];

    if (search->again) {
        search->again = false;
        return left >= bench_search_runs_of(search->chosen_count);
    }
    uint32_t most =
        left > kept + 2 * bench_search_runs_of(1) ? ((left - kept) / 2 - 2) * BENCH_BETWEEN / (BENCH_BETWEEN + 1) : 0;
    if (most < 1)
        return false;
    uint32_t count = bench_search_find_best(search, leaders, LEADERS);
    do {
        for (uint32_t i = 0; i < count; i++)
            add_neighbours(search, leaders[i], most);
    } while (search->chosen_count == 0 && narrow(search));
    search->again = search->chosen_count > 0;
    return search->again;
}

static bool plan_again(struct bench_search *search)
{
    uint32_t finalists[FINALISTS], count = bench_search_find_best(search, finalists, FINALISTS);

    if (bench_search_runs_left(search) < bench_search_runs_of(count) || search->batches >= search->rounds)
        return false;
    for (uint32_t i = 0; i < count; i++)
        choose(search, finalists[i]);
    return count > 1;
}

/* --- stages --- */

static bool plan_first(struct bench_search *search)
{
    if (!search->automatic)
        return plan_grid(search);
    if (search->batches > 0)
        return false;
    choose_few(search);
    return true;
}

static bool plan_confirmation(struct bench_search *search)
{
    uint32_t best = bench_search_best(search);

    search->best = best;
    search->settled = true;
    if (best == search->space->baseline || search->batches == search->rounds ||
        search->tallies[best].failures >= BENCH_FAILURES_MOST ||
        search->tallies[search->space->baseline].failures >= BENCH_FAILURES_MOST)
        return false;
    choose(search, search->space->baseline);
    choose(search, best);
    return true;
}

bool bench_search_choose(struct bench_search *search)
{
    if (!search->again)
        search->chosen_count = 0;
    switch (search->stage) {
    case BENCH_STAGE_FIRST:
        return plan_first(search);
    case BENCH_STAGE_NEARER:
        return plan_nearer(search);
    case BENCH_STAGE_AGAIN:
        return plan_again(search);
    case BENCH_STAGE_CONFIRM:
        return plan_confirmation(search);
    default:
        return false;
    }
}
