#include "csv.h"

#include <inttypes.h>

#include "bench/backends/backend.h"
#include "bench/plan/names.h"
#include "bench/words/whole.h"

static const char header[] =
    "backend,memory,mode,pattern,scope,test,src,dst,size_bytes,iters,grouped,time_us_min,time_us_p50,"
    "time_us_p90,time_us_p99,time_us_p999,time_us_max,time_us_mean,time_us_cv,bw_gb_per_s,"
    "wrong_bytes,rails,cpu_s_per_gb,retransmits,failures,resent_bytes,page_faults,inflight,buffers,background_size_"
    "bytes,"
    "background_inflight,background_src_to_dst_bw_gb_per_s,background_dst_to_src_bw_gb_per_s,messages_per_s,"
    "verified_bytes,measured_bytes,times_contain_verification,time_us_p10,stamp,path_send,path_receive\n";

/* An empty field where the JSON has null. */
static void put_optional(FILE *file, double value)
{
    if (value < 0)
        fputc(',', file);
    else
        fprintf(file, ",%.9g", value);
}

static void put_rails(FILE *file, const struct bench_sample *sample, const struct bench_rail_names *names)
{
    fputc(',', file);
    for (int i = 0; i < sample->rail_count; i++)
        fprintf(file, "%s%s=%" PRIu64, i ? ";" : "", i < names->count ? names->names[i] : "?", sample->rail_bytes[i]);
}

/* Empty fields where there was none. */
static void put_background(FILE *file, const struct bench_sample *sample)
{
    if (sample->background == 0)
        fputs(",,", file);
    else
        fprintf(file, ",%" PRIu64 ",%u", sample->background, sample->background_inflight);
    put_optional(file, bench_background_rate(sample, &sample->forth));
    put_optional(file, bench_background_rate(sample, &sample->back));
}

static void put_path(FILE *file, enum bench_path path)
{
    const char *name = bench_path_name(path);

    fprintf(file, ",%s", name ? name : "");
}

static void put_sample(FILE *file, const struct bench_result *result, const struct bench_sample *sample)
{
    const struct wf_times *time = &sample->time;
    char src[32], dst[32], memory[48], stamps[BENCH_STAMPS_TEXT];

    fprintf(file, "%s,%s,%s,%s,%s,%s,%s,%s,%" PRIu64 ",%u,%u", sample->backend->name,
            bench_both_memories(sample->pair.src_memory, sample->pair.dst_memory, memory, sizeof memory),
            bench_mode_name(sample->mode), result->plan->pattern,
            sample->pair.src_node == sample->pair.dst_node ? "intra" : "inter",
            sample->latency ? "latency" : "bandwidth", bench_src_name(&sample->pair, src, sizeof src),
            bench_dst_name(&sample->pair, dst, sizeof dst), sample->size, sample->iters, sample->grouped);
    fprintf(file, ",%.9g,%.9g,%.9g,%.9g,%.9g,%.9g,%.9g,%.9g", time->min, time->p50, time->p90, time->p99, time->p999,
            time->max, time->mean, time->cv);
    put_optional(file, bench_sample_rate(sample));
    if (sample->checked)
        fprintf(file, ",%" PRIu64, sample->wrong.bytes);
    else
        fputc(',', file);
    put_rails(file, sample, &result->rails[sample->latency ? sample->pair.src_node : sample->pair.dst_node]);
    put_optional(file, sample->cpu_s_per_gb);
    fprintf(file, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%u,%u", sample->retransmits, sample->failures,
            sample->resent_bytes, sample->page_faults, sample->inflight, sample->buffers);
    put_background(file, sample);
    put_optional(file, bench_sample_messages_per_s(sample));
    fprintf(file, ",%" PRIu64 ",%" PRIu64 ",%s,%.9g,%s", sample->verified_bytes, bench_sample_measured_bytes(sample),
            sample->timed_check ? "true" : "false", time->p10,
            bench_stamps_text(sample->stamps, stamps, sizeof stamps));
    put_path(file, (enum bench_path)sample->path_send);
    put_path(file, (enum bench_path)sample->path_receive);
    fputc('\n', file);
}

static int put_all(const void *what, FILE *file)
{
    const struct bench_result *result = what;
    char cut[320];

    fputs(header, file);
    for (size_t i = 0; i < result->sample_count; i++)
        put_sample(file, result, &result->samples[i]);
    if (bench_cut_text(result, cut, sizeof cut)[0])
        fprintf(file, "# %s: %zu of %" PRIu64 " samples\n", cut, result->sample_count,
                result->plan ? bench_plan_samples(result->plan) : 0);
    return 0;
}

int bench_result_csv(const struct bench_result *result, const char *path, struct wf_status *status)
{
    return bench_write_whole(path, put_all, result, status);
}
