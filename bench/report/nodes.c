/* Nodes, links between them, and rails, of runs of more than two nodes: what is slow, and a map of all. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "figures.h"
#include "oddities.h"
#include "rails.h"
#include "stats.h"

#define NODES_MOST 4096 /* numbers of nodes in a file above this are no nodes */

/* --- samples as readings --- */

static bool is_of(const struct report_set *set, uint32_t backend, enum report_mode mode)
{
    return set->backend == backend && set->mode == mode && !set->latency;
}

static bool is_node(int node)
{
    return node >= 0 && node < NODES_MOST;
}

static void add_reading(struct bench_readings *readings, const struct report_grid *grid, uint32_t size, size_t pair,
                        const struct report_sample *sample)
{
    char *const *ends = grid->run->ends.list;
    int src = report_node_of(ends[grid->pairs[pair].src]), dst = report_node_of(ends[grid->pairs[pair].dst]);

    if (!is_node(src) || !is_node(dst) || sample->counted || !(sample->rate > 0))
        return;
    readings->list[readings->count++] = (struct bench_reading){
        .src_node = (uint32_t)src,
        .dst_node = (uint32_t)dst,
        .src = sample->src,
        .dst = sample->dst,
        .size = size,
        .rate = sample->rate,
        .retransmits = sample->retransmits,
        .failures = sample->failures,
        .carried = grid->run->carried + sample->carried,
        .carried_count = sample->carried_count,
    };
    readings->nodes = src >= (int)readings->nodes ? (uint32_t)src + 1 : readings->nodes;
    readings->nodes = dst >= (int)readings->nodes ? (uint32_t)dst + 1 : readings->nodes;
}

int report_readings_init(struct report_readings *readings, const struct report_grid *grid, uint32_t backend,
                         enum report_mode mode)
{
    const struct report_run *run = grid->run;
    struct bench_readings *of = &readings->of;

    *readings = (struct report_readings){
        .of = {.list = calloc(run->sample_count + 1, sizeof *of->list),
               .endpoints = (uint32_t)run->ends.count,
               .rails = (uint32_t)run->names.count,
               .rails_compare = report_all_rails_serve(run)},
        .bytes = calloc(grid->set_count + 1, sizeof *readings->bytes),
    };
    if (!of->list || !readings->bytes)
        return -ENOMEM;
    for (size_t set = 0; set < grid->set_count; set++) {
        if (!is_of(&grid->sets[set], backend, mode))
            continue;
        for (size_t pair = 0; pair < grid->pair_count; pair++) {
            const struct report_sample *sample = report_cell(grid, set, pair);
            if (sample)
                add_reading(of, grid, of->sizes, pair, sample);
        }
        readings->largest = grid->sets[set].size;
        readings->bytes[of->sizes++] = (double)readings->largest;
    }
    of->bytes = readings->bytes;
    of->lines = readings->lines = bench_rail_lines(json_object_get(run->root, "rails"),
                                                   (const char *const *)run->names.list, of->rails, of->nodes);
    return 0;
}

void report_readings_fini(struct report_readings *readings)
{
    free(readings->of.list);
    free(readings->bytes);
    free(readings->lines);
}

/* --- what is slow --- */

static void note_endpoint(struct report_oddities *odd, const struct bench_odd *found, uint32_t backend,
                          enum report_mode mode, uint64_t size)
{
    struct report_oddity oddity = {.odd = *found, .backend = backend, .mode = mode, .size = size};

    if (found->kind == BENCH_ODD_RECEIVER)
        oddity.odd.src = UINT32_MAX;
    if (found->kind == BENCH_ODD_SENDER)
        oddity.odd.dst = UINT32_MAX;
    report_oddities_note(odd, &oddity);
}

static int look_at(const struct report_grid *grid, uint32_t backend, enum report_mode mode, struct report_oddities *odd)
{
    const struct report_run *run = grid->run;
    struct bench_known_nodes nodes = {json_object_get(run->root, "host"), json_object_get(run->root, "rails"),
                                      (const char *const *)run->names.list};
    struct bench_odd ends[REPORT_ODDITIES_MAX];
    struct report_readings readings;
    int count = 0, result = report_readings_init(&readings, grid, backend, mode);

    if (result == 0)
        result = bench_findings_look(&odd->nodes, &readings.of, &nodes, backend, mode == REPORT_LOADED);
    if (result == 0)
        count = bench_slow_endpoints(&readings.of, ends, REPORT_ODDITIES_MAX);
    for (int i = 0; i < count && i < REPORT_ODDITIES_MAX; i++)
        note_endpoint(odd, &ends[i], backend, mode, readings.largest);
    report_readings_fini(&readings);
    return count == -ENOMEM ? count : result;
}

/* Over loopback there are no links between nodes, whatever the endpoints are in. */
int report_nodes_look(const struct report_grid *grid, struct report_oddities *odd)
{
    int result = 0;

    if (json_is_true(json_object_get(grid->run->root, "loopback")))
        return 0;
    for (uint32_t backend = 0; backend < grid->run->backends.count; backend++)
        for (int mode = REPORT_ISOLATED; result == 0 && mode < REPORT_MODES; mode++)
            result = look_at(grid, backend, (enum report_mode)mode, odd);
    return result;
}

/* --- the map --- */

struct map {
    struct report_figure *figure;
    const struct report_grid *grid;
    const struct report_oddities *odd;
    size_t backend, rail, mode, size, src, dst, rate, share, mark;
};

static void add_columns(struct map *map)
{
    map->backend = report_column_add(map->figure, "backend", "", REPORT_SELECT, false);
    map->rail = report_column_add(map->figure, "rails", "", REPORT_SELECT, false);
    map->mode = report_column_add(map->figure, "mode", "", REPORT_SELECT, false);
    map->size = report_column_add(map->figure, "size", "", REPORT_SELECT, false);
    map->src = report_column_add(map->figure, "source", "", REPORT_Y, false);
    map->dst = report_column_add(map->figure, "destination", "", REPORT_X, false);
    map->rate = report_column_add(map->figure, "rate", "GB/s", REPORT_VALUE, true);
    map->share = report_column_add(map->figure, "of the median", "%", REPORT_VALUE, true);
    map->mark = report_column_add(map->figure, "remark", "", REPORT_MARK, false);
}

static const char *mark_of(const struct map *map, const struct bench_slow *cell, const struct report_set *set)
{
    bool loaded = set->mode == REPORT_LOADED;

    for (size_t i = 0; i < map->odd->nodes.count; i++) {
        const struct bench_finding *slow = &map->odd->nodes.list[i];
        if (slow->backend == set->backend && (loaded ? slow->in_loaded || !isnan(slow->loaded) : !slow->in_loaded) &&
            bench_slow_within(cell, &slow->slow))
            return slow->slow.odd.kind == BENCH_ODD_PAIR    ? slow->slow.odd.one_way ? "slow one way" : "slow"
                   : slow->slow.odd.src == BENCH_EVERY_NODE ? "slow rail"
                                                            : "slow node";
    }
    return "";
}

/* One backend, mode and size, of all rails or of one; `rates` of the size are in the order of nodes. */
static void add_cells(const struct map *map, const struct report_set *set, uint32_t rail, uint32_t nodes,
                      const double *rates)
{
    size_t links = (size_t)nodes * nodes, there = 0;
    double *sorted = calloc(links + 1, sizeof *sorted);
    char text[64];

    for (size_t i = 0; sorted && i < links; i++)
        if (!isnan(rates[i]))
            sorted[there++] = rates[i];
    report_sort(sorted, there);
    double middle = there ? report_median(sorted, there) : NAN;
    for (size_t i = 0; sorted && i < links; i++) {
        struct bench_slow cell = {.odd = {.kind = BENCH_ODD_PAIR, .src = i / nodes, .dst = i % nodes}, .rail = rail};
        if (isnan(rates[i]))
            continue;
        report_row_add(map->figure);
        report_set_text(map->figure, map->backend, map->grid->run->backends.list[set->backend]);
        report_set_text(map->figure, map->rail, rail == BENCH_EVERY_RAIL ? "all" : map->grid->run->names.list[rail]);
        report_set_text(map->figure, map->mode, report_mode_name(set->mode));
        report_set_text(map->figure, map->size, wf_format_size(set->size, text, sizeof text));
        snprintf(text, sizeof text, "node%zu", i / nodes);
        report_set_text(map->figure, map->src, text);
        snprintf(text, sizeof text, "node%zu", i % nodes);
        report_set_text(map->figure, map->dst, text);
        report_set_number(map->figure, map->rate, rates[i]);
        report_set_number(map->figure, map->share, 100 * rates[i] / middle);
        report_set_text(map->figure, map->mark, mark_of(map, &cell, set));
    }
    map->figure->failed |= !sorted;
    free(sorted);
}

/* All sizes, the largest first; of a single rail the largest alone. */
static int add_rates(const struct map *map, struct report_readings *readings, const struct report_set *like,
                     uint32_t rail)
{
    struct bench_readings *of = &readings->of;
    size_t links = (size_t)of->nodes * of->nodes;
    double *rates;
    int result = bench_slow_table(of, rail, &rates);

    for (uint32_t size = of->sizes; result == 0 && size-- > 0;) {
        struct report_set set = *like;
        set.size = (uint64_t)readings->bytes[size];
        add_cells(map, &set, rail, of->nodes, rates + size * links);
        if (rail != BENCH_EVERY_RAIL)
            break;
    }
    if (result == 0)
        free(rates);
    return result;
}

/* In their order: the first row of the map has no cell of the first node. */
static void name_nodes(const struct map *map, uint32_t nodes)
{
    char name[32];

    for (uint32_t node = 0; node < nodes; node++) {
        snprintf(name, sizeof name, "node%u", node);
        report_label_add(map->figure, map->src, name);
        report_label_add(map->figure, map->dst, name);
    }
}

static int add_mode(const struct map *map, uint32_t backend, enum report_mode mode)
{
    struct report_set like = {.backend = backend, .mode = mode};
    struct report_readings readings;
    int result = report_readings_init(&readings, map->grid, backend, mode);

    name_nodes(map, readings.of.nodes);
    if (result == 0)
        result = add_rates(map, &readings, &like, BENCH_EVERY_RAIL);
    /* When all send at once, what the rails of a node carried is counted for all that it receives together. */
    bool rails = mode == REPORT_ISOLATED && readings.of.rails > 1;
    for (uint32_t rail = 0; result == 0 && rails && rail < readings.of.rails; rail++)
        result = add_rates(map, &readings, &like, rail);
    report_readings_fini(&readings);
    return result == -ENOMEM ? result : 0; /* of too many nodes there is no map */
}

int report_nodes(struct report_figures *figures, const struct report_grid *grid, const struct report_oddities *odd,
                 struct wf_status *status)
{
    struct map map = {
        .figure = report_figure_create(
            REPORT_HEAT, "nodes", "Every link between two nodes",
            "Row sends to column: the median of the pairs of endpoints, and beside it the median of all links. Of one "
            "rail it is what that rail carried of it. What is marked is slow: the verdict says how."),
        .grid = grid,
        .odd = odd,
    };
    int result = 0;

    if (!map.figure)
        return report_figures_add(figures, NULL, status);
    add_columns(&map);
    for (uint32_t backend = 0; backend < grid->run->backends.count; backend++)
        for (int mode = REPORT_ISOLATED; result == 0 && grid->many && mode < REPORT_MODES; mode++)
            result = add_mode(&map, backend, (enum report_mode)mode);
    map.figure->failed |= result != 0;
    return report_figures_add(figures, map.figure, status);
}
