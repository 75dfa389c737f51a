#include "report_matrix.h"

#include <stdlib.h>

#include "bench/backends/backend.h"
#include "bench/words/columns.h"
#include "bench/words/shade.h"
#include "report_rows.h"
#include "spread.h"

#define MATRIX_MOST 64 /* endpoints, or nodes: of more, the result files have all pairs */
#define CELL 6
#define NAME 7
#define RANGE_LEAST 0.2 /* of the largest rate, so that small differences are not shaded as if they were large */

/* Where the shades of a matrix begin and end. */
struct ramp {
    enum bench_shades shades;
    double low, high; /* rates */
};

/* No blank ends a line. */
static void print_mark(char mark, bool last, FILE *out)
{
    if (mark != ' ' || !last)
        fputc(mark, out);
}

static void print_cell(double rate, char mark, const struct ramp *ramp, bool last, FILE *out)
{
    double share = rate >= 0 && ramp->high > 0 ? (rate - ramp->low) / (ramp->high - ramp->low) : 0;
    enum bench_shades shades = rate >= 0 ? ramp->shades : BENCH_SHADES_NONE;
    char text[32] = "-";

    if (rate >= 0 && rate < 0.1)
        snprintf(text, sizeof text, "%.3f", rate);
    else if (rate >= 0)
        bench_rate_text(rate, text, sizeof text);
    fprintf(out, "%s%*s", bench_shade_begin(shades, share), CELL - 1, text);
    print_mark(mark, last, out);
    fputs(bench_shade_end(shades, share), out);
}

static char mark_of(const struct bench_sample *sample)
{
    return !sample ? ' ' : sample->wrong.bytes ? '!' : sample->failures ? '*' : ' ';
}

/* "host3"; "h12", as "host12" would touch its neighbour. */
static const char *short_name(const struct bench_plan *plan, int node, uint32_t endpoint, char *text, size_t room)
{
    char name[32];

    bench_endpoint_text(plan, node, endpoint, name, sizeof name);
    if (endpoint < 10)
        snprintf(text, room, "%s", name);
    else
        snprintf(text, room, "%.1s%u", name, endpoint);
    return text;
}

/* The columns [first, last) of one direction. */
static void print_block(const struct bench_result *result, const struct bench_set *set, const struct bench_way *way,
                        uint32_t first, uint32_t last, const struct ramp *ramp, FILE *out)
{
    const struct bench_plan *plan = result->plan;
    char name[32];

    snprintf(name, sizeof name, "%d>%d", way->src_node, way->dst_node);
    fprintf(out, "%-*s", NAME, name);
    for (uint32_t i = first; i < last; i++) {
        fprintf(out, "%*s", CELL - 1, short_name(plan, way->dst_node, i, name, sizeof name));
        print_mark(' ', i + 1 == last, out);
    }
    fputc('\n', out);
    for (uint32_t src = 0; src < plan->endpoints; src++) {
        fprintf(out, "%-*s", NAME, short_name(plan, way->src_node, src, name, sizeof name));
        for (uint32_t dst = first; dst < last; dst++) {
            struct bench_pair pair = {
                .src = src, .dst = dst, .src_node = (uint16_t)way->src_node, .dst_node = (uint16_t)way->dst_node};
            const struct bench_sample *sample = bench_sample_find(result, set, &pair);
            print_cell(sample ? bench_sample_rate(sample) : -1, mark_of(sample), ramp, dst + 1 == last, out);
        }
        fputc('\n', out);
    }
}

static void print_way(const struct bench_result *result, const struct bench_set *set, const struct bench_way *way,
                      const struct ramp *ramp, FILE *out)
{
    uint32_t fit = (uint32_t)(bench_columns(out) - NAME) / CELL, endpoints = result->plan->endpoints;

    for (uint32_t first = 0; first < endpoints; first += fit)
        print_block(result, set, way, first, first + fit < endpoints ? first + fit : endpoints, ramp, out);
}

/* --- by node --- */

/* From one node to another, or within one. */
struct between {
    double rate; /* median of the pairs; negative: none was measured */
    char mark;
};

struct rated {
    uint32_t cell;
    double rate;
};

static int compare_rated(const void *one, const void *other)
{
    const struct rated *a = one, *b = other;

    return a->cell != b->cell ? (a->cell > b->cell) - (a->cell < b->cell) : (a->rate > b->rate) - (a->rate < b->rate);
}

static void fill_between(const struct bench_result *result, const struct bench_set *set, struct rated *rated,
                         struct between *cells)
{
    uint32_t nodes = (uint32_t)result->node_count;
    size_t count = 0;

    for (uint32_t i = 0; i < nodes * nodes; i++)
        cells[i] = (struct between){-1, ' '};
    for (size_t i = 0; i < result->sample_count; i++) {
        const struct bench_sample *sample = &result->samples[i];
        uint32_t cell = sample->pair.src_node * nodes + sample->pair.dst_node;
        if (!bench_sample_in_set(sample, set) || bench_sample_rate(sample) < 0)
            continue;
        rated[count++] = (struct rated){cell, bench_sample_rate(sample)};
        if (cells[cell].mark != '!' && mark_of(sample) != ' ')
            cells[cell].mark = mark_of(sample);
    }
    qsort(rated, count, sizeof *rated, compare_rated);
    for (size_t first = 0, end; first < count; first = end) {
        for (end = first + 1; end < count && rated[end].cell == rated[first].cell; end++) {
        }
        cells[rated[first].cell].rate = rated[first + (end - first) / 2].rate;
    }
}

static void print_nodes(const struct bench_result *result, const struct between *cells, const struct ramp *ramp,
                        FILE *out)
{
    uint32_t nodes = (uint32_t)result->node_count, fit = (uint32_t)(bench_columns(out) - NAME) / CELL;
    char name[24];

    for (uint32_t first = 0, last; first < nodes; first = last) {
        last = first + fit < nodes ? first + fit : nodes;
        fprintf(out, "%-*s", NAME, "");
        for (uint32_t dst = first; dst < last; dst++)
            fprintf(out, "%*u%s", CELL - 1, dst, dst + 1 == last ? "" : " ");
        fputc('\n', out);
        for (uint32_t src = 0; src < nodes; src++) {
            snprintf(name, sizeof name, "node%u", src);
            fprintf(out, "%-*s", NAME, name);
            for (uint32_t dst = first; dst < last; dst++)
                print_cell(cells[src * nodes + dst].rate, cells[src * nodes + dst].mark, ramp, dst + 1 == last, out);
            fputc('\n', out);
        }
    }
}

static void print_by_node(const struct bench_result *result, const struct bench_set *set, const struct ramp *ramp,
                          FILE *out)
{
    size_t nodes = (size_t)result->node_count;
    struct between *cells = calloc(nodes * nodes, sizeof *cells);
    struct rated *rated = calloc(result->sample_count + 1, sizeof *rated);

    if (cells && rated) {
        fill_between(result, set, rated, cells);
        print_nodes(result, cells, ramp, out);
    }
    free(cells);
    free(rated);
}

/* --- a set --- */

/* Of all pairs of the set, so that its directions compare. */
static struct ramp ramp_of(const struct bench_result *result, const struct bench_set *set, FILE *out)
{
    struct ramp ramp = {.shades = bench_shades_on(out)};
    bool any = false;

    for (size_t i = 0; ramp.shades && i < result->sample_count; i++) {
        double rate = bench_sample_rate(&result->samples[i]);
        if (!bench_sample_in_set(&result->samples[i], set) || rate < 0)
            continue;
        ramp.low = any && ramp.low < rate ? ramp.low : rate;
        ramp.high = ramp.high > rate ? ramp.high : rate;
        any = true;
    }
    if (ramp.low > ramp.high * (1 - RANGE_LEAST))
        ramp.low = ramp.high * (1 - RANGE_LEAST);
    return ramp;
}

static bool any_failures(const struct bench_result *result)
{
    for (size_t i = 0; i < result->sample_count; i++)
        if (result->samples[i].failures)
            return true;
    return false;
}

static void print_matrix(const struct bench_result *result, const struct bench_set *set, FILE *out)
{
    bool several = result->plan->backend_count > 1, many = result->node_count > 2;
    struct ramp ramp = ramp_of(result, set, out);
    char size[32];

    fputc('\n', out);
    bench_wrapped(out, bench_columns(out), 2, "%s%s%s, %s, GB/s: row sends to column, %s%s%s%s",
                  several ? set->backend->name : "", several ? ", " : "", bench_mode_name(set->mode),
                  wf_format_size(set->size, size, sizeof size), many ? "medians by node" : "node>node",
                  ramp.shades == BENCH_SHADES_256    ? ", darker is slower"
                  : ramp.shades == BENCH_SHADES_BOLD ? ", the slowest in bold"
                                                     : "",
                  bench_result_wrong_bytes(result) ? " (! wrong bytes)" : "",
                  any_failures(result) ? " (* a rail failed meanwhile)" : "");
    if (many ? result->node_count > MATRIX_MOST : result->plan->endpoints > MATRIX_MOST) {
        fprintf(out, "(more than %d %s: see the result files)\n", MATRIX_MOST, many ? "nodes" : "endpoints");
        return;
    }
    if (many) {
        print_by_node(result, set, &ramp, out);
        return;
    }
    for (int i = 0; i < BENCH_WAYS; i++)
        if (bench_plan_has_way(result->plan, &bench_ways[i]))
            print_way(result, set, &bench_ways[i], &ramp, out);
}

bool bench_is_last_set(const struct bench_result *result, int index)
{
    const struct bench_set *set = &result->sets[index];

    for (int i = index + 1; i < result->set_count; i++)
        if (result->sets[i].mode == set->mode && result->sets[i].backend == set->backend)
            return false;
    return true;
}

void bench_report_matrices(const struct bench_result *result, FILE *out)
{
    for (int i = 0; i < result->set_count; i++)
        if (result->sets[i].backend->moves_data && bench_is_last_set(result, i))
            print_matrix(result, &result->sets[i], out);
}
