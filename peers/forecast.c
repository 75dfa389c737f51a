#include "forecast.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "calibrate.h"
#include "foresee.h"
#include "run.h"
#include "version.h"

#define START_S 0.2           /* of the programs of a run, and their end */
#define WARMUP 1.1            /* messages that are sent for each that is measured */
#define GUESS_BYTES_PER_S 2e9 /* before anything is known of their speed */
#define GUESS_MESSAGE_S 1e-6
#define GUESS_HALF_TRIP_S 20e-6

/* --- a tool in a case --- */

int peers_count_variants(const struct peers_plan *plan, const struct peer_case *asked, const struct peer_tool *tool,
                         bool *absent, char why[PEERS_WHY_MAX])
{
    char path[PATH_MAX], reason[200] = "";

    why[0] = '\0';
    *absent = !peer_find_program(tool, plan->place.folder, path, sizeof path);
    if (*absent && tool->package)
        snprintf(why, PEERS_WHY_MAX, "not installed: Debian package %s", tool->package);
    else if (*absent)
        snprintf(why, PEERS_WHY_MAX, "%s is not beside weft", tool->program);
    else if (asked->buffers > 1 && !tool->many_buffers)
        snprintf(why, PEERS_WHY_MAX, "has one buffer only");
    else if (plan->place.memory && !tool->gpu_memory)
        snprintf(why, PEERS_WHY_MAX, "moves host memory here, and --memory is cuda");
    if (why[0])
        return 0;
    int count = tool->variants(asked, &plan->place, reason);
    if (count <= 0)
        snprintf(why, PEERS_WHY_MAX, "%s", reason);
    return count > 0 ? count : 0;
}

bool peers_has_trials(int variant_count)
{
    return variant_count > PEERS_FINALISTS;
}

int peers_trial_count(const struct peers_plan *plan)
{
    return plan->rounds < PEERS_TRIALS_MAX ? plan->rounds : PEERS_TRIALS_MAX;
}

static int runs_of_tool(const struct peers_plan *plan, int variant_count)
{
    if (!peers_has_trials(variant_count))
        return plan->rounds * variant_count;
    return peers_trial_count(plan) * variant_count + plan->rounds * PEERS_FINALISTS;
}

int peers_runs_of_case(const struct peers_plan *plan, const struct peer_case *asked)
{
    char why[PEERS_WHY_MAX];
    bool absent;
    int runs = 0;

    for (int i = 0; i < plan->tool_count; i++)
        runs += runs_of_tool(plan, peers_count_variants(plan, asked, plan->tools[i], &absent, why));
    return runs;
}

/* --- how long --- */

double peers_guess_seconds(const struct peer_case *asked, double messages)
{
    double per_message = asked->metric == PEER_LATENCY ? GUESS_HALF_TRIP_S : GUESS_MESSAGE_S;

    return (asked->metric == PEER_LATENCY ? 2 : 1) * messages * (per_message + (double)asked->size / GUESS_BYTES_PER_S);
}

/* Of one run. Weft takes `seconds` for the messages of a case, and other tools move as many: but large ones are more
 * than fit into it. */
static double run_seconds(const struct peers_plan *plan, const struct peer_case *asked)
{
    double least = asked->inflight > PEERS_MESSAGES_LEAST ? asked->inflight : PEERS_MESSAGES_LEAST;
    double warmup = (double)(plan->fixed_warmup ? asked->warmup : asked->inflight);

    if (plan->fixed_messages)
        return START_S + peers_guess_seconds(asked, (double)asked->messages + (double)asked->warmup);
    double seconds = peers_guess_seconds(asked, least + warmup);
    double usual = plan->fixed_warmup ? plan->seconds + peers_guess_seconds(asked, warmup) : WARMUP * plan->seconds;
    return START_S + (seconds > usual ? seconds : usual);
}

/* Of the run before the others. */
static double first_seconds(const struct peers_plan *plan, const struct peer_case *asked)
{
    const struct peer_case first = peers_first_case(asked);

    if (plan->fixed_messages || plan->fixed_warmup)
        return START_S + peers_guess_seconds(&first, (double)first.messages + (double)first.warmup);
    return run_seconds(plan, asked);
}

static void foresee_case(const struct peers_plan *plan, const struct peer_case *asked, struct peers_forecast *forecast)
{
    int runs = peers_runs_of_case(plan, asked), first = peers_has_first_run(plan, asked);
    char why[PEERS_WHY_MAX];

    forecast->runs += runs + first;
    forecast->seconds += runs * run_seconds(plan, asked) + first * first_seconds(plan, asked);
    for (int i = 0; i < plan->tool_count; i++) {
        struct peers_candidate *candidate = &forecast->tools[i];
        if (peers_count_variants(plan, asked, plan->tools[i], &candidate->absent, why) > 0)
            candidate->cases++;
        else
            memcpy(candidate->why, why, sizeof why);
    }
}

int peers_foresee(const struct peers_plan *plan, struct peers_forecast *forecast, struct wf_status *status)
{
    int result = 0;

    memset(forecast, 0, sizeof *forecast);
    for (int i = 0; i < plan->tool_count; i++)
        forecast->tools[i].tool = plan->tools[i];
    for (int i = 0; i < plan->case_count; i++)
        foresee_case(plan, &plan->cases[i], forecast);
    for (int i = 0; result == 0 && i < plan->tool_count; i++) {
        struct peers_candidate *candidate = &forecast->tools[i];
        if (candidate->cases > 0)
            result = peers_find_version(plan, candidate->tool, candidate->version, sizeof candidate->version, status);
    }
    return result;
}

int peers_rivals(const struct peers_plan *plan, const struct peers_forecast *forecast)
{
    int count = 0;

    for (int i = 0; i < plan->tool_count; i++)
        count += peers_is_rival(plan->tools[i]) && forecast->tools[i].cases > 0;
    return count;
}
