#include "report_latency.h"

#include "bench/backends/backend.h"
#include "bench/words/columns.h"

static void put_time(double us, FILE *out)
{
    char text[32];

    fprintf(out, "%9s", bench_time_text(us, text, sizeof text));
}

static void print_times(const struct bench_sample *sample, FILE *out)
{
    const struct wf_times *time = &sample->time;
    char text[32];

    fprintf(out, "%7s%8u", wf_format_size(sample->size, text, sizeof text), sample->iters);
    put_time(time->min, out);
    put_time(time->p50, out);
    put_time(time->p90, out);
    put_time(time->p99, out);
    put_time(time->p999, out);
    put_time(time->max, out);
    fprintf(out, "%8s\n", sample->checked ? bench_count_text((double)sample->wrong.bytes, text, sizeof text) : "-");
}

static void print_background(const struct bench_sample *sample, FILE *out)
{
    char size[32], forth[32], back[32];

    if (sample->background == 0)
        return;
    fprintf(out, "%15sbeside it: %s, %u in flight, %s GB/s src -> dst, %s GB/s back\n", "",
            wf_format_size(sample->background, size, sizeof size), sample->background_inflight,
            bench_rate_text(bench_background_rate(sample, &sample->forth), forth, sizeof forth),
            bench_rate_text(bench_background_rate(sample, &sample->back), back, sizeof back));
}

void bench_report_latency_set(const struct bench_result *result, const struct bench_set *set,
                              const struct bench_set *before, FILE *out)
{
    bool several = result->plan->backend_count > 1;

    if (!before)
        fprintf(out, "\nhalf round trip of a message\n%7s%8s%9s%9s%9s%9s%9s%9s%8s\n", "size", "n", "min", "median",
                "p90", "p99", "p99.9", "max", "wrong");
    for (size_t i = 0; i < result->sample_count; i++) {
        if (!bench_sample_in_set(&result->samples[i], set))
            continue;
        if (several)
            fprintf(out, "%s:\n", set->backend->name);
        print_times(&result->samples[i], out);
        print_background(&result->samples[i], out);
    }
}
