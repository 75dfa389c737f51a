/*
 * Ping-pong: the source sends, the destination answers, one message at a time. A time is half a round trip on the
 * source's clock, and begins where the one before it ended: nothing that an iteration takes is left out. What does not
 * have to happen between an answer and the next ping (or a ping and its answer) is done while a message is on its way.
 * In a verified segment (measure.h) each node looks at what lands there before it answers or goes on. Beside it there
 * may be a background (background.h), in the same thread.
 */
#include "measure.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "background.h"
#include "base/clock.h"
#include "bench/words/interrupt.h"

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
    const struct bench_segment *segment; /* that runs */
    double *times;                       /* source */
    uint32_t time_count;
    int64_t elapsed_ns;             /* of the timed segment here */
    struct bench_usage usage;       /* of the timed segment */
    struct bench_news mine, theirs; /* of the timed segment */
    uint64_t verified_bytes;
    struct bench_wrong wrong;
};

/* Ping and pong of an iteration carry different data. */
static const uint8_t *rally_data(const struct rally *rally, uint32_t iteration, int part)
{
    struct bench_origin origin = {
        .pair = rally->pair, .size = rally->size, .iteration = 2ull * iteration + (unsigned)part};

    return bench_arena_data(rally->bed->arena, rally->bed->plan, &origin);
}

static uint8_t *rally_landing(const struct rally *rally, uint32_t iteration)
{
    return bench_arena_landing(rally->bed->arena, rally->place, rally->size, iteration % rally->areas);
}

/* Until a request has ended; its index, or -errno. */
static int await_any(struct rally *rally, struct weft_completion *completion, struct wf_status *status)
{
    const struct bench_bed *bed = rally->bed;
    int count = BESIDE + (int)bench_background_requests(&rally->background), index, result;

    while ((result = bed->ops->wait(bed->backend, rally->requests, count, SLICE_MS, &index, completion)) ==
           -ETIMEDOUT) {
        result = bench_control_check(bed->control, status);
        if (result)
            return result;
    }
    return result ? wf_fail(status, result, "ping-pong: %s", wf_strerror(result)) : index;
}

/* What goes on beside the ping-pong goes on while it waits. */
static int take_beside(struct rally *rally, int index, const struct weft_completion *completion,
                       struct wf_status *status)
{
    int result = bench_background_take(&rally->background, (uint32_t)(index - BESIDE), completion, status);

    return result ? result : bench_interrupted(status);
}

/* Until the send or the receive of the ping-pong has ended: which, or -errno. */
static int await(struct rally *rally, struct weft_completion *completion, struct wf_status *status)
{
    int index;

    while ((index = await_any(rally, completion, status)) >= BESIDE) {
        int result = take_beside(rally, index, completion, status);
        if (result)
            return result;
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

static int post_rally_recv(struct rally *rally, uint32_t iteration, struct wf_status *status)
{
    const struct bench_bed *bed = rally->bed;
    uint8_t *landing = rally_landing(rally, iteration);
    int result = rally->segment->verified ? bench_poison(bed, rally->place, landing, rally->size, status) : 0;

    if (result)
        return result;
    result = bed->ops->recv(bed->backend, rally->pair, landing, rally->size, rally->tag, &rally->requests[RECV]);
    return result ? bench_control_failed(bed->control, result, wf_strerror(result), status) : 0;
}

static int post_rally_send(struct rally *rally, const uint8_t *data, struct wf_status *status)
{
    const struct bench_bed *bed = rally->bed;
    int result = bed->ops->send(bed->backend, rally->pair, bench_arena_source(bed->arena, rally->place, data),
                                rally->size, rally->tag, &rally->requests[SEND]);

    return result ? bench_control_failed(bed->control, result, wf_strerror(result), status) : 0;
}

/* What has come in an iteration, if this segment is verified. */
static int check_iteration(struct rally *rally, uint32_t iteration, struct wf_status *status)
{
    const uint8_t *expected = rally_data(rally, iteration, rally->source ? PONG : PING);

    if (!rally->segment->verified)
        return 0;
    int result = bench_check(rally->bed, rally->place, rally_landing(rally, iteration), expected, rally->size,
                             iteration, &rally->wrong, status);
    if (result == 0)
        rally->verified_bytes += rally->size;
    return result;
}

static int serve(struct rally *rally, struct wf_status *status)
{
    uint32_t first = rally->segment->first, count = rally->segment->count;
    const uint8_t *data = rally_data(rally, first, PING);
    int64_t start = wf_clock_now(&wf_clock_monotonic);
    int result = 0;

    for (uint32_t i = first; result == 0 && i < first + count; i++) {
        result = post_rally_send(rally, data, status);
        if (result == 0)
            result = post_rally_recv(rally, i, status);
        data = rally_data(rally, i + 1, PING);
        if (result == 0)
            result = bench_interrupted(status);
        if (result == 0)
            result = await_both(rally, status);
        if (result == 0)
            result = check_iteration(rally, i, status);
        int64_t end = wf_clock_now(&wf_clock_monotonic);
        if (result == 0 && rally->segment->timed)
            rally->times[rally->time_count++] = (double)(end - start) / 2;
        start = end;
    }
    return result;
}

static int answer(struct rally *rally, struct wf_status *status)
{
    uint32_t first = rally->segment->first, count = rally->segment->count;
    const uint8_t *data = rally_data(rally, first, PONG);
    int result = 0;

    for (uint32_t i = first; result == 0 && i < first + count; i++) {
        result = await_both(rally, status); /* the ping, and the pong before it */
        if (result == 0)
            result = check_iteration(rally, i, status);
        if (result == 0)
            result = post_rally_send(rally, data, status);
        /* The next receive stands before its ping can come. */
        if (result == 0 && i + 1 < first + count)
            result = post_rally_recv(rally, i + 1, status);
        data = rally_data(rally, i + 1, PONG);
        if (result == 0)
            result = bench_interrupted(status);
    }
    return result ? result : await_both(rally, status);
}

/* The end of what goes on beside the ping-pong, which has ended. */
static int let_end(struct rally *rally, struct wf_status *status)
{
    struct weft_completion completion;
    int result = 0;

    bench_background_stop(&rally->background);
    while (result == 0 && rally->background.live) {
        int index = await_any(rally, &completion, status);
        result = index < 0 ? index : take_beside(rally, index, &completion, status);
    }
    return result;
}

static int run(struct rally *rally, const struct bench_segment *segment, struct wf_status *status)
{
    struct bench_usage before;
    int64_t start = 0;

    rally->segment = segment;
    rally->background.verified = segment->verified;
    int result = rally->source ? 0 : post_rally_recv(rally, segment->first, status);
    if (result == 0)
        result = bench_background_listen(&rally->background, status);
    if (result == 0)
        result = bench_control_start(rally->bed->control, !rally->source, &start, status);
    bench_usage_now(&before);
    if (result == 0)
        result = bench_background_start(&rally->background, status);
    if (result == 0)
        result = rally->source ? serve(rally, status) : answer(rally, status);
    if (result == 0)
        result = let_end(rally, status);
    if (result || !segment->timed)
        return result;
    bench_usage_since(&before, &rally->usage);
    bench_background_count(&rally->background, start);
    rally->elapsed_ns = wf_clock_now(&wf_clock_monotonic) - start;
    return 0;
}

static int run_rally_timed(struct rally *rally, uint32_t iters, struct wf_status *status)
{
    struct bench_segment warm = {.count = rally->bed->plan->warmup};
    struct bench_segment timed = {
        .first = warm.count, .count = iters, .timed = true, .verified = bench_verifies_timed(rally->bed)};
    int result = warm.count ? run(rally, &warm, status) : 0;

    bench_background_forget(&rally->background);
    return result ? result : run(rally, &timed, status);
}

static int run_rally_again(void *context, uint32_t first, uint32_t count, struct wf_status *status)
{
    struct rally *rally = context;
    struct bench_segment segment = {.first = rally->bed->plan->warmup + first, .count = count, .verified = true};

    return run(rally, &segment, status);
}

static int verify_rally(struct rally *rally, uint32_t iters, struct wf_status *status)
{
    const struct bench_bed *bed = rally->bed;
    uint64_t mine = rally->mine.elapsed_ns, theirs = rally->theirs.elapsed_ns;
    struct bench_rounds rounds;

    if (!bench_verifies(bed))
        return 0;
    bench_rounds_init(&rounds, bed->budget, iters, 1, mine > theirs ? mine : theirs);
    return bench_rounds_run(&rounds, bed->budget, bed->control, run_rally_again, rally, status);
}

/* What came to the other node went forth, what came here went back. */
static void fill_background(const struct rally *rally, struct bench_sample *sample)
{
    const struct bench_background *background = &rally->background;

    if (background->inflight == 0)
        return;
    sample->background = background->size;
    sample->background_inflight = background->inflight;
    sample->forth.messages = rally->theirs.background_messages;
    sample->forth.elapsed_ns = rally->theirs.background_ns;
    sample->back.messages = rally->mine.background_messages;
    sample->back.elapsed_ns = rally->mine.background_ns;
}

/* Of what goes forth, the background with it: out of memory here, into memory there. */
static void fill_path(const struct rally *rally, struct bench_sample *sample)
{
    uint64_t all = sample->size * sample->iters + sample->background * sample->forth.messages;

    sample->path_send = (uint8_t)bench_bed_path(rally->bed, sample->pair.src_memory, rally->mine.direct_sent, all);
    sample->path_receive =
        (uint8_t)bench_bed_path(rally->bed, sample->pair.dst_memory, rally->theirs.direct_received, all);
}

static double bytes_of(const struct bench_sample *sample)
{
    return 2.0 * (double)sample->size * sample->iters +
           (double)sample->background * (double)(sample->forth.messages + sample->back.messages);
}

/* `verified`: what was verified at both nodes, and what was wrong. */
static void fill_rally_sample(const struct rally *rally, const struct bench_news *verified, uint32_t iters,
                              struct bench_sample *sample)
{
    const struct bench_bed *bed = rally->bed;
    struct bench_news both;

    bench_news_join(&rally->mine, &rally->theirs, &both);
    memset(sample, 0, sizeof *sample);
    sample->backend = bed->ops;
    sample->pair = bed->plan->pairs[rally->pair];
    sample->size = rally->size;
    sample->iters = iters;
    sample->inflight = 1;
    sample->buffers = rally->areas;
    sample->latency = true;
    fill_background(rally, sample);
    sample->grouped = 1;
    sample->checked = bench_verifies(bed);
    sample->timed_check = bench_verifies_timed(bed);
    fill_path(rally, sample);
    sample->verified_bytes = verified->verified_bytes;
    sample->wrong = rally->wrong.bytes || !rally->background.wrong.bytes ? rally->wrong : rally->background.wrong;
    sample->wrong.bytes = verified->wrong_bytes;
    double bytes = bytes_of(sample);
    sample->cpu_s_per_gb = bytes > 0 && bed->ops->moves_data ? (double)both.cpu_ns / bytes : -1;
    sample->page_faults = both.page_faults;
    sample->retransmits = both.retransmits;
    sample->failures = both.failures;
    sample->resent_bytes = both.resent_bytes;
    wf_times_of(rally->times, rally->time_count, &sample->time);
}

/* What the rails did in the timed segment, and all else that this node has to tell of it. */
static int tell_rally(struct rally *rally, const struct weft_rail_stats *before, const struct weft_rail_stats *after,
                      int rails, const struct bench_direct *direct, struct wf_status *status)
{
    rally->mine = (struct bench_news){.cpu_ns = rally->usage.cpu_ns,
                                      .page_faults = rally->usage.page_faults,
                                      .elapsed_ns = (uint64_t)rally->elapsed_ns,
                                      .background_messages = rally->background.flux.messages,
                                      .background_ns = rally->background.flux.elapsed_ns};
    bench_direct_since(rally->bed, direct, &rally->mine);
    bench_count_events(before, after, rails, &rally->mine);
    return bench_control_swap(rally->bed->control, &rally->mine, &rally->theirs, status);
}

/* What was verified is told to the other node; at the source, the sample. */
static int conclude_rally(struct rally *rally, uint32_t iters, struct bench_sample *sample, struct wf_status *status)
{
    struct bench_news mine = {.verified_bytes = rally->verified_bytes,
                              .wrong_bytes = rally->wrong.bytes + rally->background.wrong.bytes};
    struct bench_news theirs, both;
    int result = bench_control_swap(rally->bed->control, &mine, &theirs, status);

    if (result)
        return result;
    bench_news_join(&mine, &theirs, &both);
    fill_rally_sample(rally, &both, iters, sample);
    return 0;
}

static int measure(struct rally *rally, uint32_t iters, struct bench_result *result, struct wf_status *status)
{
    struct weft_rail_stats before[BENCH_RAILS_MAX], after[BENCH_RAILS_MAX];
    struct bench_direct direct;
    struct bench_sample sample;

    bench_rails_now(rally->bed, false, before);
    bench_direct_now(rally->bed, &direct);
    int code = run_rally_timed(rally, iters, status);
    int rails = bench_rails_now(rally->bed, false, after);
    if (code == 0)
        code = tell_rally(rally, before, after, rails, &direct, status);
    if (code == 0)
        code = verify_rally(rally, iters, status);
    if (code == 0)
        code = conclude_rally(rally, iters, &sample, status);
    if (code || !rally->source)
        return code;
    sample.rail_count = rails;
    for (int i = 0; i < rails; i++)
        sample.rail_bytes[i] = after[i].received_bytes - before[i].received_bytes;
    return bench_result_add(result, &sample, status);
}

static int prepare(struct rally *rally, uint32_t iters, struct wf_status *status)
{
    struct bench_background *background = &rally->background;

    rally->times = calloc(iters, sizeof *rally->times);
    if (!rally->times)
        return wf_fail(status, -ENOMEM, "no memory for %u times", iters);
    background->bed = rally->bed;
    background->pair = rally->pair;
    background->source = rally->source;
    background->place = rally->place;
    background->tag = ++rally->bed->serial;
    int result = bench_background_init(background, status);
    if (result)
        return result;
    rally->requests = calloc(BESIDE + bench_background_requests(background), sizeof *rally->requests);
    if (!rally->requests)
        return wf_fail(status, -ENOMEM, "no memory for %u requests", BESIDE + bench_background_requests(background));
    background->requests = rally->requests + BESIDE;
    return bench_populate(rally->times, (uint64_t)iters * sizeof *rally->times, rally->bed->control, status);
}

int bench_measure_latency(struct bench_bed *bed, uint64_t size, uint32_t pair, struct bench_result *result,
                          struct wf_status *status)
{
    uint32_t iters = bench_plan_iters(bed->plan, size);
    struct rally rally = {.bed = bed, .size = size, .tag = ++bed->serial, .pair = pair};

    rally.source = bed->plan->pairs[pair].src_node == bed->node;
    rally.place = bench_arena_place(bed->arena, rally.source ? bed->plan->pairs[pair].src : bed->plan->pairs[pair].dst);
    rally.areas = bench_plan_areas(bed->plan, size);
    int code = prepare(&rally, iters, status);
    if (code == 0)
        code = measure(&rally, iters, result, status);
    if (code)
        bench_abandon(bed, rally.requests, BESIDE + bench_background_requests(&rally.background));
    bench_background_fini(&rally.background);
    free(rally.requests);
    free(rally.times);
    return code;
}
