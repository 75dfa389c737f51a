#include "workload.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "bench/machine/gpus.h"
#include "bench/machine/load.h"
#include "bench/result/report.h"
#include "facts.h"
#include "sets.h"

#define SWAP_BYTES (256ull << 20) /* at least so much moves until the nodes tell each other their samples, */
#define SWAP_PHASES 16u           /* or so many phases go by: what is told survives the loss of the other node */

uint64_t bench_workload_total(const struct bench_plan *plan)
{
    uint64_t sum = 0;

    for (int i = 0; i < plan->size_count; i++)
        sum += bench_work_of(plan, plan->sizes[i], plan->pair_count);
    return sum * ((uint64_t)plan->modes[BENCH_ISOLATED] + plan->modes[BENCH_LOADED]) * (uint64_t)plan->backend_count;
}

/* --- samples travel --- */

static int send_samples(const struct bench_bed *bed, const struct bench_link *link, const struct bench_result *result,
                        const struct bench_sets *sets, size_t first, size_t last, struct wf_status *status)
{
    int code = 0;

    do {
        json_t *text = bench_samples_text(bed->plan, result, &first, last);
        json_object_set_new(text, "more", json_boolean(first < last));
        json_object_set_new(text, "totals", bench_totals(link));
        json_object_set_new(text, "busy", bench_sets_busy(sets, bed->node));
        code = bench_control_say(bed->control, text, status);
        json_decref(text);
    } while (code == 0 && first < last);
    return code;
}

static int take_samples(const struct bench_bed *bed, struct bench_result *result, struct bench_sets *sets,
                        struct wf_status *status)
{
    bool more = true;
    int code = 0;

    while (code == 0 && more) {
        json_t *text = NULL;
        code = bench_control_hear(bed->control, &text, status);
        if (code)
            return code;
        const json_t *samples = json_object_get(text, "samples");
        code = bench_samples_take(bed->plan, result, samples, status);
        more = json_is_true(json_object_get(text, "more"));
        if (code == 0 && more && json_array_size(samples) == 0)
            code = wf_fail(status, -EPROTO, "the other node sent no samples and has more: use the same build on both");
        bench_sets_take_busy(sets, 1 - bed->node, json_object_get(text, "busy"));
        bench_result_keep_totals(result, 1 - bed->node, json_object_get(text, "totals"));
        json_decref(text);
    }
    return code;
}

/* Each node ends up with the samples of both, those from `first` on being its own that the other does not know, and
 * with what was busy at both. */
static int swap_samples(const struct bench_bed *bed, const struct bench_link *link, struct bench_result *result,
                        struct bench_sets *sets, size_t first, struct wf_status *status)
{
    size_t end = result->sample_count;
    int code;

    bench_sets_sum_up(sets, bed->node);
    if (bed->node == 1) {
        code = send_samples(bed, link, result, sets, first, end, status);
        return code ? code : take_samples(bed, result, sets, status);
    }
    code = take_samples(bed, result, sets, status);
    return code ? code : send_samples(bed, link, result, sets, first, end, status);
}

/* --- the plan --- */

static int measure_sets(struct bench_bed *bed, struct bench_link *link, struct bench_sets *sets,
                        struct bench_result *result, struct bench_progress *progress, struct wf_status *status)
{
    const struct bench_plan *plan = bed->plan;
    size_t before = result->sample_count, told = before;
    uint32_t phases = 0;
    uint64_t moved = 0;
    int code = 0;

    for (uint32_t first = 0; code == 0 && first < plan->pair_count; first += sets->step) {
        code = bench_sets_measure(bed, sets, first, result, progress, status);
        moved += bench_work_of(plan, sets->of[0].size, sets->step) * (uint64_t)plan->backend_count;
        if (code || (moved < SWAP_BYTES && ++phases < SWAP_PHASES && first + sets->step < plan->pair_count))
            continue;
        code = swap_samples(bed, link, result, sets, told, status);
        told = result->sample_count;
        moved = phases = 0;
    }
    bench_sets_sum_up(sets, bed->node);
    int added = bench_sets_add(plan, sets, before, result, code ? &(struct wf_status){0} : status);
    return code ? code : added;
}

/* All pairs of one size and mode. */
static int measure_size(struct bench_bed *bed, struct bench_link *link, enum bench_mode mode, uint64_t size,
                        struct bench_result *result, struct bench_progress *progress, struct wf_status *status)
{
    struct bench_sets *sets = calloc(1, sizeof *sets);
    int code = sets ? bench_sets_init(sets, bed->plan, mode, size, status)
                    : wf_fail(status, -ENOMEM, "no memory for what is measured");

    if (code == 0)
        code = measure_sets(bed, link, sets, result, progress, status);
    if (sets)
        bench_sets_fini(sets);
    free(sets);
    if (code)
        return code;
    bench_progress_wipe(progress); /* it is in the way of lines */
    return bench_report_so_far(result, status);
}

/* What it has to tell goes into the result of this node with the rest of what is said at the end. */
static void note_facts(json_t *all, const struct bench_backend_ops *ops, const struct bench_backend *backend,
                       int64_t took_ns)
{
    json_t *facts = ops->facts(backend);

    json_object_set_new(facts, "connect_s", json_real((double)took_ns / WF_NS_PER_S));
    json_array_append_new(all, facts);
}

static int open_backends(struct bench_bed *bed, struct bench_link *link, struct bench_progress *progress, json_t *facts,
                         struct wf_status *status)
{
    const struct bench_plan *plan = bed->plan;
    char doing[80];

    for (int i = 0; i < plan->backend_count; i++) {
        const struct bench_backend_ops *ops = plan->backends[i];
        int64_t start = wf_clock_now(&wf_clock_monotonic);
        snprintf(doing, sizeof doing, "%s: connecting %u pairs", ops->name, plan->pair_count);
        bench_progress_begin(progress, doing, 0);
        int result = ops->open(link, plan, &bed->backends[i], status);
        bench_progress_wipe(progress);
        int64_t took = wf_clock_now(&wf_clock_monotonic) - start;
        if (result)
            return result;
        if (ops->facts)
            note_facts(facts, ops, bed->backends[i], took);
        else
            link->footprint.pairs_ns += took;
    }
    return 0;
}

int bench_workload_open(struct bench_bed *bed, struct bench_link *link, struct bench_progress *progress,
                        struct wf_status *status)
{
    json_t *facts = json_array();
    int result = open_backends(bed, link, progress, facts, status);

    /* In one piece: the signal thread may look. */
    if (json_array_size(facts))
        link->backends = facts;
    else
        json_decref(facts);
    return result;
}

bool bench_workload_close(struct bench_bed *bed)
{
    bool any = false;

    for (int i = 0; i < BENCH_BACKENDS_MAX; i++) {
        if (!bed->backends[i])
            continue;
        bed->plan->backends[i]->close(bed->backends[i]);
        bed->backends[i] = NULL;
        any = true;
    }
    bed->backend = NULL;
    return any;
}

int bench_workload(struct bench_bed *bed, struct bench_link *link, struct bench_result *result,
                   struct bench_progress *progress, struct wf_status *status)
{
    const struct bench_plan *plan = bed->plan;
    int code = bench_workload_open(bed, link, progress, status);

    bench_progress_start(progress, bench_plan_samples(plan), bench_workload_total(plan),
                         plan->iters ? 0 : plan->auto_ns);
    for (int mode = 0; mode < BENCH_MODES; mode++)
        for (int i = 0; plan->modes[mode] && code == 0 && i < plan->size_count; i++)
            code = measure_size(bed, link, mode, plan->sizes[i], result, progress, status);
    /* After a failure requests may be under way: the memory they use lives until the link is closed. */
    if (code == 0)
        bench_workload_close(bed);
    return code;
}

/* --- the end --- */

static int finish_client(struct bench_bed *bed, struct bench_link *link, struct bench_result *result, bool *passed,
                         struct wf_status *status)
{
    json_t *mine = json_pack("{s:o}", "totals", bench_totals(link)), *verdict = NULL;
    int code = bench_control_say(bed->control, mine, status);

    json_decref(mine);
    if (code == 0)
        code = bench_control_hear(bed->control, &verdict, status);
    if (code)
        return code;
    *passed = json_is_true(json_object_get(verdict, "passed"));
    bench_result_keep_totals(result, 0, json_object_get(verdict, "totals"));
    json_decref(verdict);
    return 0;
}

static int finish_server(struct bench_bed *bed, struct bench_link *link, struct bench_result *result, bool *passed,
                         struct wf_status *status)
{
    json_t *theirs = NULL;
    int code = bench_control_hear(bed->control, &theirs, status);

    if (code)
        return code;
    bench_result_keep_totals(result, 1, json_object_get(theirs, "totals"));
    json_decref(theirs);
    *passed = bench_result_wrong_bytes(result) == 0 && result->sample_count == bench_plan_samples(bed->plan);
    json_t *verdict = json_pack("{s:b, s:o}", "passed", (int)*passed, "totals", bench_totals(link));
    code = bench_control_say(bed->control, verdict, status);
    json_decref(verdict);
    return code;
}

int bench_workload_finish(struct bench_bed *bed, struct bench_link *link, struct bench_result *result, bool *passed,
                          struct wf_status *status)
{
    if (link->gpus.count)
        link->gpu_states = bench_gpu_states(&link->gpus, bed->plan->endpoints);
    json_t *totals = bench_totals(link);
    bench_result_keep_totals(result, bed->node, totals);
    json_decref(totals);
    if (bed->node == 1)
        return finish_client(bed, link, result, passed, status);
    return finish_server(bed, link, result, passed, status);
}
