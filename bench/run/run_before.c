/* What comes before anything is measured: what can be refused, the meeting of the nodes, and what they agree on. */
#include <errno.h>
#include <stdio.h>

#include "agree.h"
#include "backends.h"
#include "bench/machine/memory_limits.h"
#include "bench/result/expect.h"
#include "bench/result/files.h"
#include "bench/result/stream.h"
#include "fit.h"
#include "line.h"
#include "meet.h"
#include "run_parts.h"
#include "team_agree.h"

/* --- before the run --- */

FILE *bench_run_news(const struct bench_run *run)
{
    return bench_quiet(run->options->config) ? NULL : bench_people(run->options->config);
}

static bool is_of_many(const struct bench_options *options)
{
    return options->place == BENCH_PLACE_GROUP || options->nodes > 0;
}

/* Whether this node may be one that leaves results; before a group has met, nobody is. */
static bool leaves_results(const struct bench_run *run)
{
    return !run->options->child && (run->team || run->options->place != BENCH_PLACE_GROUP);
}

/* What this machine has. A server's plan is only its own idea until the client has said what it wants. */
static int fit_here(struct bench_run *run, int node, struct wf_status *status)
{
    struct bench_limits limits;
    struct bench_parties parties = {
        .all = {{node, &run->gpus, &limits}, {1, &run->gpus, &limits}},
        .count = run->options->place == BENCH_PLACE_LOCAL ? 2 : 1,
    };

    if (run->options->place == BENCH_PLACE_LISTEN || is_of_many(run->options))
        return 0;
    bench_limits_read(&limits, "");
    return bench_fit(run->options, &run->plan, &parties, bench_run_news(run), status);
}

static int prepare_results(struct bench_run *run, const struct bench_plan *plan, struct wf_status *status)
{
    int result = bench_files_prepare(run->options, plan, &run->made_out, status);

    if (result == 0 && (run->visit || !run->options->keep))
        result = bench_stream_open(&run->result, status);
    return result;
}

int bench_run_prepare(struct bench_run *run, struct wf_status *status)
{
    struct bench_options *options = run->options;
    struct bench_gpus *gpus = &run->gpus;
    int node = options->place == BENCH_PLACE_CONNECT ? 1 : 0;
    int result = options->place == BENCH_PLACE_LOCAL ? bench_local_defaults(options, status) : 0;

    if (result == 0)
        result = bench_gpus_choose(gpus, options, node, status);
    options->default_endpoints = gpus->count;
    options->backends = bench_backends;
    if (result == 0)
        result = bench_plan_init(&run->plan, options, status);
    if (result)
        return result;
    bench_plan_set_memory(&run->plan, node, gpus->memory, gpus->count);
    if (options->place == BENCH_PLACE_LOCAL)
        run->result.nearness = BENCH_LOOPBACK;
    double share;
    result = options->place == BENCH_PLACE_LOCAL ? bench_expect_ready(&run->result, status)
                                                 : bench_expect_read(options, &share, status);
    if (result)
        return result;
    if (options->place != BENCH_PLACE_LISTEN)
        result = bench_backends_check(&run->plan, options->config, node, status);
    if (result == 0)
        result = fit_here(run, node, status);
    run->result.plan = &run->plan;
    if (result == 0 && leaves_results(run))
        result = prepare_results(run, options->place == BENCH_PLACE_LISTEN ? NULL : &run->plan, status);
    return result;
}

/* --- connecting --- */

/* node0 speaks for all; of a member only errors are heard. */
static void fall_silent(struct bench_run *run)
{
    struct wf_status ignored;

    wf_config_set(run->options->config, WF_SET_QUIET, "on", WF_ORIGIN_PRESET, "node0 speaks for all", &ignored);
    bench_progress_close(&run->progress);
    bench_progress_open(&run->progress, false);
}

/* Who this node is, is known now. */
static int become_member(struct bench_run *run, struct wf_status *status)
{
    struct bench_options *options = run->options;
    bool known = options->place == BENCH_PLACE_LOCAL || options->child;
    int asked = options->nodes;

    options->nodes = bench_team_size(run->team);
    options->member = run->link.node > 0 && !options->child;
    options->child |= options->member;
    run->control = bench_team_control(run->team);
    bench_ending_set_link(&run->ending, &run->link, run->control);
    if (bench_run_news(run) && !options->child)
        fprintf(bench_run_news(run), "%s\n%s", bench_team_source(run->team), bench_team_refused(run->team));
    if (options->member)
        fall_silent(run);
    if (options->nodes < 2)
        return wf_fail(status, -EINVAL, "%s: a mesh has 2 nodes at least", bench_team_source(run->team));
    if (asked && asked != options->nodes)
        return wf_fail(status, -EINVAL, "--nodes %d, and %s: start as many", asked, bench_team_source(run->team));
    int processes = (int)wf_config_number(options->config, WF_SET_PROCESSES);
    if (options->nodes % processes || options->nodes == processes)
        return wf_fail(status, -EINVAL, "%s, and --processes %d: start so many on each of 2 nodes or more",
                       bench_team_source(run->team), processes);
    run->link.processes = processes;
    run->result.node = bench_link_number(&run->link);
    int result = bench_result_set_nodes(&run->result, options->nodes / processes, status);
    pthread_mutex_lock(&run->result.lock);
    bench_plan_fini(&run->plan);
    if (result == 0)
        result = bench_plan_init(&run->plan, options, status);
    bench_plan_set_memory(&run->plan, run->link.node, run->gpus.memory, run->gpus.count);
    pthread_mutex_unlock(&run->result.lock);
    return result == 0 && !known && leaves_results(run) ? prepare_results(run, &run->plan, status) : result;
}

int bench_run_meet(struct bench_run *run, struct wf_status *status)
{
    struct bench_meeting meeting = {
        .options = run->options,
        .gpus = &run->gpus,
        .link = &run->link,
        .child = &run->child,
        .ending = &run->ending,
        .progress = &run->progress,
    };

    int result =
        is_of_many(run->options) ? bench_meet_team(&meeting, &run->team, status) : bench_meet(&meeting, status);
    run->prepared = meeting.prepared;
    return result == 0 && run->team ? become_member(run, status) : result;
}

void bench_run_receive(struct bench_run *run)
{
    const struct bench_guest *guest = &run->visit->guest;

    bench_link_visit(&run->link, run->visit->house, guest->peer, guest->connection);
    run->link.gpus = run->gpus;
    run->link.gave_way = run->options->gave_way;
    run->control = guest->control;
    run->prepared = true;
    bench_ending_set_link(&run->ending, &run->link, run->control);
}

/* Whose turn it is, before anything else. */
static int take_turn(struct bench_run *run, struct wf_status *status)
{
    const char *command = bench_command_name(run->options->command);

    if (run->link.node == 0)
        return bench_line_call(run->control, command, status);
    int result = bench_line_wait(run->control, command, run->options->address, bench_run_news(run), status);
    bench_control_expect_within(run->control, run->link.connect_timeout_ms);
    return result;
}

/* The endpoints of a process take the GPUs of their numbers: here, the first ones. */
static void take_share_of_gpus(struct bench_gpus *gpus, uint32_t first)
{
    struct bench_gpus all = *gpus;

    for (uint32_t i = 0; i < gpus->count; i++)
        gpus->infos[i] = all.infos[(first + i) % gpus->count];
}

/* The result is about nodes, whatever processes they have. */
static int make_outer(struct bench_run *run, struct wf_status *status)
{
    uint32_t processes = (uint32_t)run->plan.processes, share = run->plan.endpoints;
    struct bench_options options = *run->options;

    options.nodes /= run->plan.processes;
    options.whole = true;
    int result = bench_plan_init(&run->outer, &options, status);
    if (result)
        return result;
    for (int node = 0; node < options.nodes; node++)
        bench_plan_set_memory(&run->outer, node, run->plan.nodes[node * run->plan.processes].memory,
                              run->plan.nodes[node * run->plan.processes].gpus);
    pthread_mutex_lock(&run->result.lock);
    run->result.plan = &run->outer;
    run->result.first_endpoint = (uint32_t)run->link.node % processes * share;
    run->result.endpoint_count = share;
    pthread_mutex_unlock(&run->result.lock);
    take_share_of_gpus(&run->link.gpus, run->result.first_endpoint);
    return 0;
}

int bench_run_agree(struct bench_run *run, struct wf_status *status)
{
    struct bench_agreement agreement = {
        .options = run->options,
        .plan = &run->plan,
        .link = &run->link,
        .result = &run->result,
        .news = bench_run_news(run),
    };
    int result = run->control ? 0
                              : bench_control_create(run->link.connection, run->link.peer, run->link.node,
                                                     &run->control, status);

    if (result)
        return result;
    if (run->options->place == BENCH_PLACE_LOCAL)
        bench_control_look_after(run->control, bench_child_mourn, &run->child);
    agreement.control = run->link.control = run->control;
    bench_ending_set_link(&run->ending, &run->link, run->control);
    bench_control_expect_within(run->control, run->link.connect_timeout_ms);
    result = run->team ? bench_team_agree(&agreement, run->team, &run->at_once, status) : take_turn(run, status);
    if (result == 0 && !run->team)
        result = bench_agree(&agreement, status);
    if (result == 0)
        result = bench_backends_check(&run->plan, run->options->config, BENCH_BOTH_NODES, status);
    run->agreed = result == 0;
    if (run->visit && run->agreed && agreement.news)
        fprintf(agreement.news, "run %d begins, with %s\n", run->visit->number, weft_peer_name(run->link.peer));
    if (agreement.news)
        fflush(agreement.news);
    /* What the other node wants measured may take more room than what was planned here. */
    if (result == 0 && run->options->place == BENCH_PLACE_LISTEN)
        result = bench_files_prepare(run->options, &run->plan, &run->made_out, status);
    if (result == 0 && run->plan.processes > 1)
        result = make_outer(run, status);
    run->result.at_once = run->at_once;
    bench_control_expect_within(run->control, -1);
    run->bed.copied_up_to = agreement.eager;
    if (result == 0 && (result = bench_expect_ready(&run->result, status)) != 0)
        run->prepared = false; /* wrong usage, which only showed now */
    return result;
}
