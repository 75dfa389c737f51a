/*
 * Ping-pong: the source sends, the destination answers, one message at a time. A time is half a round trip, from
 * before the send to the completion of the answer's receive, both on the source's clock.
 */
#include "measure.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "interrupt.h"

#define SLICE_MS 100

enum { PING = 0, PONG = 1 };

struct rally {
    struct bench_bed *bed;
    uint64_t size, tag;
    uint32_t pair;
    bool source; /* this node sends the pings */
    uint32_t areas;
    double *times; /* source */
    uint32_t time_count;
    struct bench_usage usage; /* in measured time */
    struct bench_wrong wrong;
};

/* Ping and pong of an iteration carry different data. */
static const uint8_t *data_of(const struct rally *rally, uint32_t iteration, int part)
{
    struct bench_origin origin = {
        .pair = rally->pair, .size = rally->size, .iteration = 2ull * iteration + (unsigned)part};

    return bench_arena_data(rally->bed->arena, rally->bed->plan, &origin);
}

static uint8_t *landing_of(const struct rally *rally, uint32_t iteration)
{
    return bench_arena_landing(rally->bed->arena, rally->size, iteration % rally->areas);
}

/* Until one of two requests has ended; its index, or -errno. */
static int await(struct rally *rally, bench_request requests[2], struct weft_completion *completion,
                 struct wf_status *status)
{
    const struct bench_bed *bed = rally->bed;
    int index, rc;

    while ((rc = bed->ops->wait(bed->backend, requests, 2, SLICE_MS, &index, completion)) == -ETIMEDOUT) {
        rc = bench_control_check(bed->control, status);
        if (rc)
            return rc;
    }
    if (rc == 0 && completion->status)
        return bench_control_failed(bed->control, completion->status, completion->text, status);
    if (rc)
        return wf_fail(status, rc, "ping-pong: %s", wf_strerror(rc));
    requests[index] = NULL;
    return index;
}

/* The send is waited for with the answer: it is done by then, but its request must be given back. */
static int await_both(struct rally *rally, bench_request requests[2], int64_t *received_ns, struct wf_status *status)
{
    struct weft_completion completion;

    for (int left = 2; left > 0; left--) {
        int index = await(rally, requests, &completion, status);
        if (index < 0)
            return index;
        if (index != 1)
            continue;
        if (completion.bytes != rally->size)
            return wf_fail(status, -EPROTO, "ping-pong: a message came with the wrong length");
        *received_ns = completion.completed_ns;
    }
    return 0;
}

static int post_recv(struct rally *rally, uint32_t iteration, bench_request *request, struct wf_status *status)
{
    const struct bench_bed *bed = rally->bed;
    int rc = bed->ops->recv(bed->backend, rally->pair, landing_of(rally, iteration), rally->size, rally->tag, request);

    return rc ? bench_control_failed(bed->control, rc, wf_strerror(rc), status) : 0;
}

static int post_send(struct rally *rally, const uint8_t *data, bench_request *request, struct wf_status *status)
{
    const struct bench_bed *bed = rally->bed;
    int rc = bed->ops->send(bed->backend, rally->pair, data, rally->size, rally->tag, request);

    return rc ? bench_control_failed(bed->control, rc, wf_strerror(rc), status) : 0;
}

static int serve(struct rally *rally, uint32_t first, uint32_t count, struct wf_status *status)
{
    int rc = 0;

    for (uint32_t i = first; rc == 0 && i < first + count; i++) {
        bench_request requests[2] = {NULL, NULL};
        int64_t start = wf_clock_now(&wf_clock_monotonic), end = 0;
        rc = post_recv(rally, i, &requests[1], status);
        if (rc == 0)
            rc = post_send(rally, data_of(rally, i, PING), &requests[0], status);
        if (rc == 0)
            rc = await_both(rally, requests, &end, status);
        if (rc == 0 && rally->times)
            rally->times[rally->time_count++] = (double)(end - start) / 2;
        if (rc == 0)
            rc = bench_interrupted(status);
    }
    return rc;
}

static int answer(struct rally *rally, uint32_t first, uint32_t count, bench_request *posted, struct wf_status *status)
{
    int rc = 0;

    for (uint32_t i = first; rc == 0 && i < first + count; i++) {
        bench_request requests[2] = {NULL, *posted};
        struct weft_completion completion;
        int index = await(rally, requests, &completion, status);
        *posted = NULL;
        if (index < 0)
            return index;
        rc = post_send(rally, data_of(rally, i, PONG), &requests[0], status);
        /* The next receive stands before its ping can come, the last one's landing is not overwritten. */
        if (rc == 0 && i + 1 < first + count)
            rc = post_recv(rally, i + 1, posted, status);
        while (rc == 0 && requests[0]) {
            index = await(rally, requests, &completion, status);
            rc = index < 0 ? index : 0;
        }
        if (rc == 0)
            rc = bench_interrupted(status);
    }
    return rc;
}

static int run(struct rally *rally, uint32_t first, uint32_t count, struct wf_status *status)
{
    bench_request posted = NULL;
    struct bench_usage before;
    int64_t start;
    int rc = rally->source ? 0 : post_recv(rally, first, &posted, status);

    if (rc == 0)
        rc = bench_control_start(rally->bed->control, !rally->source, &start, status);
    bench_usage_now(&before);
    if (rc == 0)
        rc = rally->source ? serve(rally, first, count, status) : answer(rally, first, count, &posted, status);
    bench_usage_since(&before, &rally->usage);
    return rc;
}

static int run_all(struct rally *rally, uint32_t warmup, uint32_t iters, double *times, struct wf_status *status)
{
    const struct bench_bed *bed = rally->bed;
    bool checks = bed->plan->check && bed->ops->moves_data;
    uint32_t last = warmup + iters - 1;
    int rc = warmup ? run(rally, 0, warmup, status) : 0;

    rally->times = rally->source ? times : NULL;
    memset(&rally->usage, 0, sizeof(rally->usage));
    if (rc == 0 && iters > 1)
        rc = run(rally, warmup, iters - 1, status);
    if (rc == 0 && checks)
        rc = bench_poison(bed, landing_of(rally, last), rally->size, status);
    if (rc == 0)
        rc = run(rally, last, 1, status);
    if (rc == 0 && checks)
        rc = bench_check(bed, landing_of(rally, last), data_of(rally, last, rally->source ? PONG : PING), rally->size,
                         last, &rally->wrong, status);
    return rc;
}

static void fill_sample(const struct rally *rally, const struct bench_news *both, uint32_t iters,
                        struct bench_sample *sample)
{
    const struct bench_bed *bed = rally->bed;
    double bytes = 2.0 * (double)rally->size * iters;

    memset(sample, 0, sizeof(*sample));
    sample->backend = bed->ops;
    sample->pair = bed->plan->pairs[rally->pair];
    sample->size = rally->size;
    sample->iters = iters;
    sample->inflight = 1;
    sample->buffers = rally->areas;
    sample->latency = true;
    sample->grouped = 1;
    sample->checked = bed->plan->check && bed->ops->moves_data;
    sample->wrong = rally->wrong;
    sample->wrong.bytes = both->wrong_bytes;
    sample->cpu_s_per_gb = bytes > 0 && bed->ops->moves_data ? (double)both->cpu_ns / bytes : -1;
    sample->page_faults = both->page_faults;
    sample->retransmits = both->retransmits;
    sample->failures = both->failures;
    sample->resent_bytes = both->resent_bytes;
    bench_times_of(rally->times, rally->time_count, &sample->time);
}

static int rails_now(const struct bench_bed *bed, struct weft_rail_stats *stats)
{
    int count = bed->ops->rails(bed->backend, false, stats, BENCH_RAILS_MAX);

    return count > BENCH_RAILS_MAX ? BENCH_RAILS_MAX : count < 0 ? 0 : count;
}

/* News to the other node; at the source, the sample. */
static int conclude(struct rally *rally, uint32_t iters, const struct weft_rail_stats *before,
                    struct bench_result *result, struct wf_status *status)
{
    struct bench_bed *bed = rally->bed;
    struct weft_rail_stats after[BENCH_RAILS_MAX];
    struct bench_news mine = {
        .cpu_ns = rally->usage.cpu_ns, .page_faults = rally->usage.page_faults, .wrong_bytes = rally->wrong.bytes};
    struct bench_news theirs, both;
    struct bench_sample sample;
    int rails = rails_now(bed, after), rc;

    bench_count_events(before, after, rails, &mine);
    rc = bench_control_swap(bed->control, &mine, &theirs, status);
    if (rc || !rally->source)
        return rc;
    bench_news_join(&mine, &theirs, &both);
    fill_sample(rally, &both, iters, &sample);
    sample.rail_count = rails;
    for (int i = 0; i < rails; i++)
        sample.rail_bytes[i] = after[i].received_bytes - before[i].received_bytes;
    return bench_result_add(result, &sample, status);
}

int bench_measure_latency(struct bench_bed *bed, uint64_t size, uint32_t pair, struct bench_result *result,
                          struct wf_status *status)
{
    uint32_t iters = bench_plan_iters(bed->plan, size);
    struct weft_rail_stats before[BENCH_RAILS_MAX];
    struct rally rally = {.bed = bed, .size = size, .tag = ++bed->serial, .pair = pair};
    double *times = calloc(iters, sizeof(*times));
    int rc;

    if (!times)
        return wf_fail(status, -ENOMEM, "no memory for %u times", iters);
    bench_touch(times, (uint64_t)iters * sizeof(*times));
    rally.source = bed->plan->pairs[pair].src_node == bed->node;
    rally.areas = bench_plan_areas(bed->plan, size);
    rails_now(bed, before);
    rc = run_all(&rally, bed->plan->warmup, iters, times, status);
    if (rc == 0)
        rc = conclude(&rally, iters, before, result, status);
    free(times);
    return rc;
}
