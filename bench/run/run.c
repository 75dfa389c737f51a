#include "run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/buffers/arena.h"
#include "bench/machine/gpus.h"
#include "bench/machine/placement.h"
#include "bench/result/expect.h"
#include "bench/result/files.h"
#include "bench/result/report.h"
#include "bench/result/stream.h"
#include "bench/words/columns.h"
#include "bench/words/interrupt.h"
#include "bench/words/words.h"
#include "keep.h"
#include "leave.h"
#include "run_parts.h"
#include "team_work.h"
#include "workload.h"

#define CHILD_PATIENCE_MS 3000 /* for node1 to end by itself after a run that went well */
#define CHILD_HURRY_MS 300     /* after one that did not */

/* --- the run --- */

static int work(struct bench_run *run, struct wf_status *status)
{
    if (run->team)
        return bench_team_work(&run->bed, run->team, run->at_once, &run->link, &run->result, &run->progress, status);
    return bench_workload(&run->bed, &run->link, &run->result, &run->progress, status);
}

static int profile(struct bench_run *run, struct wf_status *status)
{
    const struct bench_profile_site site = {
        .options = run->options,
        .bed = &run->bed,
        .link = &run->link,
        .result = &run->result,
        .progress = &run->progress,
        .news = run->options->child ? NULL : bench_run_news(run),
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

static int measure(struct bench_run *run, struct wf_status *status)
{
    int64_t start;
    const struct bench_gpus *gpus = &run->link.gpus;

    int result = bench_report_so_far(&run->result, status);
    if (result)
        return result;
    if (run->plan.command == BENCH_PROFILE)
        bench_profile_lock(&run->lock, run->options, gpus, run->plan.endpoints,
                           run->options->child ? NULL : bench_run_news(run));
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
    run->bed.leads = run->link.node == 0;
    run->bed.control = run->control;
    run->bed.arena = &run->arena;
    run->bed.placement = &run->link.placement;
    result = bench_watch_start(&run->watch, run->options, &run->link, status);
    if (result == 0)
        result = run->plan.command == BENCH_PROFILE ? profile(run, status) : work(run, status);
    bench_watch_finish(&run->watch);
    if (result == 0 && run->team)
        return bench_team_finish(&run->bed, run->team, &run->link, &run->result, &run->passed, status);
    if (result == 0)
        result = bench_workload_finish(&run->bed, &run->link, &run->result, &run->passed, status);
    return result;
}

/* What node1 of --local has left to do may fail, too: writing its logs. Before the verdict is told. */
static void await_child(struct bench_run *run)
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
static int conclude(struct bench_run *run, struct wf_status *status)
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
static void tear_down(struct bench_run *run)
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
    bench_team_leave(run->team);
    bench_link_close(&run->link);
    if (!run->team)
        bench_control_destroy(run->control);
    bench_team_free(run->team);
    run->control = NULL;
    bench_arena_fini(&run->arena);
}

static int perform(struct bench_run *run)
{
    struct wf_status status = {0};

    bench_progress_open(&run->progress, !bench_quiet(run->options->config));
    /* A driver's threads, too, are to leave signals to the thread that takes them. */
    int result = bench_ending_watch(&run->ending, &status);

    if (result == 0)
        result = bench_run_prepare(run, &status);
    run->unready = result != 0;
    if (run->visit)
        bench_run_receive(run); /* whatever has happened: it is ours now */
    else if (result == 0)
        result = bench_run_meet(run, &status);
    if (result == 0)
        result = bench_run_agree(run, &status);
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
    bench_leave_page(&run->result);
    bench_leave_no_folder(run->options, run->made_out);
    return exit_status;
}

static struct bench_run *run_create(struct bench_options *options)
{
    struct bench_run *run = calloc(1, sizeof *run);

    if (!run)
        return NULL;
    run->options = options;
    bench_result_init(&run->result, options, options->place == BENCH_PLACE_CONNECT ? 1 : 0);
    bench_ending_init(&run->ending, &run->result, &run->progress, &run->child);
    return run;
}

static void run_destroy(struct bench_run *run)
{
    bench_ending_fini(&run->ending);
    bench_child_fini(&run->child);
    bench_plan_fini(&run->plan);
    bench_plan_fini(&run->outer);
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
    struct bench_run *run = run_create(options);
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
    struct bench_run *run = run_create(options);

    if (!run)
        return wf_fail(status, -ENOMEM, "no memory for a run");
    int result = bench_run_prepare(run, status);
    if (result == 0)
        *gpus = run->gpus;
    bench_leave_no_folder(run->options, run->made_out);
    run_destroy(run);
    return result;
}

/* What became of it by its own doing. */
static bool is_at_fault(const struct bench_run *run, int exit_status)
{
    const struct bench_cut *cut = &run->result.cut;

    if (exit_status == BENCH_PASSED)
        return false;
    return run->unready || run->result.complete ||
           (run->agreed && cut->by == BENCH_CUT_FAILURE && cut->node == 0 && cut->code != -EPROTO);
}

int bench_visit_run(struct bench_options *options, struct bench_visit *visit)
{
    struct bench_run *run = run_create(options);
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
