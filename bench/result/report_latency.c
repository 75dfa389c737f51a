#include "report_latency.h"

#include "bench/backends/backend.h"
#include "bench/words/columns.h"

#define INDENT 7 /* of what belongs to a line above */

static void put_time(double us, struct bench_row *row)
{
    char text[32];

    bench_row_put(row, 9, "%s", bench_time_text(us, text, sizeof text));
}

static void print_times(const struct bench_sample *sample, FILE *out)
{
    const struct wf_times *time = &sample->time;
    struct bench_row row;
    char text[32];

    bench_row_begin(&row, out);
    bench_row_put(&row, 7, "%s", wf_format_size(sample->size, text, sizeof text));
    bench_row_put(&row, 8, "%u", sample->iters);
    put_time(time->min, &row);
    put_time(time->p50, &row);
    put_time(time->p90, &row);
    put_time(time->p99, &row);
    put_time(time->p999, &row);
    put_time(time->max, &row);
    bench_row_put(&row, 8, "%s",
                  sample->checked ? bench_count_text((double)sample->wrong.bytes, text, sizeof text) : "-");
    bench_row_end(&row);
}

static void print_head(FILE *out)
{
    static const char *const times[] = {"min", "median", "p90", "p99", "p99.9", "max"};
    struct bench_row row;

    fprintf(out, "\nhalf round trip of a message\n");
    bench_row_begin(&row, out);
    bench_row_put(&row, 7, "size");
    bench_row_put(&row, 8, "n");
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
        bench_row_put(&row, 9, "%s", times[i]);
    bench_row_put(&row, 8, "wrong");
    bench_row_end(&row);
}

static void print_background(const struct bench_sample *sample, FILE *out)
{
    char size[32], forth[32], back[32], text[200];
    int column = INDENT;

    if (sample->background == 0)
        return;
    snprintf(text, sizeof text, "beside it: %s, %u in flight, %s GB/s src -> dst, %s GB/s back",
             wf_format_size(sample->background, size, sizeof size), sample->background_inflight,
             bench_rate_text(bench_background_rate(sample, &sample->forth), forth, sizeof forth),
             bench_rate_text(bench_background_rate(sample, &sample->back), back, sizeof back));
    fprintf(out, "%*s", INDENT, "");
    bench_put_wrapped(out, text, &column, INDENT, bench_columns(out));
    fputc('\n', out);
}

void bench_report_latency_set(const struct bench_result *result, const struct bench_set *set,
                              const struct bench_set *before, FILE *out)
{
    bool several = result->plan->backend_count > 1;

    if (!before)
        print_head(out);
    for (size_t i = 0; i < result->sample_count; i++) {
        if (!bench_sample_in_set(&result->samples[i], set))
            continue;
        if (several)
            fprintf(out, "%s:\n", set->backend->name);
        print_times(&result->samples[i], out);
        print_background(&result->samples[i], out);
    }
}
