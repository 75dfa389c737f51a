#include "slow.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/histogram.h"

#define NODES_LEAST 3
#define NOTHING 1e-3    /* part of a rail that carried nothing where others did: low, and not no value */
#define FOUND_MOST 256u /* in one table */

/* Owner: bench_slow_find(). */
struct tables {
    const struct bench_readings *readings;
    size_t links;   /* nodes * nodes */
    double *rates;  /* [size * links + link] */
    double *parts;  /* [(size * rails + rail) * links + link] */
    double *beside; /* of one rail, as rates */
    double *room;   /* for the links, or the rails of one */
    struct bench_odd *odd;
    struct bench_slow *found; /* the caller's */
    size_t most, count;
};

/* --- the tables --- */

static int in_order(const void *one, const void *other)
{
    const struct bench_reading *a = one, *b = other;

    if (a->size != b->size)
        return a->size < b->size ? -1 : 1;
    if (a->src_node != b->src_node)
        return a->src_node < b->src_node ? -1 : 1;
    if (a->dst_node != b->dst_node)
        return a->dst_node < b->dst_node ? -1 : 1;
    return a->rate < b->rate ? -1 : a->rate > b->rate;
}

static bool counts(const struct bench_readings *readings, const struct bench_reading *reading)
{
    return reading->rate > 0 && reading->src_node != reading->dst_node && reading->src_node < readings->nodes &&
           reading->dst_node < readings->nodes && reading->size < readings->sizes;
}

/* Of the line rate that the slower end has. */
static double line_of(const struct bench_readings *readings, const struct bench_reading *reading, uint32_t rail)
{
    if (!readings->lines)
        return 1;
    double src = readings->lines[reading->src_node * readings->rails + rail];
    double dst = readings->lines[reading->dst_node * readings->rails + rail];
    return src > 0 && dst > 0 ? fmin(src, dst) : 1;
}

static void add_parts(struct tables *tables, const struct bench_reading *reading, size_t link)
{
    const struct bench_readings *readings = tables->readings;

    for (uint32_t i = 0; tables->parts && i < reading->carried_count; i++) {
        uint32_t rail = reading->carried[i].rail;
        if (rail >= readings->rails)
            continue;
        double *part = &tables->parts[(reading->size * readings->rails + rail) * tables->links + link];
        *part = (isnan(*part) ? 0 : *part) + reading->carried[i].bytes / line_of(readings, reading, rail);
    }
}

/* Readings of one link and size follow each other, with their rates in order. */
static void fill(struct tables *tables)
{
    const struct bench_readings *readings = tables->readings;

    qsort(readings->list, readings->count, sizeof *readings->list, in_order);
    for (size_t i = 0, next; i < readings->count; i = next) {
        const struct bench_reading *first = &readings->list[i];
        size_t link = (size_t)first->src_node * readings->nodes + first->dst_node;
        for (next = i; next < readings->count; next++) {
            const struct bench_reading *reading = &readings->list[next];
            if (reading->size != first->size || reading->src_node != first->src_node ||
                reading->dst_node != first->dst_node)
                break;
            if (counts(readings, reading))
                add_parts(tables, reading, link);
        }
        if (counts(readings, first)) /* the slowest does: so do all */
            tables->rates[first->size * tables->links + link] =
                (readings->list[(i + next - 1) / 2].rate + readings->list[(i + next) / 2].rate) / 2;
    }
}

static double median_rate(const struct tables *tables, size_t size)
{
    size_t there = 0;

    for (size_t link = 0; link < tables->links; link++)
        if (!isnan(tables->rates[size * tables->links + link]))
            tables->room[there++] = tables->rates[size * tables->links + link];
    return there ? wf_median(tables->room, there) : NAN;
}

/* Parts become shares, and these rates of a link that is as most are, so that sizes compare. A rail that the receiver
 * does not have is none. */
static void scale_parts(struct tables *tables)
{
    size_t rails = tables->readings->rails, links = tables->links;
    double rate = NAN;

    for (size_t i = 0; i < tables->readings->sizes * links; i++) {
        double *parts = tables->parts + i / links * rails * links + i % links, sum = 0;
        if (i % links == 0)
            rate = median_rate(tables, i / links);
        for (size_t rail = 0; rail < rails; rail++)
            sum += parts[rail * links] > 0 ? parts[rail * links] : 0;
        for (size_t rail = 0; rail < rails; rail++)
            if (!isnan(parts[rail * links]))
                parts[rail * links] = sum > 0 ? fmax(parts[rail * links] / sum, NOTHING) * rate : NAN;
    }
}

static double median_of_others(const struct tables *tables, const double *parts, size_t rail)
{
    size_t there = 0;

    for (size_t i = 0; i < tables->readings->rails; i++)
        if (i != rail && !isnan(parts[i * tables->links]))
            tables->room[there++] = parts[i * tables->links];
    return there ? wf_median(tables->room, there) : NAN;
}

/* The share of a rail over the median of the others', times that: again as rates. */
static void put_beside(struct tables *tables, size_t rail)
{
    size_t links = tables->links, rails = tables->readings->rails;
    double rate = NAN;

    for (size_t i = 0; i < tables->readings->sizes * links; i++) {
        const double *parts = tables->parts + i / links * rails * links + i % links;
        if (i % links == 0)
            rate = median_rate(tables, i / links);
        tables->beside[i] = rate * parts[rail * links] / median_of_others(tables, parts, rail);
    }
}

/* --- what is found --- */

static void keep(struct tables *tables, const struct bench_odd *odd, uint32_t rail)
{
    if (tables->count < tables->most)
        tables->found[tables->count] = (struct bench_slow){.odd = *odd, .rail = rail};
    tables->count++;
}

/* Nodes and what they send or receive, or links alone. */
static void keep_kind(struct tables *tables, int count, bool links, uint32_t rail)
{
    for (int i = 0; i < count && i < (int)FOUND_MOST; i++)
        if ((tables->odd[i].kind == BENCH_ODD_PAIR) == links)
            keep(tables, &tables->odd[i], rail);
}

static int look_at_rates(struct tables *tables)
{
    const struct bench_readings *readings = tables->readings;
    struct bench_links links = {
        readings->nodes, readings->nodes, readings->sizes, tables->rates, tables->rates, readings->bytes, true};
    int count = bench_odd_find(&links, tables->odd, FOUND_MOST);

    keep_kind(tables, count, false, BENCH_EVERY_RAIL);
    keep_kind(tables, count, true, BENCH_EVERY_RAIL);
    return count;
}

static int look_at_rail(struct tables *tables, uint32_t rail)
{
    const struct bench_readings *readings = tables->readings;
    struct bench_links links = {
        readings->nodes, readings->nodes, readings->sizes, tables->beside, tables->beside, readings->bytes, true};

    put_beside(tables, rail);
    int count = bench_odd_find(&links, tables->odd, FOUND_MOST);
    keep_kind(tables, count, false, rail);
    keep_kind(tables, count, true, rail);
    return count;
}

static int look_at_all_rails(struct tables *tables)
{
    const struct bench_readings *readings = tables->readings;
    struct bench_links links = {readings->rails, tables->links, readings->sizes, tables->parts, NULL,
                                readings->bytes, false};
    int count = bench_odd_find(&links, tables->odd, FOUND_MOST);

    for (int i = 0; i < count && i < (int)FOUND_MOST; i++)
        if (tables->odd[i].kind == BENCH_ODD_SENDER) {
            uint32_t rail = (uint32_t)tables->odd[i].src;
            tables->odd[i].kind = BENCH_ODD_NODE;
            tables->odd[i].src = tables->odd[i].dst = BENCH_EVERY_NODE;
            keep(tables, &tables->odd[i], rail);
        }
    return count;
}

/* --- a search --- */

static double *nothing_in(size_t count)
{
    double *values = malloc((count + 1) * sizeof *values);

    for (size_t i = 0; values && i < count; i++)
        values[i] = NAN;
    return values;
}

static bool has_rails(const struct bench_readings *readings)
{
    return readings->rails_compare && readings->rails > 1;
}

static int tables_init(struct tables *tables, bool with_rails)
{
    const struct bench_readings *readings = tables->readings;
    size_t cells = tables->links * readings->sizes, rails = with_rails ? readings->rails : 0;

    if (cells * (rails + 1) > BENCH_SLOW_CELLS_MOST)
        return -E2BIG;
    tables->rates = nothing_in(cells);
    tables->beside = nothing_in(cells);
    tables->room = nothing_in(tables->links + rails);
    tables->parts = rails ? nothing_in(cells * rails) : NULL;
    tables->odd = calloc(FOUND_MOST, sizeof *tables->odd);
    return tables->rates && tables->beside && tables->room && tables->odd && (tables->parts || !rails) ? 0 : -ENOMEM;
}

static void tables_fini(struct tables *tables)
{
    free(tables->rates);
    free(tables->parts);
    free(tables->beside);
    free(tables->room);
    free(tables->odd);
}

static int look(struct tables *tables)
{
    int result = 0;

    fill(tables);
    if (tables->parts) {
        scale_parts(tables);
        result = look_at_all_rails(tables);
    }
    for (uint32_t rail = 0; tables->parts && result >= 0 && rail < tables->readings->rails; rail++)
        result = look_at_rail(tables, rail);
    if (result >= 0)
        result = look_at_rates(tables);
    return result < 0 ? result : (int)tables->count;
}

int bench_slow_find(struct bench_readings *readings, struct bench_slow *found, size_t most)
{
    struct tables tables = {.readings = readings, .links = (size_t)readings->nodes * readings->nodes, .found = found};

    tables.most = most;
    if (readings->nodes < NODES_LEAST)
        return 0;
    int result = tables_init(&tables, has_rails(readings));
    if (result == 0)
        result = look(&tables);
    tables_fini(&tables);
    return result;
}

/* Rates to what a rail carried of them. */
static void leave_rail(struct tables *tables, uint32_t rail)
{
    size_t rails = tables->readings->rails, links = tables->links;

    for (size_t i = 0; i < tables->readings->sizes * links; i++) {
        const double *parts = tables->parts + i / links * rails * links + i % links;
        double sum = 0;
        for (size_t other = 0; other < rails; other++)
            sum += parts[other * links] > 0 ? parts[other * links] : 0;
        tables->rates[i] = sum > 0 ? tables->rates[i] * parts[rail * links] / sum : NAN;
    }
}

int bench_slow_table(struct bench_readings *readings, uint32_t rail, double **rates)
{
    struct bench_readings bare = *readings;
    struct tables tables = {.readings = &bare, .links = (size_t)readings->nodes * readings->nodes};
    int result;

    bare.lines = NULL;
    result = tables_init(&tables, rail != BENCH_EVERY_RAIL);
    if (result == 0) {
        fill(&tables);
        if (rail != BENCH_EVERY_RAIL)
            leave_rail(&tables, rail);
        *rates = tables.rates;
        tables.rates = NULL;
    }
    tables_fini(&tables);
    return result;
}

/* --- endpoints --- */

/* As rates of a link that is as most are. */
static void fill_endpoints(struct tables *tables, double *rates)
{
    const struct bench_readings *readings = tables->readings;
    double usual = NAN;

    fill(tables);
    for (size_t i = 0; i < readings->count; i++) {
        const struct bench_reading *reading = &readings->list[i];
        if (i == 0 || reading->size != reading[-1].size)
            usual = reading->size < readings->sizes ? median_rate(tables, reading->size) : NAN;
        if (!counts(readings, reading) || reading->src >= readings->endpoints || reading->dst >= readings->endpoints)
            continue;
        size_t link = (size_t)reading->src_node * readings->nodes + reading->dst_node;
        rates[((size_t)reading->size * readings->endpoints + reading->src) * readings->endpoints + reading->dst] =
            usual * reading->rate / tables->rates[reading->size * tables->links + link];
    }
}

int bench_slow_endpoints(struct bench_readings *readings, struct bench_odd *found, size_t most)
{
    struct tables tables = {.readings = readings, .links = (size_t)readings->nodes * readings->nodes};
    size_t cells = (size_t)readings->endpoints * readings->endpoints * readings->sizes;

    if (readings->nodes < NODES_LEAST || readings->endpoints == readings->nodes)
        return 0;
    if (cells > BENCH_SLOW_CELLS_MOST)
        return -E2BIG;
    double *rates = nothing_in(cells);
    int result = tables_init(&tables, false);
    if (result == 0)
        result = rates ? 0 : -ENOMEM;
    if (result == 0) {
        struct bench_links links = {
            readings->endpoints, readings->endpoints, readings->sizes, rates, rates, readings->bytes, false};
        fill_endpoints(&tables, rates);
        result = bench_odd_find(&links, found, most);
    }
    free(rates);
    tables_fini(&tables);
    return result;
}
