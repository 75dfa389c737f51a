#include "team_work.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/machine/gpus.h"
#include "bench/result/report.h"
#include "facts.h"
#include "sets.h"
#include "workload.h"

#define SERIAL_SHIFT 24 /* phases of a bout, at most: their tags are those of no other one */

/* Owner: bench_team_work(). */
struct tour {
    struct bench_bed *bed;
    struct bench_team *team;
    struct bench_link *link;
    struct bench_result *result;
    struct bench_progress *progress;
    enum bench_mode mode;
    uint32_t waves;          /* isolated: how many there are */
    struct bench_sets *sets; /* by size */
    int set_count;
    size_t before, told; /* samples of this mode begin there; those up to there node0 knows */
    int busy_told;       /* sizes of which it knows what was busy here */
    bool totals_told;
    json_t *totals; /* by process, of nodes with several, once the run is over; NULL: it is not */
};

/* --- what all tell node0 --- */

/* Samples; and at the end of a mode or size what was busy meanwhile, and this node's totals. */
static json_t *tell(void *context)
{
    struct tour *tour = context;
    int node = tour->bed->node;
    json_t *text;

    if (tour->told < tour->result->sample_count) {
        text = bench_samples_text(tour->bed->plan, tour->result, &tour->told, tour->result->sample_count);
    } else if (tour->busy_told < tour->set_count) {
        text = json_pack("{s:o, s:i}", "busy", bench_sets_busy(&tour->sets[tour->busy_told], node), "size",
                         tour->busy_told);
        tour->busy_told++;
    } else if (!tour->totals_told) {
        text = json_pack("{s:o}", "totals", bench_totals(tour->link));
        tour->totals_told = true;
    } else {
        return NULL;
    }
    json_object_set_new(text, "rank", json_integer(node));
    return text;
}

/* Of a node's processes the first one tells what is the node's, and the rails have carried what all of them have: which
 * can be said once all have told. */
static void keep_totals(struct tour *tour, int rank, json_t *totals)
{
    if (tour->bed->plan->processes == 1)
        bench_result_keep_totals(tour->result, rank, totals);
    else if (tour->totals)
        json_array_set(tour->totals, (size_t)rank, totals);
}

static void join_totals(struct tour *tour)
{
    size_t processes = (size_t)tour->bed->plan->processes, rank;
    const json_t *totals;

    json_array_foreach(tour->totals, rank, totals)
    {
        if (!json_is_object(totals))
            continue;
        if (rank % processes == 0)
            bench_result_keep_totals(tour->result, (int)(rank / processes), totals);
        else
            bench_result_add_rails(tour->result, (int)(rank / processes), json_object_get(totals, "rails"));
    }
}

static int take(void *context, const json_t *text, struct wf_status *status)
{
    struct tour *tour = context;
    json_int_t node = json_integer_value(json_object_get(text, "rank"));
    json_int_t size = json_integer_value(json_object_get(text, "size"));

    if (node < 1 || node >= tour->bed->plan->node_count)
        return wf_fail(status, -EPROTO, "a node says it is node%d, which there is not", (int)node);
    if (json_object_get(text, "busy") && size >= 0 && size < tour->set_count)
        bench_sets_take_busy(&tour->sets[size], (int)node, json_object_get(text, "busy"));
    if (json_object_get(text, "totals"))
        keep_totals(tour, (int)node, json_object_get(text, "totals"));
    return bench_samples_take(tour->bed->plan, tour->result, json_object_get(text, "samples"), status);
}

/* Samples that node0 has are kept only where this node's logs need them. */
static void forget_told(struct tour *tour)
{
    struct bench_result *result = tour->result;

    if (tour->bed->node == 0 || wf_config_text(result->options->config, WF_SET_LOG_DIR)[0])
        return;
    pthread_mutex_lock(&result->lock);
    result->sample_count = tour->told = tour->before = 0;
    pthread_mutex_unlock(&result->lock);
}

/* All tell node0 what they have, and nobody goes on before. `over`: the mode, or the size, is. */
static int report(struct tour *tour, bool over, struct wf_status *status)
{
    const struct bench_gathering gathering = {tell, take, tour};
    json_t *go = tour->bed->node == 0 ? json_object() : NULL;

    tour->busy_told = over ? 0 : tour->set_count;
    tour->totals_told = !over;
    for (int i = 0; over && i < tour->set_count; i++)
        bench_sets_sum_up(&tour->sets[i], tour->bed->node);
    int result = bench_team_gather(tour->team, &gathering, status);
    if (result == 0)
        result = bench_team_spread(tour->team, &go, status);
    json_decref(go);
    if (result == 0)
        forget_told(tour);
    return result;
}

/* The sets of what was measured are complete, or cut short. */
static int conclude(struct tour *tour, int code, struct wf_status *status)
{
    struct wf_status ignored;
    int added = 0;

    for (int i = 0; i < tour->set_count; i++)
        bench_sets_join(&tour->sets[i], tour->bed->plan);
    for (int i = 0; added == 0 && i < tour->set_count; i++)
        added = bench_sets_add(tour->bed->plan, &tour->sets[i], tour->before, tour->result, code ? &ignored : status);
    if (code || added)
        return code ? code : added;
    bench_progress_wipe(tour->progress);
    return bench_report_so_far(tour->result, status);
}

static int open_sets(struct tour *tour, int first, int count, struct wf_status *status)
{
    int result = 0;

    tour->sets = calloc((size_t)count, sizeof *tour->sets);
    if (!tour->sets)
        return wf_fail(status, -ENOMEM, "no memory for what is measured");
    tour->set_count = count;
    tour->before = tour->told = tour->result->sample_count;
    for (int i = 0; result == 0 && i < count; i++)
        result =
            bench_sets_init(&tour->sets[i], tour->bed->plan, tour->mode, tour->bed->plan->sizes[first + i], status);
    return result;
}

static void close_sets(struct tour *tour)
{
    for (int i = 0; i < tour->set_count; i++)
        bench_sets_fini(&tour->sets[i]);
    free(tour->sets);
    tour->sets = NULL;
    tour->set_count = 0;
}

/* --- node pairs --- */

static int other_of(const struct tour *tour, const struct bench_bout *bout)
{
    return bout->low == tour->bed->node ? bout->high : bout->low;
}

static bool is_in(const struct tour *tour, const struct bench_bout *bout)
{
    return bout->low == tour->bed->node || bout->high == tour->bed->node;
}

/* Connects the pairs of two nodes, on every backend. */
static int meet(struct tour *tour, const struct bench_bout *bout, struct wf_status *status)
{
    struct bench_bed *bed = tour->bed;
    int result = bench_team_meet(tour->team, other_of(tour, bout), status);

    for (int i = 0; result == 0 && i < bed->plan->backend_count; i++)
        result = bed->plan->backends[i]->meet(bed->backends[i], bout->first, bout->count, status);
    return result;
}

static void part(struct tour *tour, const struct bench_bout *bout)
{
    struct bench_bed *bed = tour->bed;

    for (int i = 0; i < bed->plan->backend_count; i++)
        bed->plan->backends[i]->part(bed->backends[i], bout->first, bout->count);
    bench_team_part(tour->team, other_of(tour, bout));
}

/* The times of a set are shared by all waves, in each of which a node has at most one bout. */
static void share_time(const struct tour *tour, struct bench_sets *sets, const struct bench_bout *bout)
{
    const struct bench_plan *plan = tour->bed->plan;
    uint32_t phases = bout->count / plan->group;

    for (int i = 0; i < sets->count; i++) {
        sets->budgets[i] = (struct bench_budget){plan->check_time_ns / tour->waves, phases};
        sets->paces[i] = (struct bench_budget){bench_plan_share_ns(plan) / tour->waves, phases};
    }
}

static int measure_bout(struct tour *tour, const struct bench_bout *bout, struct wf_status *status)
{
    struct bench_bed *bed = tour->bed;
    int result = 0;

    bed->leads = bout->low == bed->node;
    bed->serial = (uint64_t)(bout - bed->plan->bouts + 1) << SERIAL_SHIFT;
    for (int size = 0; result == 0 && size < tour->set_count; size++) {
        struct bench_sets *sets = &tour->sets[size];
        share_time(tour, sets, bout);
        for (uint32_t i = 0; result == 0 && i < bout->count; i += sets->step)
            result = bench_sets_measure(bed, sets, bout->first + i, tour->result, tour->progress, status);
    }
    return result;
}

static int run_bout(struct tour *tour, const struct bench_bout *bout, struct wf_status *status)
{
    struct bench_bed *bed = tour->bed;
    bool alone = bout->low == bout->high;
    int result = alone ? 0 : meet(tour, bout, status);

    bed->control = alone ? bench_team_alone(tour->team) : tour->link->control;
    if (result == 0)
        result = measure_bout(tour, bout, status);
    bed->control = bench_team_control(tour->team);
    if (result == 0 && !alone)
        part(tour, bout);
    return result;
}

/* --- the modes --- */

/* The end of a wave that begins with bout `first`: of one round, and at most `at_once` of them. A node alone disturbs
 * nobody. */
static uint32_t wave_end(const struct bench_plan *plan, uint32_t first, uint32_t at_once)
{
    uint32_t end = first + 1;

    while (end < plan->bout_count && plan->bouts[end].round == plan->bouts[first].round &&
           (at_once == 0 || end - first < at_once))
        end++;
    return end;
}

static int go_round(struct tour *tour, uint32_t at_once, struct wf_status *status)
{
    const struct bench_plan *plan = tour->bed->plan;
    int result = 0;

    for (uint32_t first = 0, end; result == 0 && first < plan->bout_count; first = end) {
        end = wave_end(plan, first, at_once);
        for (uint32_t i = first; result == 0 && i < end; i++)
            if (is_in(tour, &plan->bouts[i]))
                result = run_bout(tour, &plan->bouts[i], status);
        if (result == 0)
            result = report(tour, end == plan->bout_count, status);
    }
    return result;
}

static int measure_isolated(struct tour *tour, uint32_t at_once, struct wf_status *status)
{
    const struct bench_plan *plan = tour->bed->plan;

    tour->mode = BENCH_ISOLATED;
    tour->waves = 0;
    for (uint32_t first = 0; first < plan->bout_count; first = wave_end(plan, first, at_once))
        tour->waves++;
    int result = open_sets(tour, 0, plan->size_count, status);
    if (result == 0)
        result = go_round(tour, at_once, status);
    result = conclude(tour, result, status);
    close_sets(tour);
    return result;
}

/* In the order of rounds, so that nobody waits for somebody who waits. */
static int meet_all(struct tour *tour, struct wf_status *status)
{
    const struct bench_plan *plan = tour->bed->plan;
    int result = 0;

    for (uint32_t i = 0; result == 0 && i < plan->bout_count; i++) {
        const struct bench_bout *bout = &plan->bouts[i];
        if (!is_in(tour, bout) || bout->low == bout->high)
            continue;
        result = meet(tour, bout, status);
        if (result == 0)
            bench_team_hang_up(tour->team, other_of(tour, bout));
    }
    return result;
}

static void part_all(struct tour *tour)
{
    const struct bench_plan *plan = tour->bed->plan;

    for (uint32_t i = 0; i < plan->bout_count; i++)
        if (is_in(tour, &plan->bouts[i]) && plan->bouts[i].low != plan->bouts[i].high)
            part(tour, &plan->bouts[i]);
}

static int measure_loaded(struct tour *tour, struct wf_status *status)
{
    struct bench_bed *bed = tour->bed;
    int result = meet_all(tour, status);

    tour->mode = BENCH_LOADED;
    bed->control = bench_team_control(tour->team);
    bed->serial = (uint64_t)(bed->plan->bout_count + 1) << SERIAL_SHIFT;
    for (int size = 0; result == 0 && size < bed->plan->size_count; size++) {
        result = open_sets(tour, size, 1, status);
        if (result == 0)
            result = bench_sets_measure(bed, tour->sets, 0, tour->result, tour->progress, status);
        if (result == 0)
            result = report(tour, true, status);
        result = conclude(tour, result, status);
        close_sets(tour);
    }
    if (result == 0)
        part_all(tour);
    return result;
}

/* --- all of it --- */

static int check_backends(const struct bench_plan *plan, struct wf_status *status)
{
    for (int i = 0; i < plan->backend_count; i++)
        if (!plan->backends[i]->meet)
            return wf_fail(status, -EINVAL,
                           "--backend %s is between two nodes that know each other: use --listen and "
                           "--connect, or leave it out",
                           plan->backend_names[i]);
    return 0;
}

/* The part of the plan that this node takes part in. */
static void start_progress(struct tour *tour)
{
    const struct bench_plan *plan = tour->bed->plan;
    uint64_t pairs = 0, isolated = 0, loaded = 0, work = 0;

    for (uint32_t i = 0; i < plan->bout_count; i++)
        pairs += is_in(tour, &plan->bouts[i]) ? plan->bouts[i].count : 0;
    isolated = plan->modes[BENCH_ISOLATED] ? pairs : 0;
    loaded = plan->modes[BENCH_LOADED] ? plan->pair_count : 0;
    for (int i = 0; i < plan->size_count; i++)
        work += bench_work_of(plan, plan->sizes[i], (uint32_t)(isolated + loaded)) * (uint64_t)plan->backend_count;
    bench_progress_start(tour->progress,
                         (isolated + loaded) * (uint64_t)plan->size_count * (uint64_t)plan->backend_count, work,
                         plan->iters ? 0 : plan->auto_ns);
}

int bench_team_work(struct bench_bed *bed, struct bench_team *team, uint32_t at_once, struct bench_link *link,
                    struct bench_result *result, struct bench_progress *progress, struct wf_status *status)
{
    struct tour tour = {.bed = bed, .team = team, .link = link, .result = result, .progress = progress};
    int code = check_backends(bed->plan, status);

    if (code == 0)
        code = bench_workload_open(bed, link, progress, status);
    start_progress(&tour);
    if (code == 0 && bed->plan->modes[BENCH_ISOLATED])
        code = measure_isolated(&tour, at_once, status);
    if (code == 0 && bed->plan->modes[BENCH_LOADED])
        code = measure_loaded(&tour, status);
    if (code == 0)
        bench_workload_close(bed);
    return code;
}

int bench_team_finish(struct bench_bed *bed, struct bench_team *team, struct bench_link *link,
                      struct bench_result *result, bool *passed, struct wf_status *status)
{
    struct tour tour = {.bed = bed, .team = team, .link = link, .result = result};
    const struct bench_gathering gathering = {tell, take, &tour};
    json_t *verdict = NULL;

    link->footprint.sessions = bench_team_sessions(team);
    if (link->gpus.count)
        link->gpu_states = bench_gpu_states(&link->gpus, bed->plan->endpoints);
    json_t *totals = bench_totals(link);
    bench_result_keep_totals(result, result->node, totals);
    json_decref(totals);
    tour.told = result->sample_count;
    tour.totals = json_array();
    for (int i = 0; i < bed->plan->node_count; i++)
        json_array_append_new(tour.totals, json_null());
    int code = bench_team_gather(team, &gathering, status);
    join_totals(&tour);
    json_decref(tour.totals);
    if (code)
        return code;
    *passed = bench_result_wrong_bytes(result) == 0 && result->sample_count == bench_plan_samples(bed->plan);
    if (bed->node == 0)
        verdict = json_pack("{s:b}", "passed", (int)*passed);
    code = bench_team_spread(team, &verdict, status);
    if (code == 0)
        *passed = json_is_true(json_object_get(verdict, "passed"));
    json_decref(verdict);
    return code;
}
