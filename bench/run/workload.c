#include "workload.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "bench/machine/gpus.h"
#include "bench/machine/load.h"
#include "bench/result/report.h"
#include "facts.h"

#define PHASE_CHARGE (256u << 10) /* bytes that stand for the fixed time of a phase in the progress */
#define SWAP_BYTES (256ull << 20) /* at least so much moves until the nodes tell each other their samples, */
#define SWAP_PHASES 16u           /* or so many phases go by: what is told survives the loss of the other node */

/* What `pairs` of a size are of all work: bytes, and with iters auto the time that they have, as if a byte took 1 ns.
 */
static uint64_t work_of(const struct bench_plan *plan, uint64_t size, uint32_t pairs)
{
    uint64_t time = plan->iters ? 0 : (uint64_t)bench_plan_share_ns(plan) / plan->pair_count;

    return (size * (bench_plan_iters(plan, size) + plan->warmup) + PHASE_CHARGE + time) * pairs;
}

uint64_t bench_workload_total(const struct bench_plan *plan)
{
    uint64_t sum = 0;

    for (int i = 0; i < plan->size_count; i++)
        sum += work_of(plan, plan->sizes[i], plan->pair_count);
    return sum * ((uint64_t)plan->modes[BENCH_ISOLATED] + plan->modes[BENCH_LOADED]) * (uint64_t)plan->backend_count;
}

/* --- the sets of one size and mode: one for each backend, measured in turns --- */

struct sets {
    struct bench_set of[BENCH_BACKENDS_MAX];
    struct bench_budget budgets[BENCH_BACKENDS_MAX], paces[BENCH_BACKENDS_MAX];
    struct bench_load loads[BENCH_BACKENDS_MAX];
    struct bench_busy busy[BENCH_BACKENDS_MAX][2];
    int count;
    uint32_t step; /* pairs that run together */
    uint32_t turn; /* the backend that is first in this step */
};

static void sets_init(struct sets *sets, const struct bench_plan *plan, enum bench_mode mode, uint64_t size)
{
    memset(sets, 0, sizeof *sets);
    sets->count = plan->backend_count;
    sets->step = mode == BENCH_LOADED ? plan->pair_count : plan->group;
    for (int i = 0; i < sets->count; i++) {
        sets->of[i] = (struct bench_set){
            .backend = plan->backends[i], .mode = mode, .size = size, .cpu_s_per_gb = -1, .busy = sets->busy[i]};
        sets->budgets[i].left_ns = plan->check_time_ns;
        sets->budgets[i].phases = (plan->pair_count + sets->step - 1) / sets->step;
        sets->paces[i] = (struct bench_budget){bench_plan_share_ns(plan), sets->budgets[i].phases};
    }
}

/* What was busy at this node meanwhile. */
static void sets_sum_up(struct sets *sets, int node)
{
    for (int i = 0; i < sets->count; i++)
        bench_load_sum(&sets->loads[i], &sets->of[i].busy[node]);
}

static json_t *sets_busy(const struct sets *sets, int node)
{
    json_t *all = json_array();

    for (int i = 0; i < sets->count; i++)
        json_array_append_new(all, bench_busy_to_json(&sets->of[i].busy[node]));
    return all;
}

/* --- samples travel --- */

static int send_samples(const struct bench_bed *bed, const struct bench_link *link, const struct bench_result *result,
                        const struct sets *sets, size_t first, size_t last, struct wf_status *status)
{
    int code = 0;

    do {
        json_t *text = json_object(), *array = json_array();
        size_t end = first + BENCH_SAMPLES_PER_TEXT;
        if (end > last)
            end = last;
        for (; first < end; first++)
            json_array_append_new(
                array, bench_sample_to_json(&result->samples[first], bed->plan->pattern, &result->rails[bed->node]));
        json_object_set_new(text, "samples", array);
        json_object_set_new(text, "more", json_boolean(first < last));
        json_object_set_new(text, "totals", bench_totals(link));
        json_object_set_new(text, "busy", sets_busy(sets, bed->node));
        code = bench_control_say(bed->control, text, status);
        json_decref(text);
    } while (code == 0 && first < last);
    return code;
}

/* Never more than are planned, so that there is an end to it. */
static int take_sample(const struct bench_bed *bed, struct bench_result *result, const json_t *entry,
                       struct wf_status *status)
{
    struct bench_sample sample;
    int code = bench_sample_from_json(entry, result->options->backends, result->node_count, &sample, status);

    if (code == 0 && result->sample_count >= bench_plan_samples(bed->plan))
        code =
            wf_fail(status, -EPROTO, "the other node sent more samples than are planned: use the same build on both");
    return code ? code : bench_result_add(result, &sample, status);
}

static int take_samples(const struct bench_bed *bed, struct bench_result *result, struct sets *sets,
                        struct wf_status *status)
{
    bool more = true;
    int code = 0;

    while (code == 0 && more) {
        json_t *text = NULL, *entry;
        size_t index;
        code = bench_control_hear(bed->control, &text, status);
        if (code)
            return code;
        json_t *samples = json_object_get(text, "samples");
        json_array_foreach(samples, index, entry)
        {
            if (code == 0)
                code = take_sample(bed, result, entry, status);
        }
        more = json_is_true(json_object_get(text, "more"));
        if (code == 0 && more && json_array_size(samples) == 0)
            code = wf_fail(status, -EPROTO, "the other node sent no samples and has more: use the same build on both");
        for (int i = 0; i < sets->count; i++)
            bench_busy_from_json(json_array_get(json_object_get(text, "busy"), (size_t)i),
                                 &sets->of[i].busy[1 - bed->node]);
        bench_result_keep_totals(result, 1 - bed->node, json_object_get(text, "totals"));
        json_decref(text);
    }
    return code;
}

/* Each node ends up with the samples of both, those from `first` on being its own that the other does not know, and
 * with what was busy at both. */
static int swap_samples(const struct bench_bed *bed, const struct bench_link *link, struct bench_result *result,
                        struct sets *sets, size_t first, struct wf_status *status)
{
    size_t end = result->sample_count;
    int code;

    sets_sum_up(sets, bed->node);
    if (bed->node == 1) {
        code = send_samples(bed, link, result, sets, first, end, status);
        return code ? code : take_samples(bed, result, sets, status);
    }
    code = take_samples(bed, result, sets, status);
    return code ? code : send_samples(bed, link, result, sets, first, end, status);
}

/* --- the plan --- */

static void describe(const struct bench_bed *bed, enum bench_mode mode, uint64_t size, char *text, size_t room)
{
    char shown[32];

    snprintf(text, room, "%s %s %s", bed->ops->name, bench_mode_name(mode), wf_format_size(size, shown, sizeof shown));
}

/* `step` pairs of a set from `first` on. */
static int measure_pairs(struct bench_bed *bed, struct bench_set *set, uint32_t first, uint32_t step,
                         struct bench_result *result, struct wf_status *status)
{
    struct bench_phase_sum sum = {.cpu_s_per_gb = -1};

    if (bed->plan->latency)
        return bench_measure_latency(bed, set->size, first, result, status);
    int code = bench_measure(bed, set->mode, set->size, first, step, result, &sum, status);
    if (code == 0 && set->mode == BENCH_LOADED) {
        set->bytes = sum.bytes;
        set->elapsed_ns = sum.elapsed_ns;
        set->cpu_s_per_gb = sum.cpu_s_per_gb;
    }
    return code;
}

/* The same pairs on every backend, one right after the other, so that what disturbs the machine disturbs all alike.
 * None is always the first. */
static int measure_step(struct bench_bed *bed, struct sets *sets, uint32_t first, struct bench_result *result,
                        struct bench_progress *progress, struct wf_status *status)
{
    const struct bench_plan *plan = bed->plan;
    uint32_t backends = (uint32_t)plan->backend_count;
    char doing[80];
    int code = 0;

    for (uint32_t i = 0; i < backends && code == 0; i++) {
        uint32_t at = (sets->turn + i) % backends;
        struct bench_set *set = &sets->of[at];
        bed->ops = plan->backends[at];
        bed->backend = bed->backends[at];
        bed->budget = &sets->budgets[at];
        bed->pace = &sets->paces[at];
        bed->load = &sets->loads[at];
        describe(bed, set->mode, set->size, doing, sizeof doing);
        bench_progress_now(progress, doing);
        code = measure_pairs(bed, set, first, sets->step, result, status);
        bench_progress_step(progress, sets->step, work_of(plan, set->size, sets->step), doing);
    }
    sets->turn++;
    return code;
}

/* Of a set that was cut short what there is counts, too. */
static int add_sets(const struct bench_plan *plan, const struct sets *sets, size_t before, struct bench_result *result,
                    struct wf_status *status)
{
    int code = 0;

    for (int i = 0; i < plan->backend_count && code == 0; i++) {
        bool any = false;
        for (size_t at = before; at < result->sample_count && !any; at++)
            any = bench_sample_in_set(&result->samples[at], &sets->of[i]);
        if (any)
            code = bench_result_add_set(result, &sets->of[i], status);
    }
    return code;
}

/* All pairs of one size and mode. */
static int measure_size(struct bench_bed *bed, struct bench_link *link, enum bench_mode mode, uint64_t size,
                        struct bench_result *result, struct bench_progress *progress, struct wf_status *status)
{
    const struct bench_plan *plan = bed->plan;
    size_t before = result->sample_count, told = before;
    uint32_t phases = 0;
    uint64_t moved = 0;
    struct sets sets;
    int code = 0;

    sets_init(&sets, plan, mode, size);
    for (uint32_t first = 0; code == 0 && first < plan->pair_count; first += sets.step) {
        code = measure_step(bed, &sets, first, result, progress, status);
        moved += work_of(plan, size, sets.step) * (uint64_t)plan->backend_count;
        if (code || (moved < SWAP_BYTES && ++phases < SWAP_PHASES && first + sets.step < plan->pair_count))
            continue;
        code = swap_samples(bed, link, result, &sets, told, status);
        told = result->sample_count;
        moved = phases = 0;
    }
    sets_sum_up(&sets, bed->node);
    int added = add_sets(plan, &sets, before, result, code ? &(struct wf_status){0} : status);
    if (code == 0 && added == 0)
        bench_progress_wipe(progress); /* it is in the way of lines */
    if (code == 0 && added == 0)
        return bench_report_so_far(result, status);
    return code ? code : added;
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
