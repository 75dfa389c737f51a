#include "report_matrix.h"

#include "bench/backends/backend.h"
#include "bench/words/columns.h"
#include "bench/words/shade.h"
#include "report_rows.h"
#include "spread.h"

#define MATRIX_MOST 64 /* endpoints: of more, the result files have all pairs */
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

static void print_cell(const struct bench_sample *sample, const struct ramp *ramp, bool last, FILE *out)
{
    double rate = sample ? bench_sample_rate(sample) : -1;
    double share = rate >= 0 && ramp->high > 0 ? (rate - ramp->low) / (ramp->high - ramp->low) : 0;
    enum bench_shades shades = rate >= 0 ? ramp->shades : BENCH_SHADES_NONE;
    char text[32] = "-";

    if (rate >= 0 && rate < 0.1)
        snprintf(text, sizeof text, "%.3f", rate);
    else if (rate >= 0)
        bench_rate_text(rate, text, sizeof text);
    fprintf(out, "%s%*s", bench_shade_begin(shades, share), CELL - 1, text);
    print_mark(!sample ? ' ' : sample->wrong.bytes ? '!' : sample->failures ? '*' : ' ', last, out);
    fputs(bench_shade_end(shades, share), out);
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
            print_cell(bench_sample_find(result, set, &pair), ramp, dst + 1 == last, out);
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
    bool several = result->plan->backend_count > 1;
    struct ramp ramp = ramp_of(result, set, out);
    char size[32];

    fputc('\n', out);
    bench_wrapped(out, bench_columns(out), 2, "%s%s%s, %s, GB/s: row sends to column, node>node%s%s%s",
                  several ? set->backend->name : "", several ? ", " : "", bench_mode_name(set->mode),
                  wf_format_size(set->size, size, sizeof size),
                  ramp.shades == BENCH_SHADES_256    ? ", darker is slower"
                  : ramp.shades == BENCH_SHADES_BOLD ? ", the slowest in bold"
                                                     : "",
                  bench_result_wrong_bytes(result) ? " (! wrong bytes)" : "",
                  any_failures(result) ? " (* a rail failed meanwhile)" : "");
    if (result->plan->endpoints > MATRIX_MOST) {
        fprintf(out, "(more than %d endpoints: see the result files)\n", MATRIX_MOST);
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
