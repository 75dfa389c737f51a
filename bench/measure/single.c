/* One message that travels alone: a phase of one pair with a segment of one message. */
#include "measure.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "phase.h"

static void note_flow(const struct bench_phase *phase, struct bench_single *single)
{
    for (uint32_t i = 0; i < phase->flow_count; i++) {
        const struct bench_flow *flow = &phase->flows[i];
        single->posted_ns = phase->posted_ns;
        if (!flow->receives)
            continue;
        single->landed_ns = flow->completed[0];
        single->verified_bytes += flow->verified_bytes;
        if (flow->wrong.bytes && !single->wrong.bytes)
            single->wrong = flow->wrong;
        else
            single->wrong.bytes += flow->wrong.bytes;
    }
}

static void note_rails(const struct bench_phase *phase, bool intra, struct bench_single *single)
{
    const struct weft_rail_stats *before = phase->before[intra], *after = phase->after[intra];

    bench_count_events(before, after, phase->rail_count[intra], &single->news);
    single->rail_count = phase->rail_count[intra];
    for (int i = 0; i < phase->rail_count[intra]; i++)
        single->rail_bytes[i] = after[i].received_bytes - before[i].received_bytes;
}

static int run_single(struct bench_phase *phase, struct bench_single *single, struct wf_status *status)
{
    const struct bench_pair *pair = &phase->bed->plan->pairs[single->pair];
    const struct bench_news none = {0};
    bool intra = pair->src_node == pair->dst_node;
    struct bench_news theirs;
    struct bench_segment segment = {
        .first = single->iteration, .count = 1, .timed = true, .verified = single->verified};
    int result = bench_phase_init(phase, status);

    if (result == 0)
        result = bench_phase_set_iters(phase, 1, status);
    memset(&single->news, 0, sizeof single->news);
    phase->rail_count[intra] = bench_rails_now(phase->bed, intra, phase->before[intra]);
    bench_direct_now(phase->bed, &phase->direct);
    if (result == 0)
        result = bench_phase_run(phase, &segment, status);
    /* TCP may resend bytes of this message after its send has ended: its count is read when both nodes are done. */
    if (result == 0)
        result = bench_control_swap(phase->bed->control, &none, &theirs, status);
    if (result)
        return result;
    bench_rails_now(phase->bed, intra, phase->after[intra]);
    bench_direct_since(phase->bed, &phase->direct, &single->news);
    note_flow(phase, single);
    note_rails(phase, intra, single);
    return 0;
}

int bench_measure_single(struct bench_bed *bed, struct bench_single *single, struct wf_status *status)
{
    struct bench_phase *phase = calloc(1, sizeof *phase);

    if (!phase)
        return wf_fail(status, -ENOMEM, "no memory for a phase");
    phase->bed = bed;
    phase->size = single->size;
    phase->first = single->pair;
    phase->count = phase->slots = phase->areas = 1;
    phase->tag = ++bed->serial;
    int result = run_single(phase, single, status);
    bench_phase_fini(phase);
    free(phase);
    return result;
}
