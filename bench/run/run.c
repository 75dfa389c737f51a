#include "run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agree.h"
#include "backends.h"
#include "bench/buffers/arena.h"
#include "bench/machine/gpus.h"
#include "bench/machine/memory_limits.h"
#include "bench/machine/placement.h"
#include "bench/profile/profile.h"
#include "bench/report/report.h"
#include "bench/result/expect.h"
#include "bench/result/files.h"
#include "bench/result/report.h"
#include "bench/result/stream.h"
#include "bench/topo/topo.h"
#include "bench/words/columns.h"
#include "bench/words/interrupt.h"
#include "bench/words/words.h"
#include "ending.h"
#include "fit.h"
#include "keep.h"
#include "line.h"
#include "local.h"
#include "meet.h"
#include "visit.h"
#include "workload.h"

#define CHILD_PATIENCE_MS 3000 /* for node1 to end by itself after a run that went well */
#define CHILD_HURRY_MS 300     /* after one that did not */

/* Large: on the heap. */
struct run {
    struct bench_options *options;
    struct bench_visit *visit; /* of a server that stays; NULL: the node is there for this run alone */
    struct bench_gpus gpus;    /* chosen before the other node has its say */
    struct bench_plan plan;
    struct bench_link link;
    struct bench_control *control;
    struct bench_arena arena;
    struct bench_bed bed;
    struct bench_result result;
    struct bench_progress progress;
    struct bench_child child;
    struct bench_ending ending;
    struct bench_profile_lock lock;
    bool made_out; /* the folder of --out was not there before */
    bool prepared; /* settings are sound: from here on a failure is a failure of the run */
    bool unready;  /* it failed before the other node had any part in it */
    bool agreed;   /* with the other node on what is measured */
    bool passed;
};

/* --- before the run --- */

static FILE *news(const struct run *run)
{
    return bench_quiet(run->options->config) ? NULL : bench_people(run->options->config);
}

/* What this machine has. A server's plan is only its own idea until the client has said what it wants. */
static int fit_here(struct run *run, int node, struct wf_status *status)
{
    struct bench_limits limits;
    struct bench_parties parties = {
        .all = {{node, &run->gpus, &limits}, {1, &run->gpus, &limits}},
        .count = run->options->place == BENCH_PLACE_LOCAL ? 2 : 1,
    };

    if (run->options->place == BENCH_PLACE_LISTEN)
        return 0;
    bench_limits_read(&limits, "");
    return bench_fit(run->options, &run->plan, &parties, news(run), status);
}

/* Everything that can be refused before anything is started. */
static int prepare(struct run *run, struct wf_status *status)
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
    if (result == 0)
        result = options->child ? 0
                                : bench_files_prepare(options, options->place == BENCH_PLACE_LISTEN ? NULL : &run->plan,
                                                      &run->made_out, status);
    if (result == 0 && !options->child && (run->visit || !options->keep))
        result = bench_stream_open(&run->result, status);
    return result;
}

/* --- connecting --- */

static int meet(struct run *run, struct wf_status *status)
{
    struct bench_meeting meeting = {
        .options = run->options,
        .gpus = &run->gpus,
        .link = &run->link,
        .child = &run->child,
        .ending = &run->ending,
        .progress = &run->progress,
    };

    int result = bench_meet(&meeting, status);
    run->prepared = meeting.prepared;
    return result;
}

/* They have met in the lobby. */
static void receive_guest(struct run *run)
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
static int take_turn(struct run *run, struct wf_status *status)
{
    const char *command = bench_command_name(run->options->command);

    if (run->link.node == 0)
        return bench_line_call(run->control, command, status);
    int result = bench_line_wait(run->control, command, run->options->address, news(run), status);
    bench_control_expect_within(run->control, run->link.connect_timeout_ms);
    return result;
}

/* Its death is known long before the session notices. It may have ended well, after the last word. */
static int mourn_child(void *context, struct wf_status *status)
{
    struct bench_child *child = context;
    int result = bench_child_check(child, status);

    return result && child->wait_status != 0 ? result : 0;
}

static int agree(struct run *run, struct wf_status *status)
{
    struct bench_agreement agreement = {
        .options = run->options,
        .plan = &run->plan,
        .link = &run->link,
        .result = &run->result,
        .news = news(run),
    };
    int result = run->control ? 0
                              : bench_control_create(run->link.connection, run->link.peer, run->link.node,
                                                     &run->control, status);

    if (result)
        return result;
    if (run->options->place == BENCH_PLACE_LOCAL)
        bench_control_look_after(run->control, mourn_child, &run->child);
    agreement.control = run->link.control = run->control;
    bench_ending_set_link(&run->ending, &run->link, run->control);
    bench_control_expect_within(run->control, run->link.connect_timeout_ms);
    result = take_turn(run, status);
    if (result == 0)
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
    bench_control_expect_within(run->control, -1);
    run->bed.copied_up_to = agreement.eager;
    if (result == 0 && (result = bench_expect_ready(&run->result, status)) != 0)
        run->prepared = false; /* wrong usage, which only showed now */
    return result;
}

/* --- the run --- */

static int work(struct run *run, struct wf_status *status)
{
    return bench_workload(&run->bed, &run->link, &run->result, &run->progress, status);
}

static int profile(struct run *run, struct wf_status *status)
{
    const struct bench_profile_site site = {
        .options = run->options,
        .bed = &run->bed,
        .link = &run->link,
        .result = &run->result,
        .progress = &run->progress,
        .news = run->options->child ? NULL : news(run),
        .lock = &run->lock,
        .companion = run->options->child ? getppid() : run->child.pid,
    };

    int result = bench_workload_open(&run->bed, &run->link, &run->progress, status);
    if (result == 0)
        result = bench_profile(&site, status);
    if (result == 0)
        bench_workload_close(&run->bed);
    return result;
}

static int measure(struct run *run, struct wf_status *status)
{
    int64_t start;
    const struct bench_gpus *gpus = &run->link.gpus;

    int result = bench_report_so_far(&run->result, status);
    if (result)
        return result;
    if (run->plan.command == BENCH_PROFILE)
        bench_profile_lock(&run->lock, run->options, gpus, run->plan.endpoints, run->options->child ? NULL : news(run));
    bench_progress_begin(&run->progress, "touching the memory of messages", 0);
    result = bench_arena_init(&run->arena, &run->plan, run->link.node, gpus, run->link.context, run->control, status);

    /* A GPU's endpoints are where it is; others are placed. */
    if (result == 0 && bench_placement_init(&run->link.placement, run->options->config, run->link.context,
                                            gpus->count ? 0 : run->plan.endpoints) < 0)
        result = wf_fail(status, -ENOMEM, "no memory for the places of %u endpoints", run->plan.endpoints);
    run->link.arena = &run->arena;
    run->link.footprint.buffer_bytes = bench_arena_bytes(&run->arena);
    /* The other node may be much slower at that; what comes next has deadlines. */
    if (result == 0)
        result = bench_control_start(run->control, run->link.node == 0, &start, status);
    bench_progress_wipe(&run->progress);
    if (result)
        return result;
    run->bed.plan = &run->plan;
    run->bed.node = run->link.node;
    run->bed.control = run->control;
    run->bed.arena = &run->arena;
    run->bed.placement = &run->link.placement;
    result = run->plan.command == BENCH_PROFILE ? profile(run, status) : work(run, status);
    if (result == 0)
        result = bench_workload_finish(&run->bed, &run->link, &run->result, &run->passed, status);
    return result;
}

/* What node1 of --local has left to do may fail, too: writing its logs. Before the verdict is told. */
static void await_child(struct run *run)
{
    int child = run->options->place == BENCH_PLACE_LOCAL ? bench_child_end(&run->child, CHILD_PATIENCE_MS) : 0;
    struct wf_status status;

    if (child == 0 || !run->passed)
        return;
    wf_fail(&status, -ECHILD, "node1 ended with status %d after the measurement", child);
    run->passed = false;
    pthread_mutex_lock(&run->result.lock);
    bench_result_unwritten(&run->result, &status);
    pthread_mutex_unlock(&run->result.lock);
}

/* All ran; whether it was right is the verdict of node0. */
static int conclude(struct run *run, struct wf_status *status)
{
    char expected[160];

    bench_progress_end(&run->progress);
    await_child(run);
    pthread_mutex_lock(&run->result.lock);
    run->result.complete = true;
    bool met = bench_expect_met(&run->result, expected, sizeof expected);
    if (run->passed && !met)
        bench_copy_text(run->result.error, sizeof run->result.error, expected);
    else if (!run->passed && !run->result.error[0] && bench_result_wrong_bytes(&run->result) == 0)
        snprintf(run->result.error, sizeof run->result.error, "the other node found wrong bytes or missing samples");
    run->passed &= met;
    pthread_mutex_unlock(&run->result.lock);
    int result = bench_ending_publish(&run->ending, status);
    if (!run->options->child && !run->passed)
        bench_result_tell_wrong(&run->result);
    if (result == 0 && !run->options->child && run->result.error[0])
        fprintf(stderr, "weft: %s\n", run->result.error);
    return result;
}

/* Order: first the link, so that nobody touches the buffers any more. GPU memory needs its context, and after a failure
 * it is left to the end of the process, unless the session alone has ended. */
static void tear_down(struct run *run)
{
    bench_ending_set_link(&run->ending, NULL, NULL);
    bench_progress_end(&run->progress);
    bench_profile_unlock(&run->lock);
    bench_link_end(&run->link);
    if (run->link.over)
        bench_control_collect(run->control);
    if (!bench_workload_close(&run->bed) || run->link.over)
        bench_arena_free_gpus(&run->arena);
    bench_placement_fini(&run->link.placement);
    bench_link_close(&run->link);
    bench_control_destroy(run->control);
    run->control = NULL;
    bench_arena_fini(&run->arena);
}

/* The folder of --out, where it was made for this run and nothing was written into it. */
static void remove_empty(const struct run *run)
{
    if (run->made_out)
        rmdir(wf_config_text(run->options->config, WF_SET_OUT));
}

/* What stands in the folder of --out as a page; the drawing of this machine belongs to it where there can be one. A
 * page that cannot be written makes no run fail that went well: its results are there. */
static void make_page(const struct run *run)
{
    const struct bench_options *options = run->options;
    const char *out = wf_config_text(options->config, WF_SET_OUT);
    char drawing[WF_VALUE_MAX + 32];
    struct wf_status status = {0};

    if (!options->report || options->child || !run->result.filed || !run->result.sample_count)
        return;
    snprintf(drawing, sizeof drawing, "%s/topo.svg", out);
    bench_topo_draw(options, drawing, &(struct wf_status){0});
    if (bench_report_folder(out, options->open, bench_quiet(options->config) ? NULL : bench_people(options->config),
                            &status))
        fprintf(stderr, "weft: no report: %s\n", status.text);
}

static int perform(struct run *run)
{
    struct wf_status status = {0};

    bench_progress_open(&run->progress, !bench_quiet(run->options->config));
    /* A driver's threads, too, are to leave signals to the thread that takes them. */
    int result = bench_ending_watch(&run->ending, &status);

    if (result == 0)
        result = prepare(run, &status);
    run->unready = result != 0;
    if (run->visit)
        receive_guest(run); /* whatever has happened: it is ours now */
    else if (result == 0)
        result = meet(run, &status);
    if (result == 0)
        result = agree(run, &status);
    if (result == 0)
        result = measure(run, &status);
    if (result == 0)
        result = conclude(run, &status);
    /* Of a client with which a server that stays agrees on nothing there is nothing to keep. */
    if (result && run->visit && !run->agreed) {
        run->result.written = true;
        bench_stream_close(&run->result, &(struct wf_status){0});
    }
    int exit_status = result        ? bench_ending_give_up(&run->ending, &status, run->prepared)
                      : run->passed ? BENCH_PASSED
                                    : BENCH_FAILED;
    tear_down(run);
    bench_child_end(&run->child, CHILD_HURRY_MS);
    bench_interrupt_stop();
    bench_progress_close(&run->progress);
    make_page(run);
    remove_empty(run);
    return exit_status;
}

static struct run *run_create(struct bench_options *options)
{
    struct run *run = calloc(1, sizeof *run);

    if (!run)
        return NULL;
    run->options = options;
    bench_result_init(&run->result, options, options->place == BENCH_PLACE_CONNECT ? 1 : 0);
    bench_ending_init(&run->ending, &run->result, &run->progress, &run->child);
    return run;
}

static void run_destroy(struct run *run)
{
    bench_ending_fini(&run->ending);
    bench_plan_fini(&run->plan);
    bench_result_fini(&run->result);
    free(run);
}

int bench_run(struct bench_options *options)
{
    if (options->unlock_clocks)
        return bench_profile_undo_locks();
    bench_columns_set((int)wf_config_number(options->config, WF_SET_WIDTH));
    if (options->keep)
        return bench_keep(options);
    struct run *run = run_create(options);
    if (!run) {
        fprintf(stderr, "weft: no memory for a run\n");
        return BENCH_FAILED;
    }
    int exit_status = perform(run);
    run_destroy(run);
    return exit_status;
}

/* --- of a server that stays --- */

int bench_visit_prepare(struct bench_options *options, struct bench_gpus *gpus, struct wf_status *status)
{
    struct run *run = run_create(options);

    if (!run)
        return wf_fail(status, -ENOMEM, "no memory for a run");
    int result = prepare(run, status);
    if (result == 0)
        *gpus = run->gpus;
    remove_empty(run);
    run_destroy(run);
    return result;
}

/* What became of it by its own doing. */
static bool is_at_fault(const struct run *run, int exit_status)
{
    const struct bench_cut *cut = &run->result.cut;

    if (exit_status == BENCH_PASSED)
        return false;
    return run->unready || run->result.complete ||
           (run->agreed && cut->by == BENCH_CUT_FAILURE && cut->node == 0 && cut->code != -EPROTO);
}

int bench_visit_run(struct bench_options *options, struct bench_visit *visit)
{
    struct run *run = run_create(options);
    char stamp[32];

    if (!run) {
        fprintf(stderr, "weft: no memory for a run\n");
        visit->at_fault = true;
        weft_peer_close(visit->guest.peer, 0, NULL);
        bench_control_destroy(visit->guest.control);
        return BENCH_FAILED;
    }
    run->visit = visit;
    snprintf(stamp, sizeof stamp, "%.16s-%d", run->result.stamp, visit->number);
    bench_result_stamp(&run->result, stamp);
    int exit_status = perform(run);
    visit->measured = run->agreed;
    visit->at_fault = is_at_fault(run, exit_status);
    run_destroy(run);
    return exit_status;
}
