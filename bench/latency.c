/*
 * Ping-pong: the source sends, the destination answers, one message at a time. A time is half a round trip on the
 * source's clock, and begins where the one before it ended: nothing that an iteration takes is left out. What does not
 * have to happen between an answer and the next ping (or a ping and its answer) is done while a message is on its way.
 * Beside it there may be a background (background.h), in the same thread.
 */
#include "measure.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "background.h"
#include "base/clock.h"
#include "interrupt.h"

#define SLICE_MS 100

enum { PING = 0, PONG = 1 };

/* The places of the requests; those of the background come behind. The ping-pong's come first: of several that have
 * ended, a wait finds the first. */
enum { SEND = 0, RECV = 1, BESIDE = 2 };

struct rally {
    struct bench_bed *bed;
    uint64_t size, tag;
    uint32_t pair;
    bool source;    /* this node sends the pings */
    uint32_t place; /* of the arena: this node's endpoint */
    uint32_t areas;
    bench_request *requests; /* BESIDE and those of the background */
    struct bench_background background;
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
    return bench_arena_landing(rally->bed->arena, rally->place, rally->size, iteration % rally->areas);
}

/* Until a request has ended; its index, or -errno. */
static int await_any(struct rally *rally, struct weft_completion *completion, struct wf_status *status)
{
    const struct bench_bed *bed = rally->bed;
    int count = BESIDE + (int)bench_background_requests(&rally->background), index, rc;

    while ((rc = bed->ops->wait(bed->backend, rally->requests, count, SLICE_MS, &index, completion)) == -ETIMEDOUT) {
        rc = bench_control_check(bed->control, status);
        if (rc)
            return rc;
    }
    return rc ? wf_fail(status, rc, "ping-pong: %s", wf_strerror(rc)) : index;
}

/* What goes on beside the ping-pong goes on while it waits. */
static int take_beside(struct rally *rally, int index, const struct weft_completion *completion,
                       struct wf_status *status)
{
    int rc = bench_background_take(&rally->background, (uint32_t)(index - BESIDE), completion, status);

    return rc ? rc : bench_interrupted(status);
}

/* Until the send or the receive of the ping-pong has ended: which, or -errno. */
static int await(struct rally *rally, struct weft_completion *completion, struct wf_status *status)
{
    int index, rc;

    while ((index = await_any(rally, completion, status)) >= BESIDE) {
        rc = take_beside(rally, index, completion, status);
        if (rc)
            return rc;
    }
    if (index < 0)
        return index;
    rally->requests[index] = NULL;
    if (completion->status)
        return bench_control_failed(rally->bed->control, completion->status, completion->text, status);
    if (index == RECV && completion->bytes != rally->size)
        return wf_fail(status, -EPROTO, "ping-pong: a message came with the wrong length");
    return index;
}

/* Until neither is under way. A send is done when its answer comes, but its request must be given back. */
static int await_both(struct rally *rally, struct wf_status *status)
{
    struct weft_completion completion;

    while (rally->requests[SEND] || rally->requests[RECV]) {
        int index = await(rally, &completion, status);
        if (index < 0)
            return index;
    }
    return 0;
}

static int post_recv(struct rally *rally, uint32_t iteration, struct wf_status *status)
{
    const struct bench_bed *bed = rally->bed;
    int rc = bed->ops->recv(bed->backend, rally->pair, landing_of(rally, iteration), rally->size, rally->tag,
                            &rally->requests[RECV]);

    return rc ? bench_control_failed(bed->control, rc, wf_strerror(rc), status) : 0;
}

static int post_send(struct rally *rally, const uint8_t *data, struct wf_status *status)
{
    const struct bench_bed *bed = rally->bed;
    int rc = bed->ops->send(bed->backend, rally->pair, bench_arena_source(bed->arena, rally->place, data), rally->size,
                            rally->tag, &rally->requests[SEND]);

    return rc ? bench_control_failed(bed->control, rc, wf_strerror(rc), status) : 0;
}

static int serve(struct rally *rally, uint32_t first, uint32_t count, struct wf_status *status)
{
    const uint8_t *data = data_of(rally, first, PING);
    int64_t start = wf_clock_now(&wf_clock_monotonic);
    int rc = 0;

    for (uint32_t i = first; rc == 0 && i < first + count; i++) {
        rc = post_send(rally, data, status);
        if (rc == 0)
            rc = post_recv(rally, i, status);
        data = data_of(rally, i + 1, PING);
        if (rc == 0)
            rc = bench_interrupted(status);
        if (rc == 0)
            rc = await_both(rally, status);
        int64_t end = wf_clock_now(&wf_clock_monotonic);
        if (rc == 0 && rally->times)
            rally->times[rally->time_count++] = (double)(end - start) / 2;
        start = end;
    }
    return rc;
}

static int answer(struct rally *rally, uint32_t first, uint32_t count, struct wf_status *status)
{
    const uint8_t *data = data_of(rally, first, PONG);
    int rc = 0;

    for (uint32_t i = first; rc == 0 && i < first + count; i++) {
        rc = await_both(rally, status); /* the ping, and the pong before it */
        if (rc == 0)
            rc = post_send(rally, data, status);
        /* The next receive stands before its ping can come, the last one's landing is not overwritten. */
        if (rc == 0 && i + 1 < first + count)
            rc = post_recv(rally, i + 1, status);
        data = data_of(rally, i + 1, PONG);
        if (rc == 0)
            rc = bench_interrupted(status);
    }
    return rc ? rc : await_both(rally, status);
}

/* The end of what goes on beside the ping-pong, which has ended. */
static int let_end(struct rally *rally, struct wf_status *status)
{
    struct weft_completion completion;
    int rc = 0;

    bench_background_stop(&rally->background);
    while (rc == 0 && rally->background.live) {
        int index = await_any(rally, &completion, status);
        rc = index < 0 ? index : take_beside(rally, index, &completion, status);
    }
    return rc;
}

static int run(struct rally *rally, uint32_t first, uint32_t count, struct wf_status *status)
{
    struct bench_usage before;
    int64_t start = 0;
    int rc = rally->source ? 0 : post_recv(rally, first, status);

    if (rc == 0)
        rc = bench_background_listen(&rally->background, status);
    if (rc == 0)
        rc = bench_control_start(rally->bed->control, !rally->source, &start, status);
    bench_usage_now(&before);
    if (rc == 0)
        rc = bench_background_start(&rally->background, status);
    if (rc == 0)
        rc = rally->source ? serve(rally, first, count, status) : answer(rally, first, count, status);
    if (rc == 0)
        rc = let_end(rally, status);
    bench_usage_since(&before, &rally->usage);
    if (rc == 0)
        bench_background_count(&rally->background, start);
    return rc;
}

static int poison(const struct rally *rally, uint32_t last, struct wf_status *status)
{
    int rc = bench_poison(rally->bed, rally->place, landing_of(rally, last), rally->size, status);

    return rc ? rc : bench_background_poison(&rally->background, status);
}

static int check(struct rally *rally, uint32_t last, struct wf_status *status)
{
    const uint8_t *expected = data_of(rally, last, rally->source ? PONG : PING);
    int rc = bench_check(rally->bed, rally->place, landing_of(rally, last), expected, rally->size, last, &rally->wrong,
                         status);

    return rc ? rc : bench_background_check(&rally->background, status);
}

static int run_all(struct rally *rally, uint32_t warmup, uint32_t iters, double *times, struct wf_status *status)
{
    const struct bench_bed *bed = rally->bed;
    bool checks = bed->plan->check && bed->ops->moves_data;
    uint32_t last = warmup + iters - 1;
    int rc = warmup ? run(rally, 0, warmup, status) : 0;

    rally->times = rally->source ? times : NULL;
    memset(&rally->usage, 0, sizeof(rally->usage));
    bench_background_forget(&rally->background);
    if (rc == 0 && iters > 1)
        rc = run(rally, warmup, iters - 1, status);
    if (rc == 0 && checks)
        rc = poison(rally, last, status);
    if (rc == 0)
        rc = run(rally, last, 1, status);
    if (rc == 0 && checks)
        rc = check(rally, last, status);
    return rc;
}

/* What came to the other node went forth, what came here went back. */
static void fill_background(const struct rally *rally, const struct bench_news *theirs, struct bench_sample *sample)
{
    const struct bench_background *background = &rally->background;

    if (background->inflight == 0)
        return;
    sample->background = background->size;
    sample->background_inflight = background->inflight;
    sample->forth.messages = theirs->background_messages;
    sample->forth.elapsed_ns = theirs->background_ns;
    sample->back = background->flux;
}

static double bytes_of(const struct bench_sample *sample)
{
    return 2.0 * (double)sample->size * sample->iters +
           (double)sample->background * (double)(sample->forth.messages + sample->back.messages);
}

static void fill_sample(const struct rally *rally, const struct bench_news *theirs, const struct bench_news *both,
                        uint32_t iters, struct bench_sample *sample)
{
    const struct bench_bed *bed = rally->bed;
    double bytes;

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
    sample->wrong = rally->wrong.bytes || !rally->background.wrong.bytes ? rally->wrong : rally->background.wrong;
    sample->wrong.bytes = both->wrong_bytes;
    fill_background(rally, theirs, sample);
    bytes = bytes_of(sample);
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
    struct bench_news mine = {.cpu_ns = rally->usage.cpu_ns,
                              .page_faults = rally->usage.page_faults,
                              .wrong_bytes = rally->wrong.bytes + rally->background.wrong.bytes,
                              .background_messages = rally->background.flux.messages,
                              .background_ns = rally->background.flux.elapsed_ns};
    struct bench_news theirs, both;
    struct bench_sample sample;
    int rails = rails_now(bed, after), rc;

    bench_count_events(before, after, rails, &mine);
    rc = bench_control_swap(bed->control, &mine, &theirs, status);
    if (rc || !rally->source)
        return rc;
    bench_news_join(&mine, &theirs, &both);
    fill_sample(rally, &theirs, &both, iters, &sample);
    sample.rail_count = rails;
    for (int i = 0; i < rails; i++)
        sample.rail_bytes[i] = after[i].received_bytes - before[i].received_bytes;
    return bench_result_add(result, &sample, status);
}

static int prepare(struct rally *rally, double *times, uint32_t iters, struct wf_status *status)
{
    struct bench_background *background = &rally->background;
    int rc;

    if (!times)
        return wf_fail(status, -ENOMEM, "no memory for %u times", iters);
    background->bed = rally->bed;
    background->pair = rally->pair;
    background->source = rally->source;
    background->place = rally->place;
    background->tag = ++rally->bed->serial;
    rc = bench_background_init(background, status);
    if (rc)
        return rc;
    rally->requests = calloc(BESIDE + bench_background_requests(background), sizeof(*rally->requests));
    if (!rally->requests)
        return wf_fail(status, -ENOMEM, "no memory for %u requests", BESIDE + bench_background_requests(background));
    background->requests = rally->requests + BESIDE;
    return bench_populate(times, (uint64_t)iters * sizeof(*times), rally->bed->control, status);
}

int bench_measure_latency(struct bench_bed *bed, uint64_t size, uint32_t pair, struct bench_result *result,
                          struct wf_status *status)
{
    uint32_t iters = bench_plan_iters(bed->plan, size);
    struct weft_rail_stats before[BENCH_RAILS_MAX];
    struct rally rally = {.bed = bed, .size = size, .tag = ++bed->serial, .pair = pair};
    double *times = calloc(iters, sizeof(*times));
    int rc;

    rally.source = bed->plan->pairs[pair].src_node == bed->node;
    rally.place = bench_arena_place(bed->arena, rally.source ? bed->plan->pairs[pair].src : bed->plan->pairs[pair].dst);
    rally.areas = bench_plan_areas(bed->plan, size);
    rc = prepare(&rally, times, iters, status);
    rails_now(bed, before);
    if (rc == 0)
        rc = run_all(&rally, bed->plan->warmup, iters, times, status);
    if (rc == 0)
        rc = conclude(&rally, iters, before, result, status);
    bench_background_fini(&rally.background);
    free(rally.requests);
    free(times);
    return rc;
}
