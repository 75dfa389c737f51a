/* Pairs that are odd beside the others of their direction. */
#include "oddities.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "stats.h"

#define SLOW_SHARE 0.95 /* of the median of its direction: as a level of odd.h */

/* The pairs of one direction as a cube of rates. Owner: look_at(). */
struct cube {
    uint32_t *sources, *targets; /* of the run's `ends` */
    size_t source_count, target_count, size_count;
    double *rates, *bytes;
};

static size_t place_of(uint32_t *list, size_t *count, uint32_t end)
{
    for (size_t i = 0; i < *count; i++)
        if (list[i] == end)
            return i;
    list[*count] = end;
    return (*count)++;
}

static bool belongs(const struct report_set *set, const struct report_set *like)
{
    return set->backend == like->backend && set->mode == like->mode && !set->latency;
}

static int init_cube(struct cube *cube, const struct report_grid *grid, const struct report_set *like, int way)
{
    *cube = (struct cube){.sources = calloc(grid->run->ends.count + 1, sizeof(uint32_t)),
                          .targets = calloc(grid->run->ends.count + 1, sizeof(uint32_t)),
                          .bytes = calloc(grid->set_count + 1, sizeof(double))};
    if (!cube->sources || !cube->targets || !cube->bytes)
        return -ENOMEM;
    for (size_t pair = 0; pair < grid->pair_count; pair++)
        if (grid->pairs[pair].way == way) {
            place_of(cube->sources, &cube->source_count, grid->pairs[pair].src);
            place_of(cube->targets, &cube->target_count, grid->pairs[pair].dst);
        }
    /* In the order of names, which is the same both ways, also within a node. */
    qsort_r(cube->sources, cube->source_count, sizeof(uint32_t), report_compare_ends, grid->run->ends.list);
    qsort_r(cube->targets, cube->target_count, sizeof(uint32_t), report_compare_ends, grid->run->ends.list);
    for (size_t set = 0; set < grid->set_count; set++)
        if (belongs(&grid->sets[set], like))
            cube->bytes[cube->size_count++] = (double)grid->sets[set].size;
    /* Of few pairs among many endpoints most would be empty, and all of it too large: then it has no sizes. */
    if (cube->source_count * cube->target_count > REPORT_CELLS_MOST / (cube->size_count + 1))
        cube->size_count = 0;
    size_t cells = cube->source_count * cube->target_count * cube->size_count;
    cube->rates = calloc(cells + 1, sizeof *cube->rates);
    for (size_t i = 0; cube->rates && i < cells; i++)
        cube->rates[i] = NAN;
    return cube->rates ? 0 : -ENOMEM;
}

static void fini_cube(struct cube *cube)
{
    free(cube->sources);
    free(cube->targets);
    free(cube->bytes);
    free(cube->rates);
}

static void fill_cube(struct cube *cube, const struct report_grid *grid, const struct report_set *like, int way)
{
    size_t size = 0;

    for (size_t set = 0; cube->size_count && set < grid->set_count; set++) {
        if (!belongs(&grid->sets[set], like))
            continue;
        for (size_t pair = 0; pair < grid->pair_count; pair++) {
            const struct report_sample *sample = report_cell(grid, set, pair);
            const struct report_pair *of = &grid->pairs[pair];
            if (of->way != way || !sample || sample->counted || !(sample->rate > 0))
                continue;
            size_t src = place_of(cube->sources, &cube->source_count, of->src);
            size_t dst = place_of(cube->targets, &cube->target_count, of->dst);
            cube->rates[(size * cube->source_count + src) * cube->target_count + dst] = sample->rate;
        }
        size++;
    }
}

static int way_back(const struct report_grid *grid, int way)
{
    for (int i = 0; i < grid->way_count; i++)
        if (grid->ways[i][0] == grid->ways[way][1] && grid->ways[i][1] == grid->ways[way][0])
            return i;
    return -1;
}

/* Said of isolated already: the same, or an endpoint that the pair is one of. */
static bool is_said(const struct report_oddities *odd, const struct report_oddity *next)
{
    for (size_t i = 0; i < odd->count; i++) {
        const struct report_oddity *before = &odd->list[i];
        bool sender = before->odd.src == UINT32_MAX || before->odd.src == next->odd.src;
        bool receiver = before->odd.dst == UINT32_MAX || before->odd.dst == next->odd.dst;
        if (before->backend == next->backend && before->way == next->way && sender && receiver)
            return true;
    }
    return false;
}

void report_oddities_note(struct report_oddities *odd, const struct report_oddity *oddity)
{
    if (is_said(odd, oddity))
        return;
    if (odd->count < REPORT_ODDITIES_MAX)
        odd->list[odd->count++] = *oddity;
    else
        odd->more++;
}

static void note(struct report_oddities *odd, const struct bench_odd *found, const struct cube *cube,
                 const struct report_set *like, int way)
{
    struct report_oddity oddity = {
        .odd = *found,
        .backend = like->backend,
        .way = way,
        .mode = like->mode,
        .size = (uint64_t)cube->bytes[cube->size_count - 1],
    };

    oddity.odd.src = found->kind == BENCH_ODD_RECEIVER ? UINT32_MAX : cube->sources[found->src];
    oddity.odd.dst = found->kind == BENCH_ODD_SENDER ? UINT32_MAX : cube->targets[found->dst];
    report_oddities_note(odd, &oddity);
}

/* The cube of the way back has the endpoints the other way round only if both ways have the same ones. */
static bool fits_back(const struct cube *cube, const struct cube *back)
{
    return cube->source_count == back->target_count && cube->target_count == back->source_count &&
           memcmp(cube->sources, back->targets, cube->source_count * sizeof(uint32_t)) == 0 &&
           memcmp(cube->targets, back->sources, cube->target_count * sizeof(uint32_t)) == 0;
}

static int look_at(const struct report_grid *grid, const struct report_set *like, int way, struct report_oddities *odd)
{
    struct bench_odd found[REPORT_ODDITIES_MAX];
    struct cube cube = {0}, back = {0};
    int other = way_back(grid, way), count = init_cube(&cube, grid, like, way);

    if (count == 0 && other >= 0)
        count = init_cube(&back, grid, like, other);
    if (count == 0)
        fill_cube(&cube, grid, like, way);
    if (count == 0 && other >= 0)
        fill_cube(&back, grid, like, other);
    if (count == 0 && cube.size_count) {
        struct bench_links links = {cube.source_count,
                                    cube.target_count,
                                    cube.size_count,
                                    cube.rates,
                                    other >= 0 && fits_back(&cube, &back) ? back.rates : NULL,
                                    cube.bytes,
                                    false};
        count = bench_odd_find(&links, found, REPORT_ODDITIES_MAX);
    }
    for (int i = 0; i < count && i < REPORT_ODDITIES_MAX; i++)
        note(odd, &found[i], &cube, like, way);
    fini_cube(&cube);
    fini_cube(&back);
    return count < 0 ? count : 0;
}

static bool is_host(const char *end)
{
    const char *colon = strchr(end, ':');

    return colon && strncmp(colon + 1, "host", 4) == 0;
}

/* Over loopback, pairs between host memory have no link of their own: all take turns at the same processors. */
static bool has_links(const struct report_grid *grid, int way)
{
    char *const *ends = grid->run->ends.list;
    bool found = !json_is_true(json_object_get(grid->run->root, "loopback"));

    for (size_t i = 0; !found && i < grid->pair_count; i++)
        found = grid->pairs[i].way == way && !(is_host(ends[grid->pairs[i].src]) && is_host(ends[grid->pairs[i].dst]));
    return found;
}

int report_oddities_find(const struct report_grid *grid, struct report_oddities *odd, struct wf_status *status)
{
    int result = 0;

    odd->count = odd->more = odd->nodes.count = odd->nodes.more = 0;
    if (grid->many)
        result = report_nodes_look(grid, odd);
    for (uint32_t backend = 0; backend < grid->run->backends.count; backend++)
        for (int mode = REPORT_ISOLATED; mode < REPORT_MODES; mode++)
            for (int way = 0; result == 0 && !grid->many && way < grid->way_count; way++)
                if (has_links(grid, way))
                    result = look_at(grid, &(struct report_set){.backend = backend, .mode = (enum report_mode)mode},
                                     way, odd);
    return result ? wf_fail(status, result, "no memory to compare the pairs") : 0;
}

/* Whether the pair is slow in this set: at other sizes it may be as the others. */
static bool is_slow(const struct report_grid *grid, size_t set, size_t pair)
{
    const struct report_sample *sample = report_cell(grid, set, pair);
    double *rates = calloc(grid->pair_count + 1, sizeof *rates);
    size_t count = rates ? report_rates(grid, set, grid->pairs[pair].way, rates) : 0;

    bool slow = sample && count && sample->rate < SLOW_SHARE * report_median(rates, count);
    free(rates);
    return slow;
}

const char *report_oddity_of(const struct report_oddities *odd, const struct report_grid *grid, size_t set, size_t pair)
{
    const struct report_pair *of = &grid->pairs[pair];

    for (size_t i = 0; i < odd->count; i++) {
        const struct report_oddity *oddity = &odd->list[i];
        bool sender = oddity->odd.kind == BENCH_ODD_RECEIVER || oddity->odd.src == of->src;
        bool receiver = oddity->odd.kind == BENCH_ODD_SENDER || oddity->odd.dst == of->dst;
        if (sender && receiver && oddity->way == of->way && oddity->backend == grid->sets[set].backend &&
            oddity->mode == grid->sets[set].mode && is_slow(grid, set, pair))
            return oddity->odd.one_way ? "slow one way" : "slow";
    }
    return NULL;
}
