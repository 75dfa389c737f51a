#include "report_matrix.h"

#include "bench/backends/backend.h"
#include "bench/words/columns.h"
#include "report_rows.h"
#include "spread.h"

#define MATRIX_MOST 64 /* endpoints: of more, the result files have all pairs */
#define CELL 6
#define NAME 7

/* No blank ends a line. */
static void print_mark(char mark, bool last, FILE *out)
{
    if (mark != ' ' || !last)
        fputc(mark, out);
}

static void print_cell(const struct bench_sample *sample, bool last, FILE *out)
{
    double rate = sample ? bench_sample_rate(sample) : -1;
    char text[32] = "-";

    if (rate >= 0 && rate < 0.1)
        snprintf(text, sizeof text, "%.3f", rate);
    else if (rate >= 0)
        bench_rate_text(rate, text, sizeof text);
    fprintf(out, "%*s", CELL - 1, text);
    print_mark(!sample ? ' ' : sample->wrong.bytes ? '!' : sample->failures ? '*' : ' ', last, out);
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
                        uint32_t first, uint32_t last, FILE *out)
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
                .src = src, .dst = dst, .src_node = (uint8_t)way->src_node, .dst_node = (uint8_t)way->dst_node};
            print_cell(bench_sample_find(result, set, &pair), dst + 1 == last, out);
        }
        fputc('\n', out);
    }
}

static void print_way(const struct bench_result *result, const struct bench_set *set, const struct bench_way *way,
                      FILE *out)
{
    uint32_t fit = (uint32_t)(bench_columns(out) - NAME) / CELL, endpoints = result->plan->endpoints;

    for (uint32_t first = 0; first < endpoints; first += fit)
        print_block(result, set, way, first, first + fit < endpoints ? first + fit : endpoints, out);
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
    char size[32];

    fputc('\n', out);
    bench_wrapped(out, bench_columns(out), 2, "%s%s%s, %s, GB/s: row sends to column, node>node%s%s",
                  several ? set->backend->name : "", several ? ", " : "", bench_mode_name(set->mode),
                  wf_format_size(set->size, size, sizeof size),
                  bench_result_wrong_bytes(result) ? " (! wrong bytes)" : "",
                  any_failures(result) ? " (* a rail failed meanwhile)" : "");
    if (result->plan->endpoints > MATRIX_MOST) {
        fprintf(out, "(more than %d endpoints: see the result files)\n", MATRIX_MOST);
        return;
    }
    for (int i = 0; i < BENCH_WAYS; i++)
        if (bench_plan_has_way(result->plan, &bench_ways[i]))
            print_way(result, set, &bench_ways[i], out);
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
