#include "grid.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "stats.h"

/* --- order --- */

static int compare_sets(const void *one, const void *other)
{
    const struct report_set *a = one, *b = other;

    if (a->backend != b->backend)
        return a->backend < b->backend ? -1 : 1;
    if (a->latency != b->latency)
        return a->latency ? 1 : -1;
    if (a->mode != b->mode)
        return a->mode < b->mode ? -1 : 1;
    return a->size < b->size ? -1 : a->size > b->size;
}

/* In the order of names, in which host10 is behind host9. */
static int compare_pairs(const void *one, const void *other, void *context)
{
    const struct report_pair *a = one, *b = other;
    char **ends = ((const struct report_run *)context)->ends.list;
    int order = a->way - b->way;

    if (order == 0 && a->src != b->src)
        order = strverscmp(ends[a->src], ends[b->src]);
    if (order == 0 && a->dst != b->dst)
        order = strverscmp(ends[a->dst], ends[b->dst]);
    return order;
}

/* --- pairs and sets --- */

static bool is_many(const struct report_run *run)
{
    int nodes[2] = {0};
    size_t count = 0;

    for (size_t i = 0; i < run->ends.count; i++) {
        int node = report_node_of(run->ends.list[i]);
        if ((count > 0 && nodes[0] == node) || (count > 1 && nodes[1] == node))
            continue;
        if (count == 2)
            return true;
        nodes[count++] = node;
    }
    return false;
}

/* -1: it is new. */
static int known_way(const struct report_grid *grid, int src_node, int dst_node)
{
    for (int i = 0; i < grid->way_count; i++)
        if (grid->many ? (grid->ways[i][1] == REPORT_ANY_NODE) == (src_node == dst_node)
                       : grid->ways[i][0] == src_node && grid->ways[i][1] == dst_node)
            return i;
    return -1;
}

static int way_of(struct report_grid *grid, int src_node, int dst_node)
{
    int way = known_way(grid, src_node, dst_node);

    if (way >= 0)
        return way;
    grid->ways[grid->way_count][0] = grid->many ? REPORT_ANY_NODE : src_node;
    grid->ways[grid->way_count][1] = !grid->many            ? dst_node
                                     : src_node == dst_node ? REPORT_ANY_NODE
                                                            : REPORT_OTHER_NODE;
    return grid->way_count++;
}

static int compare_ways(const void *one, const void *other)
{
    const int *a = one, *b = other;
    int crossing = (a[0] == a[1]) - (b[0] == b[1]); /* between nodes first */

    return crossing ? crossing : a[0] != b[0] ? (a[0] > b[0]) - (a[0] < b[0]) : (a[1] > b[1]) - (a[1] < b[1]);
}

static struct report_pair pair_of(struct report_grid *grid, const struct report_sample *sample)
{
    char **ends = grid->run->ends.list;

    return (struct report_pair){sample->src, sample->dst,
                                way_of(grid, report_node_of(ends[sample->src]), report_node_of(ends[sample->dst]))};
}

static struct report_set set_of(const struct report_sample *sample)
{
    return (struct report_set){sample->backend, sample->mode, sample->latency, sample->size};
}

/* Sorted, and each once. */
static size_t without_twins_of_sets(struct report_set *sets, size_t count)
{
    size_t kept = 0;

    qsort(sets, count, sizeof *sets, compare_sets);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || compare_sets(&sets[i], &sets[kept - 1]) != 0)
            sets[kept++] = sets[i];
    return kept;
}

static size_t without_twins_of_pairs(struct report_pair *pairs, size_t count, const struct report_run *run)
{
    size_t kept = 0;

    qsort_r(pairs, count, sizeof *pairs, compare_pairs, (void *)run);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || pairs[i].src != pairs[kept - 1].src || pairs[i].dst != pairs[kept - 1].dst)
            pairs[kept++] = pairs[i];
    return kept;
}

size_t report_set_find(const struct report_grid *grid, const struct report_set *set)
{
    const struct report_set *found = bsearch(set, grid->sets, grid->set_count, sizeof *set, compare_sets);

    return found ? (size_t)(found - grid->sets) : SIZE_MAX;
}

static size_t find_pair(const struct report_grid *grid, const struct report_pair *pair)
{
    size_t low = 0, high = grid->pair_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = compare_pairs(pair, &grid->pairs[middle], (void *)grid->run);
        if (order == 0)
            return middle;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return SIZE_MAX;
}

size_t report_pair_find(const struct report_grid *grid, uint32_t src, uint32_t dst)
{
    char **ends = grid->run->ends.list;

    int way = known_way(grid, report_node_of(ends[src]), report_node_of(ends[dst]));

    return way < 0 ? SIZE_MAX : find_pair(grid, &(struct report_pair){src, dst, way});
}

size_t report_rates(const struct report_grid *grid, size_t set, int way, double *rates)
{
    size_t count = 0;

    for (size_t pair = 0; pair < grid->pair_count; pair++) {
        const struct report_sample *sample = report_cell(grid, set, pair);
        if (sample && sample->rate > 0 && (way < 0 || grid->pairs[pair].way == way))
            rates[count++] = sample->rate;
    }
    report_sort(rates, count);
    return count;
}

const char *report_way_name(const struct report_grid *grid, int way, char *text, size_t room)
{
    if (grid->many)
        snprintf(text, room, "%s", grid->ways[way][1] == REPORT_ANY_NODE ? "within nodes" : "between nodes");
    else
        snprintf(text, room, "node%d > node%d", grid->ways[way][0], grid->ways[way][1]);
    return text;
}

/* --- the table --- */

static int fill(struct report_grid *grid, struct wf_status *status)
{
    const struct report_run *run = grid->run;

    if (grid->set_count && grid->pair_count > REPORT_CELLS_MOST / grid->set_count)
        return wf_fail(status, -E2BIG, "%zu pairs in %zu sets are more than a report can show", grid->pair_count,
                       grid->set_count);
    grid->cells = calloc(grid->set_count * grid->pair_count + 1, sizeof *grid->cells);
    if (!grid->cells)
        return wf_fail(status, -ENOMEM, "no memory for the table of samples");
    for (size_t i = 0; i < run->sample_count; i++) {
        struct report_set set = set_of(&run->samples[i]);
        struct report_pair pair = pair_of(grid, &run->samples[i]);
        grid->cells[report_set_find(grid, &set) * grid->pair_count + find_pair(grid, &pair)] = &run->samples[i];
    }
    return 0;
}

int report_grid_init(struct report_grid *grid, const struct report_run *run, struct wf_status *status)
{
    *grid = (struct report_grid){.run = run, .many = is_many(run)};
    grid->sets = calloc(run->sample_count + 1, sizeof *grid->sets);
    grid->pairs = calloc(run->sample_count + 1, sizeof *grid->pairs);
    if (!grid->sets || !grid->pairs)
        return wf_fail(status, -ENOMEM, "no memory for the table of samples");
    for (size_t i = 0; i < run->sample_count; i++)
        pair_of(grid, &run->samples[i]);
    qsort(grid->ways, (size_t)grid->way_count, sizeof *grid->ways, compare_ways);
    for (size_t i = 0; i < run->sample_count; i++) {
        grid->sets[i] = set_of(&run->samples[i]);
        grid->pairs[i] = pair_of(grid, &run->samples[i]);
    }
    grid->set_count = without_twins_of_sets(grid->sets, run->sample_count);
    grid->pair_count = without_twins_of_pairs(grid->pairs, run->sample_count, run);
    int result = fill(grid, status);
    if (result)
        report_grid_fini(grid); /* no sets, rather than sets without cells */
    return result;
}

void report_grid_fini(struct report_grid *grid)
{
    free(grid->sets);
    free(grid->pairs);
    free(grid->cells);
    *grid = (struct report_grid){0};
}
