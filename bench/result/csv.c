#include "csv.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/backends/backend.h"
#include "bench/words/words.h"

static const char header[] =
    "backend,memory,mode,pattern,scope,test,src,dst,size_bytes,iters,grouped,time_us_min,time_us_p50,"
    "time_us_p90,time_us_p99,time_us_p999,time_us_max,time_us_mean,time_us_cv,bw_gb_per_s,"
    "wrong_bytes,rails,cpu_s_per_gb,retransmits,failures,resent_bytes,page_faults,inflight,buffers,background_size_"
    "bytes,"
    "background_inflight,background_src_to_dst_bw_gb_per_s,background_dst_to_src_bw_gb_per_s,messages_per_s,"
    "verified_bytes,measured_bytes,times_contain_verification,time_us_p10\n";

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

static void put_sample(FILE *file, const struct bench_result *result, const struct bench_sample *sample)
{
    const struct wf_times *time = &sample->time;
    char src[32], dst[32], memory[48];

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
    fprintf(file, ",%" PRIu64 ",%" PRIu64 ",%s,%.9g\n", sample->verified_bytes, bench_sample_measured_bytes(sample),
            sample->timed_check ? "true" : "false", time->p10);
}

static int put_all(const struct bench_result *result, FILE *file)
{
    char cut[320];

    errno = 0;
    fputs(header, file);
    for (size_t i = 0; i < result->sample_count; i++)
        put_sample(file, result, &result->samples[i]);
    if (bench_cut_text(result, cut, sizeof cut)[0])
        fprintf(file, "# %s: %zu of %" PRIu64 " samples\n", cut, result->sample_count,
                result->plan ? bench_plan_samples(result->plan) : 0);
    if (fflush(file) != 0 || ferror(file))
        return errno ? -errno : -EIO;
    return 0;
}

static int put_path(const struct bench_result *result, const char *path)
{
    FILE *file = fopen(path, "we");

    if (!file)
        return -errno;
    int code = put_all(result, file);
    if (fclose(file) != 0 && code == 0)
        code = -errno;
    return code;
}

/* A file takes the place of the one before when it is whole. A device or a pipe is written to, and so is what a link
 * leads to, which may be standard output. */
static int put_file(const struct bench_result *result, const char *path)
{
    char temporary[WF_VALUE_MAX + 48];
    struct stat there;

    if (lstat(path, &there) == 0 && !S_ISREG(there.st_mode))
        return put_path(result, path);
    snprintf(temporary, sizeof temporary, "%s.part", path);
    int code = put_path(result, temporary);
    if (code == 0 && rename(temporary, path) != 0)
        code = -errno;
    if (code)
        unlink(temporary);
    return code;
}

int bench_result_csv(const struct bench_result *result, const char *path, struct wf_status *status)
{
    bool standard = strcmp(path, "-") == 0;
    int code = standard ? put_all(result, stdout) : put_file(result, path);

    return code ? bench_cannot_write(path, code, status) : 0;
}
