/* The messages: first those that warm up and are verified, then those that count. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "bench/backends/backend.h"
#include "parts.h"

#define MESSAGE_BYTES (256u << 10) /* that stand for the fixed time of a message in the progress */

uint32_t profile_warm_ups(const struct bench_plan *plan)
{
    return plan->warmup == 0 && plan->check != BENCH_CHECK_NONE ? 1 : plan->warmup;
}

/* As bench_progress_step() counts it. */
static uint64_t work_of(const struct bench_plan *plan)
{
    uint64_t sum = 0;

    for (int i = 0; i < plan->size_count; i++)
        sum += (plan->sizes[i] + MESSAGE_BYTES) * ((uint64_t)plan->iters + profile_warm_ups(plan));
    return sum * plan->pair_count * (uint64_t)plan->backend_count;
}

static uint64_t messages_of(const struct bench_plan *plan)
{
    return bench_plan_samples(plan) * ((uint64_t)plan->iters + profile_warm_ups(plan));
}

/* --- one message --- */

static int keep_rails(struct profile_sum *sum, const struct bench_single *single)
{
    if (single->rail_count == 0)
        return 0;
    if (!sum->rail_bytes) {
        sum->rail_bytes = calloc((size_t)single->rail_count, sizeof *sum->rail_bytes);
        sum->rail_count = sum->rail_bytes ? single->rail_count : 0;
    }
    for (int i = 0; i < sum->rail_count && i < single->rail_count; i++)
        sum->rail_bytes[i] += single->rail_bytes[i];
    return sum->rail_bytes ? 0 : -ENOMEM;
}

static void keep_verified(struct profile_sum *sum, const struct bench_single *single)
{
    sum->verified_bytes += single->verified_bytes;
    if (sum->wrong.bytes)
        sum->wrong.bytes += single->wrong.bytes;
    else
        sum->wrong = single->wrong;
}

/* Of the messages so far, at the ends that this node has. Within a node no card is on the way. */
static void keep_path(const struct profile *profile, size_t row, const struct bench_single *single)
{
    const struct profile_config *config = profile_config_of(profile, row);
    const struct bench_pair *pair = profile_pair(profile, config);
    const struct bench_bed *bed = profile->site->bed;
    struct profile_sum *sum = &profile->sums[row % profile->config_count];
    uint64_t all = config->size * (row / profile->config_count + 1);

    if (pair->src_node != pair->dst_node) {
        sum->direct_sent += single->news.direct_sent;
        sum->direct_received += single->news.direct_received;
    }
    if (pair->src_node == bed->node)
        sum->path_send = (uint8_t)bench_bed_path(bed, pair->src_memory, sum->direct_sent, all);
    if (pair->dst_node == bed->node)
        sum->path_receive = (uint8_t)bench_bed_path(bed, pair->dst_memory, sum->direct_received, all);
}

static int measure_message(struct profile *profile, size_t at, uint32_t iteration, bool verified,
                           struct bench_single *single, struct wf_status *status)
{
    const struct profile_config *config = &profile->configs[at];
    struct bench_bed *bed = profile->site->bed;

    bed->ops = profile->plan->backends[config->backend];
    bed->backend = bed->backends[config->backend];
    *single = (struct bench_single){.pair = config->pair,
                                    .size = config->size,
                                    .iteration = iteration,
                                    .verified = verified && bench_verifies(bed)};
    return bench_measure_single(bed, single, status);
}

/* What this node saw of a message that counts. */
static int mark(struct profile *profile, size_t row, const struct bench_single *single, struct wf_status *status)
{
    struct profile_mark *mark = &profile->marks[profile->site->bed->node][row];
    const struct bench_pair *pair = profile_pair(profile, profile_config_of(profile, row));
    int node = profile->site->bed->node;

    if (pair->src_node != node && pair->dst_node != node)
        return 0;
    *mark = (struct profile_mark){
        .begin_ns = single->posted_ns,
        .end_ns = pair->dst_node == node ? single->landed_ns : wf_clock_now(&wf_clock_monotonic),
        .retransmits = (uint32_t)single->news.retransmits,
        .failures = (uint32_t)single->news.failures,
    };
    if (mark->end_ns < mark->begin_ns) /* it had landed before its destination looked at the clock */
        mark->begin_ns = mark->end_ns;
    struct profile_sum *sum = &profile->sums[row % profile->config_count];
    keep_verified(sum, single);
    sum->resent_bytes += single->news.resent_bytes;
    keep_path(profile, row, single);
    if (pair->dst_node == node && keep_rails(sum, single))
        return wf_fail(status, -ENOMEM, "no memory for what came on each rail");
    return 0;
}

static void step(struct profile *profile, const struct profile_config *config, const char *what)
{
    char size[32], doing[80];

    snprintf(doing, sizeof doing, "%s %s", what, wf_format_size(config->size, size, sizeof size));
    bench_progress_step(profile->site->progress, 1, config->size + MESSAGE_BYTES, doing);
}

/* --- all of them --- */

/* The last message of each configuration is verified, so that all of them are. */
static int warm_up(struct profile *profile, struct wf_status *status)
{
    uint32_t messages = profile_warm_ups(profile->plan);
    int result = 0;

    for (size_t at = 0; result == 0 && at < profile->config_count; at++) {
        struct profile_sum *sum = &profile->sums[at];
        for (uint32_t i = 0; result == 0 && i < messages; i++) {
            struct bench_single single;
            result = measure_message(profile, at, i, i + 1 == messages, &single, status);
            if (result)
                return result;
            keep_verified(sum, &single);
            result = profile_take_spans(profile, status);
            step(profile, &profile->configs[at], "warm-up");
        }
    }
    return result;
}

static int pass(struct profile *profile, uint32_t repetition, struct wf_status *status)
{
    uint32_t first = profile_warm_ups(profile->plan);
    int result = 0;

    for (size_t at = 0; result == 0 && at < profile->config_count; at++) {
        const struct profile_config *config = &profile->configs[at];
        size_t row = repetition * profile->config_count + at;
        struct bench_single single;
        result =
            measure_message(profile, at, first + repetition, profile->plan->check == BENCH_CHECK_ALL, &single, status);
        if (result == 0)
            result = mark(profile, row, &single, status);
        if (result == 0)
            result = profile_take_spans(profile, status);
        if (result == 0)
            result = profile_fix_after(profile, config->size, status);
        if (result == 0)
            result = profile_warm_again(profile, row + 1, status);
        step(profile, config, profile->plan->backend_names[config->backend]);
    }
    return result;
}

int profile_passes(struct profile *profile, struct wf_status *status)
{
    int result = profile_trace(profile, status);

    bench_progress_start(profile->site->progress, messages_of(profile->plan), work_of(profile->plan), 0);
    bench_progress_now(profile->site->progress, "warm-up");
    profile->first_tag = UINT64_MAX;
    if (result == 0)
        result = warm_up(profile, status);
    if (result == 0)
        result = profile_fix(profile, status);
    profile->first_tag = profile->site->bed->serial + 1;
    for (uint32_t repetition = 0; result == 0 && repetition < profile->plan->iters; repetition++)
        result = pass(profile, repetition, status);
    if (result == 0)
        result = profile_fix(profile, status);
    return result ? result : profile_take_spans(profile, status);
}
