#include "bed.h"

#include <sys/resource.h>

#include "base/clock.h"

void bench_usage_now(struct bench_usage *usage)
{
    struct rusage now;

    getrusage(RUSAGE_SELF, &now);
    usage->cpu_ns = (uint64_t)(now.ru_utime.tv_sec + now.ru_stime.tv_sec) * WF_NS_PER_S +
                    (uint64_t)(now.ru_utime.tv_usec + now.ru_stime.tv_usec) * WF_NS_PER_US;
    usage->page_faults = (uint64_t)now.ru_minflt + (uint64_t)now.ru_majflt;
}

void bench_usage_since(const struct bench_usage *before, struct bench_usage *sum)
{
    struct bench_usage now;

    bench_usage_now(&now);
    sum->cpu_ns += now.cpu_ns - before->cpu_ns;
    sum->page_faults += now.page_faults - before->page_faults;
}

int bench_rails_now(const struct bench_bed *bed, bool intra, struct weft_rail_stats *stats)
{
    int count = bed->ops->rails(bed->backend, intra, stats, BENCH_RAILS_MAX);

    return count > BENCH_RAILS_MAX ? BENCH_RAILS_MAX : count < 0 ? 0 : count;
}

static uint64_t growth(uint64_t before, uint64_t after)
{
    return after > before ? after - before : 0;
}

void bench_count_events(const struct weft_rail_stats *before, const struct weft_rail_stats *after, int count,
                        struct bench_news *news)
{
    for (int i = 0; i < count; i++) {
        news->retransmits += growth(before[i].retransmits, after[i].retransmits);
        news->failures += growth(before[i].failures, after[i].failures);
        news->resent_bytes += growth(before[i].resent_bytes, after[i].resent_bytes);
    }
}

/* --- paths --- */

static struct weft_context *context_of(const struct bench_bed *bed)
{
    return bed->ops->moves_data && bed->ops->context ? bed->ops->context(bed->backend, false) : NULL;
}

void bench_direct_now(const struct bench_bed *bed, struct bench_direct *direct)
{
    struct weft_devmem_stats stats[BENCH_GPUS_MAX];
    const struct weft_context *context = context_of(bed);
    int count = context ? weft_context_devmem_stats(context, stats, BENCH_GPUS_MAX) : 0;

    *direct = (struct bench_direct){0};
    for (int i = 0; i < count && i < BENCH_GPUS_MAX; i++) {
        direct->sent += stats[i].sent_bytes;
        direct->received += stats[i].fragment_bytes;
    }
}

void bench_direct_since(const struct bench_bed *bed, const struct bench_direct *before, struct bench_news *news)
{
    struct bench_direct now;

    bench_direct_now(bed, &now);
    news->direct_sent = growth(before->sent, now.sent);
    news->direct_received = growth(before->received, now.received);
}

enum bench_path bench_bed_path(const struct bench_bed *bed, enum bench_memory memory, uint64_t direct, uint64_t all)
{
    return context_of(bed) ? bench_path_of(memory, direct, all) : BENCH_PATH_UNKNOWN;
}

/* --- check --- */

int bench_poison(const struct bench_bed *bed, uint32_t place, uint8_t *landing, uint64_t size, struct wf_status *status)
{
    return bench_arena_poison(bed->arena, place, landing, size + BENCH_GUARD, bed->control, status);
}

int bench_check(const struct bench_bed *bed, uint32_t place, const uint8_t *landing, const uint8_t *expected,
                uint64_t size, uint64_t iteration, struct bench_wrong *wrong, struct wf_status *status)
{
    uint64_t end = size + BENCH_GUARD, bytes;
    int result = 0;

    for (uint64_t at = 0; result == 0 && at < end; at += bytes) {
        const uint8_t *found;
        bytes = end - at;
        result = bench_arena_look(bed->arena, place, landing + at, &bytes, &found, status);
        if (result)
            return result;
        bench_verify(found, expected, size, at, bytes, iteration, wrong);
        result = bench_control_check(bed->control, status);
    }
    return result;
}

bool bench_verifies(const struct bench_bed *bed)
{
    return bed->plan->check != BENCH_CHECK_NONE && bed->ops->moves_data;
}

bool bench_verifies_timed(const struct bench_bed *bed)
{
    return bed->plan->check == BENCH_CHECK_ALL && bed->ops->moves_data;
}

void bench_abandon(const struct bench_bed *bed, const bench_request *requests, size_t count)
{
    if (requests && bed->ops->abandon)
        bed->ops->abandon(bed->backend, requests, count);
}
