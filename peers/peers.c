#include "peers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/config.h"
#include "calibrate.h"
#include "forecast.h"
#include "reading.h"
#include "report.h"

#define FAILURES_MAX 2    /* in a row, at the start, after which a variant is given up */
#define TRIALS_AT_FIRST 3 /* so many each variant gets, */
#define HOPELESS 0.75     /* and no more if it never came so near to the best of its tool in the same one */

static const struct peer_reading nothing = {-1, -1, -1, -1, -1, -1};

/* --- before the rounds --- */

static struct peer_reading *no_readings(int count)
{
    struct peer_reading *readings = calloc((size_t)count, sizeof *readings);

    for (int i = 0; readings && i < count; i++)
        readings[i] = nothing;
    return readings;
}

static int make_variants(const struct peers_plan *plan, struct peers_row *row, int count, struct wf_status *status)
{
    row->variants = calloc((size_t)count, sizeof *row->variants);
    if (!row->variants)
        return wf_fail(status, -ENOMEM, "no memory for the results");
    row->variant_count = count;
    for (int i = 0; i < count; i++) {
        struct peers_variant *variant = &row->variants[i];
        variant->trials = no_readings(PEERS_TRIALS_MAX);
        variant->rounds = no_readings(plan->rounds);
        if (!variant->trials || !variant->rounds)
            return wf_fail(status, -ENOMEM, "no memory for the results");
    }
    return 0;
}

/* What there is to run of a tool, or why there is nothing. */
static int prepare_row(const struct peers_plan *plan, const struct peer_case *asked, const struct peer_tool *tool,
                       struct peers_row *row, struct wf_status *status)
{
    row->tool = tool;
    int count = peers_count_variants(plan, asked, tool, &row->absent, row->why);
    if (count == 0)
        return 0;
    if (count > PEERS_VARIANTS_MAX)
        return wf_fail(status, -E2BIG, "%s has %d ways, of which %d could be tried", tool->name, count,
                       PEERS_VARIANTS_MAX);
    return make_variants(plan, row, count, status);
}

static int prepare_block(const struct peers_plan *plan, struct peers_block *block, struct wf_status *status)
{
    int result = 0;

    for (int i = 0; result == 0 && i < plan->tool_count; i++)
        result = prepare_row(plan, &block->asked, plan->tools[i], &block->rows[i], status);
    return result;
}

/* --- a round --- */

/* What a round runs: a variant of a row. */
struct turn {
    struct peers_row *row;
    int variant;
};

/* The trials of a block, or its rounds. */
struct series {
    const struct peers_plan *plan;
    struct peers_block *block;
    bool trials;
    int done, total; /* runs of all blocks, for `progress` */
    struct turn turns[PEERS_TOOLS_MAX * PEERS_VARIANTS_MAX];
    int count;
};

static void collect_turns(struct series *series)
{
    series->count = 0;
    for (int i = 0; i < series->plan->tool_count; i++) {
        struct peers_row *row = &series->block->rows[i];
        for (int v = 0; v < row->variant_count; v++)
            if (!row->variants[v].given_up && (!series->trials || peers_has_trials(row->variant_count)))
                series->turns[series->count++] = (struct turn){row, v};
    }
}

static struct peer_reading *reading_of(const struct series *series, const struct peers_variant *variant)
{
    return series->trials ? &variant->trials[series->block->trials_done] : &variant->rounds[series->block->rounds_done];
}

static int take_turn(const struct series *series, const struct turn *turn, struct wf_status *status)
{
    const struct peers_plan *plan = series->plan;
    struct peers_row *row = turn->row;
    struct peers_variant *variant = &row->variants[turn->variant];
    struct peer_reading *reading = reading_of(series, variant);
    struct wf_status why = {0}, stopped = {0};

    if (variant->given_up)
        return 0;
    variant->runs++;
    int result = peers_run_once(plan, series->block, row->tool, turn->variant, &variant->commands, reading, &why);
    if (result == 0)
        return 0;
    *reading = nothing;
    /* Whatever a program that was stopped said, the stop is the reason. */
    if (plan->stop && plan->stop(plan->context, &stopped) != 0) {
        *status = stopped;
        return status->code;
    }
    snprintf(row->error, sizeof row->error, "%s", why.text);
    peer_make_utf8(row->error);
    variant->failures++;
    variant->given_up = variant->failures == variant->runs && variant->failures >= FAILURES_MAX;
    return 0;
}

static void tell(const struct series *series, const struct turn *turn)
{
    const struct peers_plan *plan = series->plan;
    const struct peer_case *asked = &series->block->asked;
    char size[32], doing[128];

    if (!plan->progress)
        return;
    snprintf(doing, sizeof doing, "%s %s: %s%s", peers_metric_name(asked->metric),
             wf_format_size(asked->size, size, sizeof size), turn->row->tool->name, series->trials ? " (trial)" : "");
    plan->progress(plan->context, series->done, series->total, doing);
}

/* Every variant once; the first is another one than in the round before. */
static int run_round(struct series *series, int round, struct wf_status *status)
{
    int result = 0;

    for (int i = 0; result == 0 && i < series->count; i++) {
        const struct turn *turn = &series->turns[(i + round) % series->count];
        tell(series, turn);
        result = take_turn(series, turn, status);
        series->done++;
    }
    return result;
}

/* --- trials --- */

/* How near `mine` comes to `best`, which is 1; more where it is better. */
static double nearness(const struct peers_block *block, const struct peer_reading *mine,
                       const struct peer_reading *best)
{
    double value = peers_value(mine, block->asked.metric, false), other = peers_value(best, block->asked.metric, false);

    if (value <= 0 || other <= 0)
        return value > 0 ? 1 : 0;
    return block->asked.metric == PEER_LATENCY ? other / value : value / other;
}

/* Ways to call a tool that have no chance would take most of the time. */
static void give_up_hopeless(const struct peers_block *block, struct peers_row *row)
{
    int best = peers_best_in_trials(block, row);

    for (int v = 0; v < row->variant_count && best >= 0; v++) {
        struct peers_variant *variant = &row->variants[v];
        bool hopeless = true;
        for (int trial = 0; trial < block->trials_done; trial++)
            if (nearness(block, &variant->trials[trial], &row->variants[best].trials[trial]) >= HOPELESS)
                hopeless = false;
        variant->given_up = variant->given_up || hopeless;
    }
}

/* Leaves the best of the trials. */
static void choose_finalists(const struct peers_block *block, struct peers_row *row)
{
    int chosen[PEERS_FINALISTS], count = 0, best;

    while (count < PEERS_FINALISTS && (best = peers_best_in_trials(block, row)) >= 0) {
        row->variants[best].given_up = true; /* for the search of the next one */
        chosen[count++] = best;
    }
    for (int v = 0; v < row->variant_count; v++)
        row->variants[v].given_up = true;
    while (count > 0)
        row->variants[chosen[--count]].given_up = false;
}

static int run_trials(struct series *series, struct wf_status *status)
{
    const struct peers_plan *plan = series->plan;
    struct peers_block *block = series->block;
    int result = 0;

    series->trials = true;
    collect_turns(series);
    while (result == 0 && series->count > 0 && block->trials_done < peers_trial_count(plan)) {
        result = run_round(series, block->trials_done, status);
        block->trials_done += result == 0;
        for (int i = 0; result == 0 && block->trials_done == TRIALS_AT_FIRST && i < plan->tool_count; i++)
            if (peers_has_trials(block->rows[i].variant_count))
                give_up_hopeless(block, &block->rows[i]);
    }
    for (int i = 0; result == 0 && i < plan->tool_count; i++)
        if (peers_has_trials(block->rows[i].variant_count))
            choose_finalists(block, &block->rows[i]);
    return result;
}

/* --- rounds --- */

static int run_rounds(struct series *series, struct wf_status *status)
{
    struct peers_block *block = series->block;
    int result = 0;

    series->trials = false;
    collect_turns(series);
    while (result == 0 && block->rounds_done < series->plan->rounds) {
        result = run_round(series, block->rounds_done, status);
        block->rounds_done += result == 0;
    }
    return result;
}

/* --- all cases --- */

/* Runs that the cases before `index` take at most; of all where that is their number. */
static int runs_before(const struct peers_plan *plan, int index)
{
    int runs = 0;

    for (int i = 0; i < index; i++)
        runs += peers_runs_of_case(plan, &plan->cases[i]);
    return runs;
}

static int run_block(const struct peers_plan *plan, struct peers_block *block, int index, struct wf_status *status)
{
    struct series series = {
        .plan = plan, .block = block, .done = runs_before(plan, index), .total = runs_before(plan, plan->case_count)};
    int result = run_trials(&series, status);
    return result ? result : run_rounds(&series, status);
}

static int measure_case(const struct peers_plan *plan, struct peers_block *block, int index, struct wf_status *status)
{
    block->asked = plan->cases[index];
    int result = peers_calibrate(plan, block, status);
    if (result == 0)
        result = prepare_block(plan, block, status);
    if (result == 0)
        result = run_block(plan, block, index, status);
    if (result) {
        snprintf(block->error, sizeof block->error, "%s", status->text);
        peer_make_utf8(block->error);
    }
    return result;
}

int peers_measure(const struct peers_plan *plan, struct peers_result *result, struct wf_status *status)
{
    int64_t start_ns = wf_clock_now(&wf_clock_monotonic);
    int code = 0;

    memset(result, 0, sizeof *result);
    result->plan = plan;
    result->blocks = calloc((size_t)plan->case_count, sizeof *result->blocks);
    if (!result->blocks)
        return wf_fail(status, -ENOMEM, "no memory for the results");
    for (int i = 0; code == 0 && i < plan->case_count; i++) {
        struct peers_block *block = &result->blocks[result->block_count++];
        code = measure_case(plan, block, i, status);
        result->complete = code == 0 && i + 1 == plan->case_count;
        result->seconds = (double)(wf_clock_now(&wf_clock_monotonic) - start_ns) / 1e9;
        if (plan->measured)
            plan->measured(plan->context, result, i);
    }
    return code;
}

void peers_result_fini(struct peers_result *result)
{
    for (int b = 0; b < result->block_count; b++)
        for (int i = 0; i < PEERS_TOOLS_MAX; i++) {
            struct peers_row *row = &result->blocks[b].rows[i];
            for (int v = 0; v < row->variant_count; v++) {
                free(row->variants[v].trials);
                free(row->variants[v].rounds);
            }
            free(row->variants);
        }
    free(result->blocks);
    memset(result, 0, sizeof *result);
}

bool peers_passed(const struct peers_result *result)
{
    for (int b = 0; b < result->block_count; b++)
        for (int i = 0; i < result->plan->tool_count; i++) {
            const struct peers_row *row = &result->blocks[b].rows[i];
            if (row->tool && peers_is_weft(row->tool) && row->error[0])
                return false;
        }
    return result->complete;
}
