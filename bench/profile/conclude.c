/* From what both nodes have seen to rows, stamps and samples. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/backends/backend.h"
#include "parts.h"

#define CV_MOST 0.05
#define GPU_PPM_MOST 10
#define STEERED_PPM_MOST 10
#define CHANGE_PPM_MOST 1

/* --- rows --- */

/* A message cannot have arrived before it was sent: where the clocks say so, they are wrong by that much. */
static void fill_row(struct profile *profile, size_t at)
{
    const struct profile_config *config = profile_config_of(profile, at);
    const struct bench_pair *pair = profile_pair(profile, config);
    const struct profile_mark *src = &profile->marks[pair->src_node][at], *dst = &profile->marks[pair->dst_node][at];
    struct bench_profile_row *row = &profile->rows[at];

    *row = (struct bench_profile_row){
        .config = config->id,
        .src = profile_rank(profile, pair->src_node, pair->src),
        .dst = profile_rank(profile, pair->dst_node, pair->dst),
        .size = config->size,
        .repetition = (uint32_t)(at / profile->config_count),
        .backend = (uint8_t)config->backend,
        .start_ns = profile_time(profile, pair->src_node, src->begin_ns),
        .end_ns = profile_time(profile, pair->dst_node, dst->end_ns),
        .stamps = src->troubles | dst->troubles,
        .received = dst->events[BENCH_SPAN_RECEIVED] + dst->events[BENCH_SPAN_COPIED_IN],
        .sent = src->events[BENCH_SPAN_SENT] + src->events[BENCH_SPAN_COPIED_OUT],
    };
    if (src->retransmits || dst->retransmits)
        row->stamps |= BENCH_STAMP_RETRANSMITS;
    if (row->end_ns <= row->start_ns)
        row->end_ns = row->start_ns + BENCH_PROFILE_NO_TIME;
    if (pair->src_node == pair->dst_node)
        return;
    int64_t error = profile_time_error(profile, 1, profile->marks[1][at].begin_ns);
    if (row->end_ns - row->start_ns < 2 * error)
        row->stamps |= BENCH_STAMP_ALIGNMENT;
}

/* --- what holds for the whole run --- */

/* By more than can be blamed on the comparison itself. */
static bool has_changed(const struct bench_drift *start, const struct bench_drift *end)
{
    double change = fabs(end->ppm - start->ppm);

    return start->fixes >= 3 && end->fixes >= 3 && change > CHANGE_PPM_MOST &&
           change > hypot(start->ppm_error, end->ppm_error);
}

static const struct bench_drift *last_drift(const struct profile *profile, const struct profile_window *windows)
{
    return profile->windows ? &windows[profile->windows - 1].nodes : NULL;
}

/* Of every message that needs both clocks. */
static unsigned clock_stamps(const struct profile *profile)
{
    const struct bench_drift *start = last_drift(profile, profile->start), *end = last_drift(profile, profile->end);
    unsigned stamps = 0;

    if (start && end && has_changed(start, end))
        stamps |= BENCH_STAMP_DRIFT_CHANGED;
    for (int i = 0; i < profile->windows; i++)
        for (int node = 0; node < 2; node++)
            if (fabs(profile->start[i].steered_ppm[node]) > STEERED_PPM_MOST ||
                fabs(profile->end[i].steered_ppm[node]) > STEERED_PPM_MOST)
                stamps |= BENCH_STAMP_DISCIPLINED;
    return stamps;
}

/* Surely faster or slower by more than it may be. */
static bool is_apart(const struct bench_drift *drift)
{
    return drift->fixes >= 3 && fabs(drift->ppm) - drift->ppm_error > GPU_PPM_MOST;
}

unsigned profile_gpu_stamps(const struct profile *profile, int gpu)
{
    unsigned stamps = 0;

    for (int i = 0; gpu >= 0 && i < profile->windows; i++) {
        const struct bench_drift *start = &profile->start[i].gpus[gpu], *end = &profile->end[i].gpus[gpu];
        if (is_apart(start) || is_apart(end))
            stamps |= BENCH_STAMP_GPU_DRIFT;
        if (i == profile->windows - 1 && has_changed(start, end))
            stamps |= BENCH_STAMP_DRIFT_CHANGED;
    }
    return stamps;
}

/* --- samples --- */

void profile_sample(const struct profile *profile, size_t at, struct bench_sample *sample)
{
    const struct profile_config *config = &profile->configs[at];
    const struct profile_sum *sum = &profile->sums[at];

    memset(sample, 0, sizeof *sample);
    sample->backend = profile->plan->backends[config->backend];
    sample->mode = BENCH_ISOLATED;
    sample->pair = *profile_pair(profile, config);
    sample->size = config->size;
    sample->iters = profile->plan->iters;
    sample->inflight = sample->buffers = sample->grouped = 1;
    sample->checked = profile->plan->check != BENCH_CHECK_NONE && sample->backend->moves_data;
    sample->verified_bytes = sum->verified_bytes;
    sample->wrong = sum->wrong;
    sample->cpu_s_per_gb = -1;
    sample->resent_bytes = sum->resent_bytes;
    sample->path_send = sum->path_send;
    sample->path_receive = sum->path_receive;
    sample->rail_count = sum->rail_count;
    for (int i = 0; i < sum->rail_count; i++)
        sample->rail_bytes[i] = sum->rail_bytes[i];
}

/* A lost channel has two ends, and counts once. */
static void count_row(const struct profile_mark *one, const struct profile_mark *other, struct bench_sample *sample)
{
    sample->retransmits += (uint64_t)one->retransmits + other->retransmits;
    sample->failures += one->failures > other->failures ? one->failures : other->failures;
}

static void count_events(const struct profile *profile, size_t at, struct bench_sample *sample)
{
    for (size_t row = at; row < profile->row_count; row += profile->config_count)
        count_row(&profile->marks[0][row], &profile->marks[1][row], sample);
}

/* The times of a configuration, and what they say against it. */
static int conclude_config(struct profile *profile, size_t at, double *times, struct wf_status *status)
{
    struct bench_sample sample;
    size_t count = 0;

    profile_sample(profile, at, &sample);
    for (size_t row = at; row < profile->row_count; row += profile->config_count)
        times[count++] = (double)(profile->rows[row].end_ns - profile->rows[row].start_ns);
    wf_times_of(times, count, &sample.time);
    for (size_t row = at; row < profile->row_count; row += profile->config_count) {
        if (sample.time.cv > CV_MOST)
            profile->rows[row].stamps |= BENCH_STAMP_VARIANCE;
        sample.stamps |= profile->rows[row].stamps;
    }
    count_events(profile, at, &sample);
    return bench_result_add(profile->site->result, &sample, status);
}

int profile_conclude(struct profile *profile, struct wf_status *status)
{
    double *times = calloc(profile->plan->iters + 1, sizeof *times);
    unsigned both = clock_stamps(profile);
    int result = 0;

    profile->rows = calloc(profile->row_count, sizeof *profile->rows);
    if (!times || !profile->rows) {
        free(times);
        return wf_fail(status, -ENOMEM, "no memory for %zu rows", profile->row_count);
    }
    for (size_t row = 0; row < profile->row_count; row++) {
        const struct bench_pair *pair = profile_pair(profile, profile_config_of(profile, row));
        fill_row(profile, row);
        if (pair->src_node != pair->dst_node)
            profile->rows[row].stamps |= both;
    }
    for (size_t i = 0; i < profile->span_count; i++) {
        struct bench_profile_span *span = &profile->spans[i];
        int node = span->rank < profile->plan->endpoints ? 0 : 1;
        span->begin_ns = profile_time(profile, node, span->begin_ns);
        span->end_ns = profile_time(profile, node, span->end_ns);
    }
    for (size_t at = 0; result == 0 && at < profile->config_count; at++)
        result = conclude_config(profile, at, times, status);
    free(times);
    return result;
}
