#include "peers.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "calibrate.h"

#define FAILURES_MAX 2 /* in a row, at the start, after which a variant is given up */
#define TRIAL_ROUNDS 3 /* so many each variant gets, */
#define HOPELESS 0.75  /* and no more if it never came so near to the best of its tool in the same round */

static const struct peer_reading nothing = {-1, -1, -1, -1, -1, -1};

/* ------------------------------------------------------------------------------------------- before the rounds */

static int make_variants(const struct peers_plan *plan, struct peers_row *row, int count, struct wf_status *status)
{
    row->variants = calloc((size_t)count, sizeof(*row->variants));
    if (!row->variants)
        return wf_fail(status, -ENOMEM, "no memory for the results");
    row->variant_count = count;
    for (int i = 0; i < count; i++) {
        row->variants[i].rounds = calloc((size_t)plan->rounds, sizeof(*row->variants[i].rounds));
        if (!row->variants[i].rounds)
            return wf_fail(status, -ENOMEM, "no memory for the results");
        for (int round = 0; round < plan->rounds; round++)
            row->variants[i].rounds[round] = nothing;
    }
    return 0;
}

/* What there is to run of a tool, or why there is nothing. */
static int prepare_row(const struct peers_plan *plan, const struct peer_case *asked, const struct peer_tool *tool,
                       struct peers_row *row, struct wf_status *status)
{
    char path[PATH_MAX], why[200] = "";
    int count;

    row->tool = tool;
    if (!peer_find_program(tool, plan->place.folder, path, sizeof(path))) {
        row->absent = true;
        if (tool->package)
            snprintf(row->why, sizeof(row->why), "not installed: Debian package %s", tool->package);
        else
            snprintf(row->why, sizeof(row->why), "%s is not beside weft", tool->program);
        return 0;
    }
    if (asked->buffers > 1 && !tool->many_buffers) {
        snprintf(row->why, sizeof(row->why), "has one buffer only");
        return 0;
    }
    if (plan->place.memory && !tool->gpu_memory) {
        snprintf(row->why, sizeof(row->why), "moves host memory here, and --memory is cuda");
        return 0;
    }
    count = tool->variants(asked, &plan->place, why);
    if (count <= 0) {
        snprintf(row->why, sizeof(row->why), "%s", why);
        return 0;
    }
    if (count > PEERS_VARIANTS_MAX)
        return wf_fail(status, -E2BIG, "%s has %d ways, of which %d could be tried", tool->name, count,
                       PEERS_VARIANTS_MAX);
    return make_variants(plan, row, count, status);
}

static int prepare_block(const struct peers_plan *plan, struct peers_block *block, struct wf_status *status)
{
    int rc = 0;

    for (int i = 0; rc == 0 && i < plan->tool_count; i++)
        rc = prepare_row(plan, &block->asked, plan->tools[i], &block->rows[i], status);
    return rc;
}

/* ------------------------------------------------------------------------------------------- a round */

/* What the rounds of a block run: each variant of each row. */
struct turn {
    struct peers_row *row;
    int variant;
};

static int collect_turns(const struct peers_plan *plan, struct peers_block *block, struct turn *turns)
{
    int count = 0;

    for (int i = 0; i < plan->tool_count; i++)
        for (int v = 0; v < block->rows[i].variant_count; v++)
            turns[count++] = (struct turn){&block->rows[i], v};
    return count;
}

static int take_turn(const struct peers_plan *plan, const struct peers_block *block, const struct turn *turn, int round,
                     struct wf_status *status)
{
    struct peers_row *row = turn->row;
    struct peers_variant *variant = &row->variants[turn->variant];
    struct wf_status why = {0}, stopped = {0};
    int rc;

    if (variant->given_up)
        return 0;
    variant->runs++;
    rc = peers_run_once(plan, block, row->tool, turn->variant, &variant->commands, &variant->rounds[round], &why);
    if (rc == 0)
        return 0;
    variant->rounds[round] = nothing;
    /* Whatever a program that was stopped said, the stop is the reason. */
    if (plan->stop && plan->stop(plan->context, &stopped) != 0) {
        *status = stopped;
        return status->code;
    }
    snprintf(row->error, sizeof(row->error), "%s", why.text);
    variant->failures++;
    variant->given_up = variant->failures == round + 1 && variant->failures >= FAILURES_MAX;
    return 0;
}

static void tell(const struct peers_plan *plan, const struct peers_block *block, const struct turn *turn, int done,
                 int total)
{
    char size[32], doing[128];

    if (!plan->progress)
        return;
    snprintf(doing, sizeof(doing), "%s %s: %s", peers_metric_name(block->asked.metric),
             wf_format_size(block->asked.size, size, sizeof(size)), turn->row->tool->name);
    plan->progress(plan->context, done, total, doing);
}

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
    int best = peers_best_variant(block, row);

    for (int v = 0; v < row->variant_count && best >= 0; v++) {
        struct peers_variant *variant = &row->variants[v];
        bool hopeless = true;
        for (int round = 0; round < block->rounds_done; round++)
            if (nearness(block, &variant->rounds[round], &row->variants[best].rounds[round]) >= HOPELESS)
                hopeless = false;
        variant->given_up = variant->given_up || hopeless;
    }
}

static int run_rounds(const struct peers_plan *plan, struct peers_block *block, int index, struct wf_status *status)
{
    struct turn turns[PEERS_TOOLS_MAX * PEERS_VARIANTS_MAX];
    int count = collect_turns(plan, block, turns), rc = 0;

    for (int round = 0; round < plan->rounds; round++) {
        for (int i = 0; i < count; i++) {
            const struct turn *turn = &turns[(i + round) % count];
            tell(plan, block, turn, (index * plan->rounds + round) * count + i,
                 plan->case_count * plan->rounds * count);
            rc = take_turn(plan, block, turn, round, status);
            if (rc)
                return rc;
        }
        block->rounds_done = round + 1;
        for (int i = 0; round + 1 == TRIAL_ROUNDS && i < plan->tool_count; i++)
            give_up_hopeless(block, &block->rows[i]);
    }
    return 0;
}

/* ------------------------------------------------------------------------------------------- all cases */

int peers_measure(const struct peers_plan *plan, struct peers_result *result, struct wf_status *status)
{
    int rc = 0;

    memset(result, 0, sizeof(*result));
    result->plan = plan;
    result->blocks = calloc((size_t)plan->case_count, sizeof(*result->blocks));
    if (!result->blocks)
        return wf_fail(status, -ENOMEM, "no memory for the results");
    for (int i = 0; rc == 0 && i < plan->case_count; i++) {
        struct peers_block *block = &result->blocks[result->block_count++];
        block->asked = plan->cases[i];
        if (!plan->fixed_messages)
            rc = peers_calibrate(plan, block, status);
        if (rc == 0)
            rc = prepare_block(plan, block, status);
        if (rc == 0)
            rc = run_rounds(plan, block, i, status);
        if (rc)
            snprintf(block->error, sizeof(block->error), "%s", status->text);
    }
    result->complete = rc == 0;
    return rc;
}

void peers_result_fini(struct peers_result *result)
{
    for (int b = 0; b < result->block_count; b++)
        for (int i = 0; i < PEERS_TOOLS_MAX; i++) {
            struct peers_row *row = &result->blocks[b].rows[i];
            for (int v = 0; v < row->variant_count; v++)
                free(row->variants[v].rounds);
            free(row->variants);
        }
    free(result->blocks);
    memset(result, 0, sizeof(*result));
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
