#include "memory.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "pattern.h"
#include "sample.h"
#include "words.h"

#define PAGE 4096ull
#define LIBRARY_BYTES (64ull << 20) /* what the process needs beside the buffers, roughly */

uint64_t bench_landing_stride(uint64_t size)
{
    return (size + BENCH_GUARD + PAGE - 1) & ~(PAGE - 1);
}

/* Only the two endpoints of a ping-pong have it. */
uint64_t bench_background_need(const struct bench_plan *plan, int node, uint32_t places, uint32_t place)
{
    if (!plan->background || !bench_plan_receivers_at(plan, BENCH_ISOLATED, node, places, place))
        return 0;
    return plan->background_inflight * bench_landing_stride(plan->background);
}

uint64_t bench_landings_need(const struct bench_plan *plan, int node, uint32_t places, uint32_t place)
{
    uint64_t most = 0;

    for (int mode = 0; mode < BENCH_MODES; mode++) {
        uint64_t receivers = plan->modes[mode] ? bench_plan_receivers_at(plan, mode, node, places, place) : 0;
        for (int i = 0; i < plan->size_count; i++) {
            uint64_t count = receivers * bench_plan_areas(plan, plan->sizes[i]), bytes;
            if (__builtin_mul_overflow(count, bench_landing_stride(plan->sizes[i]), &bytes))
                return UINT64_MAX;
            if (bytes > most)
                most = bytes;
        }
    }
    return most;
}

/* Either way of a ping-pong has its own: neither node's data can pass for the other's. */
uint64_t bench_sender_areas(const struct bench_plan *plan, uint64_t size)
{
    return (uint64_t)bench_plan_areas(plan, size) * (plan->latency ? 2 : 1);
}

/* Both nodes hold what either sends, to verify it. */
uint64_t bench_stream_need(const struct bench_plan *plan)
{
    uint64_t largest = bench_plan_largest(plan);
    uint64_t most = bench_stream_bytes(plan->background > largest ? plan->background : largest);

    for (int mode = 0; plan->buffers && mode < BENCH_MODES; mode++)
        for (int i = 0; plan->modes[mode] && i < plan->size_count * 2; i++) {
            uint64_t size = plan->sizes[i / 2], senders = bench_plan_senders(plan, mode, i % 2), bytes;
            if (__builtin_mul_overflow(senders * bench_sender_areas(plan, size), bench_landing_stride(size), &bytes))
                return UINT64_MAX;
            if (bytes > most)
                most = bytes;
        }
    return most;
}

uint64_t bench_stream_need_at(const struct bench_plan *plan, int node, uint32_t places, uint32_t place)
{
    bool sends = false;

    for (int mode = 0; mode < BENCH_MODES; mode++)
        sends |= plan->modes[mode] && bench_plan_senders_at(plan, mode, node, places, place) > 0;
    return sends ? bench_stream_need(plan) : 0;
}

/* Times of one phase, and the samples of all. */
static uint64_t records_need(const struct bench_plan *plan)
{
    uint64_t pairs = plan->modes[BENCH_LOADED] ? plan->pair_count : plan->group, longest = plan->warmup, times, samples;

    for (int i = 0; i < plan->size_count; i++)
        if (bench_plan_iters(plan, plan->sizes[i]) > longest)
            longest = bench_plan_iters(plan, plan->sizes[i]);
    if (__builtin_mul_overflow(pairs * (sizeof(double) + sizeof(int64_t)), longest, &times) ||
        __builtin_mul_overflow(bench_plan_samples(plan), sizeof(struct bench_sample), &samples))
        return UINT64_MAX;
    return times > UINT64_MAX - samples ? UINT64_MAX : times + samples;
}

uint64_t bench_memory_need_at(const struct bench_plan *plan, int node, uint32_t places, uint32_t place)
{
    uint64_t sum = bench_stream_need_at(plan, node, places, place);

    if (__builtin_add_overflow(sum, bench_landings_need(plan, node, places, place), &sum) ||
        __builtin_add_overflow(sum, bench_background_need(plan, node, places, place), &sum))
        return UINT64_MAX;
    return sum;
}

uint64_t bench_memory_need(const struct bench_plan *plan, int node, const struct bench_gpus *gpus)
{
    uint64_t sum = LIBRARY_BYTES, staging = gpus->staging_bytes * gpus->count + BENCH_BOUNCE;
    uint64_t landings = bench_landings_need(plan, node, 1, 0);

    if (!gpus->count && __builtin_add_overflow(landings, bench_background_need(plan, node, 1, 0), &landings))
        return UINT64_MAX;
    if (__builtin_add_overflow(sum, bench_stream_need(plan), &sum) ||
        __builtin_add_overflow(sum, gpus->count ? staging : landings, &sum) ||
        __builtin_add_overflow(sum, records_need(plan), &sum))
        return UINT64_MAX;
    return sum;
}

/* ------------------------------------------------------------------------------------------- what there is */

/* What to do about it, as the plan is. Returns `text`. */
static char *remedy(const struct bench_plan *plan, char *text, size_t room)
{
    char largest[32];

    snprintf(text, room, "lower --end or --size (now up to %s), --endpoints or %s%s",
             wf_format_size(bench_plan_largest(plan), largest, sizeof(largest)),
             plan->background ? "--background"
             : plan->buffers  ? "--buffers"
                              : "--inflight",
             plan->modes[BENCH_LOADED] ? ", or use --mode isolated" : "");
    return text;
}

int bench_memory_check(const struct bench_plan *plan, uint64_t need, struct wf_status *status)
{
    char wanted[32], there[32], lower[160];
    const char *why;
    uint64_t available = bench_memory_available(&why);

    if (need <= available)
        return 0;
    return wf_fail(status, -ENOMEM, "needs %s of memory here and has %s (%s): %s",
                   bench_human_bytes(need, wanted, sizeof(wanted)), bench_human_bytes(available, there, sizeof(there)),
                   why, remedy(plan, lower, sizeof(lower)));
}

int bench_memory_check_gpu(const struct bench_plan *plan, const struct weft_gpu_info *gpu, uint64_t need,
                           struct wf_status *status)
{
    char wanted[32], there[32], lower[160];

    if (need <= gpu->bytes)
        return 0;
    return wf_fail(status, -ENOMEM, "needs %s of the memory of GPU %d, which has %s: %s",
                   bench_human_bytes(need, wanted, sizeof(wanted)), gpu->index,
                   bench_human_bytes(gpu->bytes, there, sizeof(there)), remedy(plan, lower, sizeof(lower)));
}
