#include "setup_cost.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/collective/member.h"
#include "bench/collective/plan.h"
#include "bench/collective/run.h"
#include "bench/collective/work.h"
#include "bench/words/heard.h"
#include "bench/words/interrupt.h"
#include "bench/words/progress.h"
#include "bench/words/words.h"
#include "show.h"

/* Owner: the measuring thread. */
struct setup {
    struct bench_options *options;
    struct coll_plan plan;
    struct setup_found found;
    struct coll_end end;
    struct bench_progress progress;
    uint32_t runs;
};

/* --- one run --- */

static void note_failure(struct setup *setup, const struct coll_run *run, const struct coll_outcome *outcome,
                         const struct wf_status *status)
{
    if (status->code == -EOPNOTSUPP) {
        coll_reason_add(setup->found.absent, status->text, "%s", run->backend->name);
        return;
    }
    bench_progress_wipe(&setup->progress);
    fprintf(stderr, "weft: %s\n", outcome->said[0] ? outcome->said : status->text);
    setup->found.failures++;
    coll_end_keep(&setup->end, status);
}

static void run_once(struct setup *setup, struct coll_run *run)
{
    struct coll_outcome outcome;
    struct wf_status status = {0}, unread = {0};
    json_t *facts = NULL;
    char doing[64];

    snprintf(doing, sizeof doing, "%s, %u ranks", run->backend->name, run->ranks);
    bench_progress_begin(&setup->progress, doing, 0);
    run->number = setup->runs++;
    int result = coll_run(&setup->plan, run, &outcome, &status);
    if (setup_found_read(&setup->found, run->backend->name, outcome.text ? outcome.text : "", &facts, &unread) != 0 &&
        result == 0)
        status = unread;
    json_array_append_new(setup->found.runs,
                          json_pack("{s:s, s:I, s:o, s:o, s:o}", "backend", run->backend->name, "ranks",
                                    (json_int_t)run->ranks, "command", bench_heard_string(outcome.command), "facts",
                                    facts ? facts : json_null(), "error",
                                    status.code ? bench_heard_string(status.text) : json_null()));
    if (status.code)
        note_failure(setup, run, &outcome, &status);
    coll_outcome_fini(&outcome);
}

static void run_backend(struct setup *setup, const struct coll_backend *backend, uint32_t ranks)
{
    const struct rank_asked *asked = &setup->plan.asked;
    char why[200], size[24], iters[24];
    const char *words[] = {"--size", size, "--iters", iters, NULL};
    struct coll_run run = {
        .backend = backend, .way = &backend->ways[0], .ranks = ranks, .asked = asked, .words = words};

    snprintf(size, sizeof size, "%llu", (unsigned long long)asked->sizes[0]);
    snprintf(iters, sizeof iters, "%llu", (unsigned long long)asked->renew);
    coll_lacks(&setup->plan, backend, ranks, why);
    if (!why[0]) /* a buffer, and what a backend keeps beside it, at most as much again */
        coll_lacks_memory(&setup->plan, ranks, 2 * asked->sizes[0] + COLL_RANK_BYTES, 0, why);
    if (why[0])
        coll_reason_add(setup->found.absent, why, "%s", backend->name);
    else
        run_once(setup, &run);
}

/* --- from options to an exit status --- */

static int perform(void *context, struct wf_status *status)
{
    struct setup *setup = context;
    const struct coll_plan *plan = &setup->plan;
    struct rank_asked asked;
    int result = setup_found_init(&setup->found, status);

    if (result == 0)
        result = coll_plan_asked(&asked, setup->options, status);
    if (result == 0)
        result = coll_plan_init(&setup->plan, setup->options, &asked, status);
    if (result == 0 && plan->found && !plan->meeting[0])
        result = wf_fail(status, -EINVAL, "--processes found: ranks meet again and again: name a folder by --meeting");
    if (result)
        return result;
    bench_progress_open(&setup->progress, !bench_quiet(setup->options->config));
    for (int count = 0; count < plan->count_count; count++)
        for (int i = 0; i < plan->backend_count && !bench_interrupt_signal(); i++)
            run_backend(setup, plan->backends[i], plan->counts[count]);
    bench_progress_end(&setup->progress);
    bench_progress_close(&setup->progress);
    return 0;
}

static int exit_status_of(const struct setup *setup)
{
    if (bench_interrupt_signal() || setup->found.failures)
        return coll_failed(&setup->end);
    /* of ranks that a launcher has started the first one speaks */
    return json_array_size(setup->found.samples) || setup->plan.found ? BENCH_PASSED : BENCH_UNAVAILABLE;
}

static int finish(struct setup *setup)
{
    FILE *out = bench_quiet(setup->options->config) ? NULL : bench_people(setup->options->config);
    struct setup_run run = {.options = setup->options,
                            .size = setup->plan.asked.sizes[0],
                            .iters = setup->plan.asked.renew,
                            .found = &setup->found};
    struct wf_status status = {0};

    coll_end_note_signal(&setup->end);
    setup->end.exit_status = exit_status_of(setup);
    run.end = setup->end;

    if (setup->plan.found && run.end.exit_status == BENCH_PASSED && json_array_size(setup->found.samples) == 0)
        return run.end.exit_status;
    if (out && setup_show(out, &run) != 0)
        wf_fail(&status, -ENOMEM, "no memory for a table");
    if (run.end.exit_status == BENCH_UNAVAILABLE)
        fprintf(stderr, "weft: nothing could be measured here\n");
    if (status.code == 0)
        setup_write(&run, &status);
    if (status.code == 0)
        return run.end.exit_status;
    fprintf(stderr, "weft: %s\n", status.text);
    return BENCH_FAILED;
}

int bench_setup_cost(struct bench_options *options)
{
    static struct setup setup; /* large */
    struct wf_status status = {0};

    if (options->collective.member)
        return coll_member(options, NULL);
    setup.options = options;
    coll_note_time(&setup.end.time);
    int result = coll_with_signals(perform, &setup, &status);
    int exit_status = result ? coll_refused(&status) : finish(&setup);
    setup_found_fini(&setup.found);
    coll_plan_fini(&setup.plan);
    return exit_status;
}
