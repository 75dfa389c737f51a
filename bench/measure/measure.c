#include "measure.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "pace.h"
#include "phase.h"

static void snapshot(struct bench_phase *phase, struct weft_rail_stats stats[2][BENCH_RAILS_MAX])
{
    phase->rail_count[0] = bench_rails_now(phase->bed, false, stats[0]);
    phase->rail_count[1] = phase->bed->plan->intra ? bench_rails_now(phase->bed, true, stats[1]) : 0;
}

/* A round of the warm-up, and what it took: the longer time of both nodes. */
static int run_warm_round(struct bench_phase *phase, struct bench_pace *pace, uint32_t count, struct wf_status *status)
{
    struct bench_segment warm = {.first = pace->done, .count = count};
    int64_t start = wf_clock_now(&wf_clock_monotonic);
    struct bench_news mine = {0}, theirs = {0};
    int result = bench_phase_run(phase, &warm, status);

    mine.elapsed_ns = (uint64_t)(wf_clock_now(&wf_clock_monotonic) - start);
    if (result == 0 && pace->least != pace->most)
        result = bench_control_swap(phase->bed->control, &mine, &theirs, status);
    bench_pace_took(pace, count, mine.elapsed_ns > theirs.elapsed_ns ? mine.elapsed_ns : theirs.elapsed_ns);
    return result;
}

/* Decides how many iterations there are. */
static int warm_phase(struct bench_phase *phase, struct wf_status *status)
{
    const struct bench_plan *plan = phase->bed->plan;
    struct bench_pace pace;
    uint32_t count;
    int result = 0;

    bench_pace_init(&pace, phase->bed->pace, plan->warmup, bench_plan_iters(plan, phase->size),
                    bench_plan_most_iters(plan, phase->size, bench_plan_span(plan, phase->mode)));
    while (result == 0 && (count = bench_pace_next(&pace)) > 0)
        result = run_warm_round(phase, &pace, count, status);
    phase->warmed = pace.done;
    return result ? result : bench_phase_set_iters(phase, bench_pace_iters(&pace), status);
}

static int run_phase_timed(struct bench_phase *phase, struct wf_status *status)
{
    int result = warm_phase(phase, status);
    struct bench_segment timed = {
        .first = phase->warmed, .count = phase->iters, .timed = true, .verified = bench_verifies_timed(phase->bed)};

    snapshot(phase, phase->before);
    bench_direct_now(phase->bed, &phase->direct);
    bench_load_begin(phase->bed->load);
    if (result == 0)
        result = bench_phase_run(phase, &timed, status);
    bench_load_end(phase->bed->load, phase->usage.cpu_ns);
    snapshot(phase, phase->after);
    bench_direct_since(phase->bed, &phase->direct, &phase->mine);
    return result;
}

static int run_phase_again(void *context, uint32_t first, uint32_t count, struct wf_status *status)
{
    struct bench_phase *phase = context;
    struct bench_segment segment = {.first = phase->warmed + first, .count = count, .verified = true};

    return bench_phase_run(phase, &segment, status);
}

static int verify_phase(struct bench_phase *phase, uint64_t timed_ns, struct wf_status *status)
{
    const struct bench_bed *bed = phase->bed;
    struct bench_rounds rounds;

    if (!bench_verifies(bed))
        return 0;
    bench_rounds_init(&rounds, bed->budget, phase->iters, phase->slots, timed_ns);
    return bench_rounds_run(&rounds, bed->budget, bed->control, run_phase_again, phase, status);
}

/* Receivers of the same kind (within a node or between) share what the rails brought: they got equally much. */
static uint32_t sharers(const struct bench_phase *phase, bool intra)
{
    const struct bench_plan *plan = phase->bed->plan;
    uint32_t count = 0;

    for (uint32_t i = 0; i < phase->flow_count; i++) {
        const struct bench_pair *pair = &plan->pairs[phase->flows[i].pair];
        count += phase->flows[i].receives && (pair->src_node == pair->dst_node) == intra;
    }
    return count;
}

/* Bytes that came here from the other node, out of GPU memory there, or into GPU memory here. */
static uint64_t gpu_bytes(const struct bench_phase *phase, bool there)
{
    const struct bench_plan *plan = phase->bed->plan;
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < phase->flow_count; i++) {
        const struct bench_pair *pair = &plan->pairs[phase->flows[i].pair];
        bool counts = phase->flows[i].receives && pair->src_node != pair->dst_node &&
                      (there ? pair->src_memory : pair->dst_memory) != BENCH_HOST;
        bytes += counts ? phase->size * phase->iters : 0;
    }
    return bytes;
}

/* Within a node no card is on the way. */
static void fill_path(const struct bench_phase *phase, bool intra, struct bench_sample *sample)
{
    uint64_t sent = intra ? 0 : phase->theirs.direct_sent, received = intra ? 0 : phase->mine.direct_received;

    sample->path_send = (uint8_t)bench_bed_path(phase->bed, sample->pair.src_memory, sent, gpu_bytes(phase, true));
    sample->path_receive =
        (uint8_t)bench_bed_path(phase->bed, sample->pair.dst_memory, received, gpu_bytes(phase, false));
}

static void fill_flow_sample(const struct bench_phase *phase, struct bench_flow *flow, const struct bench_news *both,
                             double cpu, struct bench_sample *sample)
{
    const struct bench_bed *bed = phase->bed;
    const struct bench_pair *pair = &bed->plan->pairs[flow->pair];
    bool intra = pair->src_node == pair->dst_node;
    uint32_t share = sharers(phase, intra);

    memset(sample, 0, sizeof *sample);
    sample->backend = bed->ops;
    sample->mode = phase->mode;
    sample->pair = bench_plan_outer(bed->plan, pair);
    sample->size = phase->size;
    sample->iters = phase->iters;
    sample->inflight = phase->slots;
    sample->buffers = phase->areas;
    sample->checked = bench_verifies(bed);
    sample->timed_check = bench_verifies_timed(bed);
    sample->verified_bytes = flow->verified_bytes;
    sample->wrong = flow->wrong;
    sample->cpu_s_per_gb = cpu;
    sample->page_faults = both->page_faults;
    sample->retransmits = both->retransmits;
    sample->failures = both->failures;
    sample->resent_bytes = both->resent_bytes;
    fill_path(phase, intra, sample);
    wf_times_of(flow->times, flow->time_count, &sample->time);
    sample->grouped = bench_phase_group(phase);
    sample->rail_count = phase->rail_count[intra];
    for (int i = 0; i < sample->rail_count; i++)
        sample->rail_bytes[i] =
            (phase->after[intra][i].received_bytes - phase->before[intra][i].received_bytes) / share;
}

/* Tells the other node what this one did in the timed pass. */
static int tell_phase(struct bench_phase *phase, struct bench_news *both, struct wf_status *status)
{
    struct bench_news *mine = &phase->mine;

    mine->cpu_ns = phase->usage.cpu_ns;
    mine->page_faults = phase->usage.page_faults;
    mine->elapsed_ns = (uint64_t)phase->elapsed_ns;
    for (int intra = 0; intra < 2; intra++)
        bench_count_events(phase->before[intra], phase->after[intra], phase->rail_count[intra], mine);
    int result = bench_control_swap(phase->bed->control, mine, &phase->theirs, status);
    if (result == 0)
        bench_news_join(mine, &phase->theirs, both);
    return result;
}

static int conclude_phase(struct bench_phase *phase, const struct bench_news *both, struct bench_result *result,
                          struct bench_phase_sum *sum, struct wf_status *status)
{
    int code = 0;

    sum->bytes = phase->size * phase->iters * phase->count;
    sum->elapsed_ns = (int64_t)both->elapsed_ns;
    sum->cpu_s_per_gb = sum->bytes && phase->bed->ops->moves_data ? (double)both->cpu_ns / (double)sum->bytes : -1;
    for (uint32_t i = 0; code == 0 && i < phase->flow_count; i++) {
        struct bench_sample sample;
        if (!phase->flows[i].receives)
            continue;
        fill_flow_sample(phase, &phase->flows[i], both, sum->cpu_s_per_gb, &sample);
        code = bench_result_add(result, &sample, status);
    }
    return code;
}

int bench_measure(struct bench_bed *bed, enum bench_mode mode, uint64_t size, uint32_t first, uint32_t count,
                  struct bench_result *result, struct bench_phase_sum *sum, struct wf_status *status)
{
    struct bench_phase *phase = calloc(1, sizeof *phase);
    struct bench_news both;

    if (!phase)
        return wf_fail(status, -ENOMEM, "no memory for a phase");
    phase->bed = bed;
    phase->mode = mode;
    phase->size = size;
    phase->first = first;
    phase->count = count;
    phase->slots = bench_plan_slots(bed->plan, size);
    phase->areas = bench_plan_areas(bed->plan, size);
    phase->tag = ++bed->serial;
    int code = bench_phase_init(phase, status);
    if (code == 0)
        code = run_phase_timed(phase, status);
    if (code == 0)
        code = tell_phase(phase, &both, status);
    if (code == 0)
        bench_budget_spend(bed->pace, (int64_t)both.elapsed_ns);
    if (code == 0)
        code = verify_phase(phase, both.elapsed_ns, status);
    if (code == 0)
        code = conclude_phase(phase, &both, result, sum, status);
    bench_phase_fini(phase);
    free(phase);
    return code;
}
