#include "report_latency.h"

#include <inttypes.h>

#include "bench/backends/backend.h"

static void print_times(const struct bench_result *result, FILE *out)
{
    fprintf(out, "\nhalf round trip in us\n%-7s %9s %6s %9s %9s %9s %9s %9s %9s %9s\n", "backend", "size", "iters",
            "min", "p50", "p90", "p99", "p99.9", "max", "wrong");
    for (size_t i = 0; i < result->sample_count; i++) {
        const struct bench_sample *sample = &result->samples[i];
        const struct wf_times *time = &sample->time;
        char size[32];
        fprintf(out, "%-7s %9s %6u %9.2f %9.2f %9.2f %9.2f %9.2f %9.2f", sample->backend->name,
                wf_format_size(sample->size, size, sizeof size), sample->iters, time->min, time->p50, time->p90,
                time->p99, time->p999, time->max);
        if (sample->checked)
            fprintf(out, " %9" PRIu64 "\n", sample->wrong.bytes);
        else
            fprintf(out, " %9s\n", "-");
    }
}

/* A row for each size that there was a background beside. */
static void print_background(const struct bench_result *result, FILE *out)
{
    bool head = false;

    for (size_t i = 0; i < result->sample_count; i++) {
        const struct bench_sample *sample = &result->samples[i];
        char size[32], background[32];
        if (sample->background == 0)
            continue;
        if (!head)
            fprintf(out, "\nbackground meanwhile, GB/s\n%-7s %9s %10s %8s %10s %10s\n", "backend", "size", "background",
                    "inflight", "src -> dst", "dst -> src");
        head = true;
        fprintf(out, "%-7s %9s %10s %8u %10.3f %10.3f\n", sample->backend->name,
                wf_format_size(sample->size, size, sizeof size),
                wf_format_size(sample->background, background, sizeof background), sample->background_inflight,
                bench_background_rate(sample, &sample->forth), bench_background_rate(sample, &sample->back));
    }
}

void bench_report_latency(const struct bench_result *result, FILE *out)
{
    print_times(result, out);
    print_background(result, out);
}
