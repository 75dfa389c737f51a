#include "phase.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "bench/machine/placement.h"
#include "bench/plan/names.h"
#include "bench/words/interrupt.h"

#define SLICE_MS 100

/* --- set-up --- */

void bench_phase_fini(struct bench_phase *phase)
{
    if (phase->live > 0)
        bench_abandon(phase->bed, phase->requests, (size_t)phase->flow_count * phase->slots);
    free(phase->flows);
    free(phase->landings);
    free(phase->requests);
    free(phase->iterations);
    free(phase->completed);
    free(phase->times);
}

static void add_flow(struct bench_phase *phase, uint32_t pair, uint32_t sender, bool receives)
{
    const struct bench_pair *ends = &phase->bed->plan->pairs[pair];
    struct bench_flow *flow = &phase->flows[phase->flow_count++];

    flow->pair = pair;
    flow->sender = sender;
    flow->receives = receives;
    flow->place = bench_arena_place(phase->bed->arena, receives ? ends->dst : ends->src);
    if (!receives)
        return;
    flow->landing = phase->landings[flow->place];
    phase->landings[flow->place] += phase->areas;
    phase->receivers++;
}

int bench_phase_set_iters(struct bench_phase *phase, uint32_t iters, struct wf_status *status)
{
    uint64_t count = (uint64_t)phase->receivers * iters;
    size_t receiver = 0;

    phase->iters = iters;
    phase->completed = calloc(count, sizeof *phase->completed);
    phase->times = calloc(count, sizeof *phase->times);
    if (count && (!phase->completed || !phase->times))
        return wf_fail(status, -ENOMEM, "no memory for the times of %u messages of %u pairs", iters, phase->receivers);
    for (uint32_t i = 0; i < phase->flow_count; i++) {
        if (!phase->flows[i].receives)
            continue;
        phase->flows[i].completed = phase->completed + receiver * iters;
        phase->flows[i].times = phase->times + receiver * iters;
        receiver++;
    }
    if (count == 0)
        return 0;
    int result = bench_populate(phase->completed, count * sizeof *phase->completed, phase->bed->control, status);

    return result ? result : bench_populate(phase->times, count * sizeof *phase->times, phase->bed->control, status);
}

/* On the nodes of their endpoints: other sizes had other endpoints there. A GPU's are where it is. */
static void place_landings(const struct bench_phase *phase)
{
    for (uint32_t i = 0; i < phase->flow_count; i++) {
        const struct bench_flow *flow = &phase->flows[i];
        const struct bench_arena *arena = phase->bed->arena;
        if (!flow->receives || !phase->bed->placement || arena->places[flow->place].gpu >= 0)
            continue;
        uint8_t *first = bench_arena_landing(arena, flow->place, phase->size, flow->landing);
        uint8_t *end = bench_arena_landing(arena, flow->place, phase->size, flow->landing + phase->areas);
        bench_placement_put(phase->bed->placement, phase->bed->plan->pairs[flow->pair].dst, first,
                            (uint64_t)(end - first));
    }
}

/* Ends of the phase's pairs at this node. */
static size_t count_flows(const struct bench_phase *phase)
{
    const struct bench_pair *pairs = phase->bed->plan->pairs + phase->first;
    size_t count = 0;

    for (uint32_t i = 0; i < phase->count; i++)
        count += (size_t)(pairs[i].src_node == phase->bed->node) + (pairs[i].dst_node == phase->bed->node);
    return count ? count : 1;
}

static void add_flows(struct bench_phase *phase, uint32_t *senders)
{
    const struct bench_plan *plan = phase->bed->plan;

    for (uint32_t i = phase->first; i < phase->first + phase->count; i++) {
        uint32_t sender = senders[plan->pairs[i].src_node]++;
        if (plan->pairs[i].dst_node == phase->bed->node)
            add_flow(phase, i, sender, true);
        if (plan->pairs[i].src_node == phase->bed->node)
            add_flow(phase, i, sender, false);
    }
}

int bench_phase_init(struct bench_phase *phase, struct wf_status *status)
{
    size_t flows = count_flows(phase);
    uint32_t *senders = calloc((size_t)phase->bed->plan->node_count, sizeof *senders); /* so far, by node */

    phase->flows = calloc(flows, sizeof *phase->flows);
    phase->landings = calloc(phase->bed->arena->place_count, sizeof *phase->landings);
    phase->requests = calloc(flows * phase->slots, sizeof *phase->requests);
    phase->iterations = calloc(flows * phase->slots, sizeof *phase->iterations);
    bool room = senders && phase->flows && phase->landings && phase->requests && phase->iterations;
    if (room)
        add_flows(phase, senders);
    free(senders);
    if (!room)
        return wf_fail(status, -ENOMEM, "no memory for the requests of %u pairs", phase->count);
    place_landings(phase);
    return phase->bed->ops->expect(phase->bed->backend, (uint64_t)phase->flow_count * phase->slots, status);
}

uint8_t *bench_phase_landing(const struct bench_phase *phase, const struct bench_flow *flow, uint32_t slot,
                             uint32_t iteration)
{
    uint32_t area = phase->bed->plan->buffers ? iteration % phase->areas : slot;

    return bench_arena_landing(phase->bed->arena, flow->place, phase->size, flow->landing + area);
}

/* Iterations count on from the warm-up, so that no two messages of a pair and size have the same data. */
const uint8_t *bench_phase_data(const struct bench_phase *phase, const struct bench_flow *flow, uint32_t iteration)
{
    struct bench_origin origin = {
        .pair = flow->pair, .sender = flow->sender, .size = phase->size, .iteration = iteration};

    return bench_arena_data(phase->bed->arena, phase->bed->plan, &origin);
}

/* --- one segment --- */

static int flow_failed(const struct bench_phase *phase, const struct bench_flow *flow, int result, const char *text,
                       struct wf_status *status)
{
    const struct bench_pair outer = bench_plan_outer(phase->bed->plan, &phase->bed->plan->pairs[flow->pair]);
    const struct bench_pair *pair = &outer;
    char src[32], dst[32], size[32], where[WF_STATUS_TEXT];

    snprintf(where, sizeof where, "%s -> %s, %s, %s: %s", bench_src_name(pair, src, sizeof src),
             bench_dst_name(pair, dst, sizeof dst), wf_format_size(phase->size, size, sizeof size),
             bench_mode_name(phase->mode), text);
    return bench_control_failed(phase->bed->control, result, where, status);
}

static int post_flow_recv(const struct bench_phase *phase, const struct bench_flow *flow,
                          const struct bench_segment *segment, uint32_t slot, uint32_t iteration,
                          bench_request *request, struct wf_status *status)
{
    const struct bench_bed *bed = phase->bed;
    uint8_t *landing = bench_phase_landing(phase, flow, slot, iteration);
    int result = segment->verified ? bench_poison(bed, flow->place, landing, phase->size, status) : 0;

    if (result)
        return result;
    result = bed->ops->recv(bed->backend, flow->pair, landing, phase->size, phase->tag, request);
    return result ? flow_failed(phase, flow, result, wf_strerror(result), status) : 0;
}

static int post_flow_send(const struct bench_phase *phase, const struct bench_flow *flow, uint32_t iteration,
                          bench_request *request, struct wf_status *status)
{
    const struct bench_bed *bed = phase->bed;
    const uint8_t *data = bench_phase_data(phase, flow, iteration);
    int result = bed->ops->send(bed->backend, flow->pair, bench_arena_source(bed->arena, flow->place, data),
                                phase->size, phase->tag, request);

    return result ? flow_failed(phase, flow, result, wf_strerror(result), status) : 0;
}

/* Posts the next iteration of a flow in a free slot. */
static int post(struct bench_phase *phase, struct bench_flow *flow, const struct bench_segment *segment, uint32_t slot,
                struct wf_status *status)
{
    size_t index = (size_t)(flow - phase->flows) * phase->slots + slot;
    uint32_t iteration = segment->first + flow->posted;
    int result = flow->receives ? post_flow_recv(phase, flow, segment, slot, iteration, &phase->requests[index], status)
                                : post_flow_send(phase, flow, iteration, &phase->requests[index], status);

    if (result)
        return result;
    phase->iterations[index] = iteration;
    flow->posted++;
    phase->live++;
    return 0;
}

static int post_first(struct bench_phase *phase, const struct bench_segment *segment, bool receivers,
                      struct wf_status *status)
{
    int result = 0;

    for (uint32_t i = 0; i < phase->flow_count; i++) {
        struct bench_flow *flow = &phase->flows[i];
        if (flow->receives != receivers)
            continue;
        flow->posted = flow->done = 0;
        for (uint32_t slot = 0; result == 0 && slot < phase->slots && slot < segment->count; slot++)
            result = post(phase, flow, segment, slot, status);
    }
    return result;
}

/* With the setting `buffers` the next iteration may be to land where one still is under way that others have overtaken.
 */
static bool lands_free(const struct bench_phase *phase, const struct bench_flow *flow, uint32_t iteration)
{
    size_t first = (size_t)(flow - phase->flows) * phase->slots;

    for (uint32_t slot = 0; slot < phase->slots; slot++)
        if (phase->requests[first + slot] && phase->iterations[first + slot] % phase->areas == iteration % phase->areas)
            return false;
    return true;
}

/* Into the slot that has become free; what is verified, into all that are and may be. */
static int post_next(struct bench_phase *phase, struct bench_flow *flow, const struct bench_segment *segment,
                     uint32_t slot, struct wf_status *status)
{
    size_t first = (size_t)(flow - phase->flows) * phase->slots;
    int result = 0;

    if (!segment->verified || !flow->receives || !phase->bed->plan->buffers)
        return flow->posted < segment->count ? post(phase, flow, segment, slot, status) : 0;
    for (slot = 0; result == 0 && slot < phase->slots && flow->posted < segment->count; slot++) {
        if (phase->requests[first + slot])
            continue;
        if (!lands_free(phase, flow, segment->first + flow->posted))
            return 0;
        result = post(phase, flow, segment, slot, status);
    }
    return result;
}

static int check_flow(const struct bench_phase *phase, struct bench_flow *flow, uint32_t slot, struct wf_status *status)
{
    uint32_t iteration = phase->iterations[(size_t)(flow - phase->flows) * phase->slots + slot];
    int result = bench_check(phase->bed, flow->place, bench_phase_landing(phase, flow, slot, iteration),
                             bench_phase_data(phase, flow, iteration), phase->size, iteration, &flow->wrong, status);

    if (result == 0)
        flow->verified_bytes += phase->size;
    return result;
}

static int take_completion(struct bench_phase *phase, const struct bench_segment *segment, uint32_t index,
                           const struct weft_completion *completion, struct wf_status *status)
{
    struct bench_flow *flow = &phase->flows[index / phase->slots];
    uint32_t slot = index % phase->slots;
    char text[96];
    int result = 0;

    phase->requests[index] = NULL;
    phase->live--;
    if (completion->status)
        return flow_failed(phase, flow, completion->status, completion->text, status);
    if (flow->receives && completion->bytes != phase->size) {
        snprintf(text, sizeof text, "%" PRIu64 " bytes came instead of %" PRIu64, completion->bytes, phase->size);
        return flow_failed(phase, flow, -EPROTO, text, status);
    }
    if (flow->receives && segment->verified)
        result = check_flow(phase, flow, slot, status);
    if (flow->receives && segment->timed)
        flow->completed[flow->done] = completion->completed_ns;
    flow->done++;
    return result ? result : post_next(phase, flow, segment, slot, status);
}

/* Until everything of the segment has ended, on this node. */
static int drive(struct bench_phase *phase, const struct bench_segment *segment, struct wf_status *status)
{
    struct bench_bed *bed = phase->bed;
    int total = (int)(phase->flow_count * phase->slots);

    while (phase->live > 0) {
        struct weft_completion completion;
        int index, result = bed->ops->wait(bed->backend, phase->requests, total, SLICE_MS, &index, &completion);
        if (result == 0)
            result = take_completion(phase, segment, (uint32_t)index, &completion, status);
        else if (result == -ETIMEDOUT)
            result = bench_control_check(bed->control, status);
        else
            wf_fail(status, result, "waiting for messages: %s", wf_strerror(result));
        if (result == 0)
            result = bench_interrupted(status);
        if (result)
            return result;
    }
    return 0;
}

static int compare_times(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

    return left < right ? -1 : left > right;
}

uint32_t bench_phase_group(const struct bench_phase *phase)
{
    return phase->size <= phase->bed->copied_up_to ? phase->iters : phase->slots;
}

/* From completions to iteration times; see the head of measure.h. */
static void reckon(struct bench_phase *phase, struct bench_flow *flow, const struct bench_segment *segment,
                   int64_t start)
{
    uint32_t group = bench_phase_group(phase);
    int64_t from = start;

    qsort(flow->completed, segment->count, sizeof flow->completed[0], compare_times);
    for (uint32_t first = 0; first < segment->count; first += group) {
        uint32_t count = segment->count - first < group ? segment->count - first : group;
        int64_t end = flow->completed[first + count - 1];
        for (uint32_t i = 0; i < count; i++)
            flow->times[flow->time_count++] = (double)(end - from) / count;
        from = end;
    }
}

int bench_phase_run(struct bench_phase *phase, const struct bench_segment *segment, struct wf_status *status)
{
    const struct bench_bed *bed = phase->bed;
    /* Isolated, the receiver leads, so that its clock starts first; else bed->leads says which. */
    bool leader = phase->count == 1 ? bed->plan->pairs[phase->first].dst_node == bed->node : bed->leads;
    int64_t start = 0, last = 0;
    struct bench_usage before;
    int result = post_first(phase, segment, true, status);

    if (result == 0)
        result = bench_control_start(bed->control, leader, &start, status);
    bench_usage_now(&before);
    phase->posted_ns = wf_clock_now(&wf_clock_monotonic);
    if (result == 0)
        result = post_first(phase, segment, false, status);
    if (result == 0)
        result = drive(phase, segment, status);
    if (result || !segment->timed)
        return result;
    bench_usage_since(&before, &phase->usage);
    for (uint32_t i = 0; i < phase->flow_count; i++) {
        struct bench_flow *flow = &phase->flows[i];
        if (!flow->receives)
            continue;
        reckon(phase, flow, segment, start);
        if (flow->completed[segment->count - 1] > last)
            last = flow->completed[segment->count - 1];
    }
    if (last > start)
        phase->elapsed_ns += last - start;
    return 0;
}
