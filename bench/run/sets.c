#include "sets.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PHASE_CHARGE (256u << 10) /* bytes that stand for the fixed time of a phase in the progress */

uint64_t bench_work_of(const struct bench_plan *plan, uint64_t size, uint32_t pairs)
{
    uint64_t time = plan->iters ? 0 : (uint64_t)bench_plan_share_ns(plan) / plan->pair_count;

    return (size * (bench_plan_iters(plan, size) + plan->warmup) + PHASE_CHARGE + time) * pairs;
}

int bench_sets_init(struct bench_sets *sets, const struct bench_plan *plan, enum bench_mode mode, uint64_t size,
                    struct wf_status *status)
{
    memset(sets, 0, sizeof *sets);
    sets->count = plan->backend_count;
    sets->step = mode == BENCH_LOADED ? plan->pair_count : plan->group;
    for (int i = 0; i < sets->count; i++) {
        sets->of[i] = (struct bench_set){.backend = plan->backends[i],
                                         .mode = mode,
                                         .size = size,
                                         .cpu_s_per_gb = -1,
                                         .busy = calloc((size_t)plan->node_count, sizeof *sets->of[i].busy)};
        if (!sets->of[i].busy)
            return wf_fail(status, -ENOMEM, "no memory for what %d nodes have busy", plan->node_count);
        sets->budgets[i].left_ns = plan->check_time_ns;
        sets->budgets[i].phases = (plan->pair_count + sets->step - 1) / sets->step;
        sets->paces[i] = (struct bench_budget){bench_plan_share_ns(plan), sets->budgets[i].phases};
    }
    return 0;
}

void bench_sets_fini(struct bench_sets *sets)
{
    for (int i = 0; i < BENCH_BACKENDS_MAX; i++)
        free(sets->of[i].busy);
}

void bench_sets_sum_up(struct bench_sets *sets, int node)
{
    for (int i = 0; i < sets->count; i++)
        bench_load_sum(&sets->loads[i], &sets->of[i].busy[node]);
}

json_t *bench_sets_busy(const struct bench_sets *sets, int node)
{
    json_t *all = json_array();

    for (int i = 0; i < sets->count; i++)
        json_array_append_new(all, bench_busy_to_json(&sets->of[i].busy[node]));
    return all;
}

void bench_sets_take_busy(struct bench_sets *sets, int node, const json_t *busy)
{
    for (int i = 0; i < sets->count; i++)
        bench_busy_from_json(json_array_get(busy, (size_t)i), &sets->of[i].busy[node]);
}

void bench_sets_join(struct bench_sets *sets, const struct bench_plan *plan)
{
    int processes = plan->processes;

    for (int i = 0; i < sets->count && processes > 1; i++)
        for (int node = 0; node < plan->node_count / processes; node++) {
            struct bench_busy all = sets->of[i].busy[node * processes];
            for (int k = 1; k < processes; k++)
                all.own += sets->of[i].busy[node * processes + k].own;
            sets->of[i].busy[node] = all;
        }
}

/* --- measuring --- */

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

int bench_sets_measure(struct bench_bed *bed, struct bench_sets *sets, uint32_t first, struct bench_result *result,
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
        bench_progress_step(progress, sets->step, bench_work_of(plan, set->size, sets->step), doing);
    }
    sets->turn++;
    return code;
}

int bench_sets_add(const struct bench_plan *plan, const struct bench_sets *sets, size_t before,
                   struct bench_result *result, struct wf_status *status)
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

/* --- samples travel --- */

json_t *bench_samples_text(const struct bench_plan *plan, const struct bench_result *result, size_t *first, size_t last)
{
    json_t *text = json_object(), *array = json_array();
    size_t end = *first + BENCH_SAMPLES_PER_TEXT < last ? *first + BENCH_SAMPLES_PER_TEXT : last;

    for (; *first < end; (*first)++)
        json_array_append_new(
            array, bench_sample_to_json(&result->samples[*first], plan->pattern, &result->rails[result->node]));
    json_object_set_new(text, "samples", array);
    return text;
}

/* Never more than are planned, so that there is an end to it. */
static int take_sample(const struct bench_plan *plan, struct bench_result *result, const json_t *entry,
                       struct wf_status *status)
{
    struct bench_sample sample;
    int code = bench_sample_from_json(entry, result->options->backends, plan, &sample, status);

    if (code == 0 && result->sample_count >= bench_plan_samples(plan))
        code =
            wf_fail(status, -EPROTO, "the other node sent more samples than are planned: use the same build on both");
    return code ? code : bench_result_add(result, &sample, status);
}

int bench_samples_take(const struct bench_plan *plan, struct bench_result *result, const json_t *samples,
                       struct wf_status *status)
{
    const json_t *entry;
    size_t index;
    int code = 0;

    json_array_foreach(samples, index, entry)
    {
        if (code == 0)
            code = take_sample(plan, result, entry, status);
    }
    return code;
}
