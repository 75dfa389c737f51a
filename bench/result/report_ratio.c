#include "report_ratio.h"

#include <stdio.h>
#include <string.h>

#include "bench/backends/backend.h"
#include "bench/words/columns.h"
#include "bench/words/heard.h"
#include "ratio.h"

#define TABLE 66 /* columns of the table; where there are fewer, each ratio is a sentence */

static void print_number(double value, const char *format, int width, FILE *out)
{
    if (value < 0)
        fprintf(out, "%*s", width, "-");
    else
        fprintf(out, format, value);
}

static void print_pair(const double values[2], const char *format, double ratio, FILE *out)
{
    print_number(values[0], format, 9, out);
    print_number(values[1], format, 9, out);
    print_number(ratio, "%7.2f", 7, out);
}

static void print_ratio(const struct bench_ratio *ratio, bool latency, FILE *out)
{
    char size[32];

    fprintf(out, "%-9s%7s", bench_mode_name(ratio->other->mode), wf_format_size(ratio->other->size, size, sizeof size));
    if (ratio->unlike[0]) {
        fprintf(out, "  not compared: %s\n", ratio->unlike);
        return;
    }
    if (latency) {
        print_pair(ratio->time_us, "%9.1f", bench_ratio_time(ratio), out);
    } else {
        print_pair(ratio->rate, "%9.3f", bench_ratio_rate(ratio), out);
        print_pair(ratio->aggregate, "%9.3f", bench_ratio_aggregate(ratio), out);
    }
    fputc('\n', out);
}

/* As a sentence. */
static void print_narrow(const struct bench_ratio *ratio, bool latency, FILE *out)
{
    const double *values = latency ? ratio->time_us : ratio->rate;
    double quotient = latency ? bench_ratio_time(ratio) : bench_ratio_rate(ratio);
    int columns = bench_columns(out);
    char size[32];

    wf_format_size(ratio->other->size, size, sizeof size);
    if (ratio->unlike[0]) {
        bench_wrapped(out, columns, 2, "%s, %s: not compared: %s", bench_mode_name(ratio->other->mode), size,
                      ratio->unlike);
        return;
    }
    if (quotient >= 0)
        bench_wrapped(out, columns, 2, "%s, %s: median %.3f and %.3f %s, ratio %.2f",
                      bench_mode_name(ratio->other->mode), size, values[0], values[1], latency ? "us" : "GB/s",
                      quotient);
    if (!latency && bench_ratio_aggregate(ratio) >= 0)
        bench_wrapped(out, columns, 2, "%s, %s: all pairs %.3f and %.3f GB/s, ratio %.2f",
                      bench_mode_name(ratio->other->mode), size, ratio->aggregate[0], ratio->aggregate[1],
                      bench_ratio_aggregate(ratio));
}

static void print_ratio_head(const struct bench_ratio *ratio, bool latency, FILE *out)
{
    const char *other = ratio->other->backend->name;
    char columns[64];

    fputc('\n', out);
    bench_wrapped(out, bench_columns(out), 2,
                  "Weft / %s, in turns in this run: above 1 Weft is the faster (of times it is the other way round)",
                  other);
    if (bench_columns(out) < TABLE)
        return;
    snprintf(columns, sizeof columns, "%9s%9.*s%7s", "weft", (int)strcspn(other, " "), other, "ratio");
    if (latency)
        fprintf(out, "%-9s%7s%25s\n%-9s%7s%s\n", "", "", "median, us", "mode", "size", columns);
    else
        fprintf(out, "%-9s%7s%25s%25s\n%-9s%7s%s%s\n", "", "", "median, GB/s", "all pairs, GB/s", "mode", "size",
                columns, columns);
}

static void print_variables(const json_t *variables, FILE *out)
{
    const char *name;
    json_t *entry;

    json_object_foreach((json_t *)(uintptr_t)variables, name, entry)
        fprintf(out, " %s=%s%s", name, bench_heard_text(entry, "value"),
                strcmp(bench_heard_text(entry, "set_by"), "weft") == 0 ? "" : " (yours)");
}

static void print_fact(int node, const json_t *facts, FILE *out)
{
    fprintf(out, "node%d: %s %s, %s", node, bench_heard_text(facts, "backend"), bench_heard_text(facts, "version"),
            bench_heard_text(facts, "library"));
    if (json_object_get(facts, "mps"))
        fprintf(out, ", MPS %s%s", bench_heard_text(facts, "mps"),
                json_integer_value(json_object_get(facts, "shared_gpus")) ? ", GPUs shared by both nodes" : "");
    fputs("\n      ", out);
    print_variables(json_object_get(facts, "variables"), out);
    fputc('\n', out);
}

static void print_facts(const struct bench_result *result, FILE *out)
{
    const char *before = "\n";
    const json_t *facts;
    size_t index;

    for (int node = 0; node < result->node_count; node++)
        json_array_foreach(json_object_get(result->host[node], "backends"), index, facts)
        {
            fputs(before, out);
            print_fact(node, facts, out);
            before = "";
        }
}

void bench_report_ratios(const struct bench_result *result, FILE *out)
{
    const struct bench_set *before = NULL;
    const char *caveat = bench_ratio_caveat(result);
    struct bench_ratio ratio;
    int index = 0;

    while (bench_ratio_next(result, &index, &ratio)) {
        if (!before || before->backend != ratio.other->backend)
            print_ratio_head(&ratio, result->plan->latency, out);
        if (bench_columns(out) < TABLE)
            print_narrow(&ratio, result->plan->latency, out);
        else
            print_ratio(&ratio, result->plan->latency, out);
        before = ratio.other;
    }
    if (before && caveat)
        bench_wrapped(out, bench_columns(out), 2, "%s", caveat);
    print_facts(result, out);
}
