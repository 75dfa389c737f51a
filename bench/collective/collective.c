#include "collective.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/words/heard.h"
#include "bench/words/interrupt.h"
#include "bench/words/progress.h"
#include "bench/words/words.h"
#include "end.h"
#include "files.h"
#include "run.h"
#include "table.h"
#include "work.h"

/* Owner: the measuring thread. */
struct measurement {
    struct coll_plan plan;
    struct coll_found found;
    struct coll_end end;
    struct bench_progress progress;
    FILE *out; /* where people read; NULL: --quiet */
    uint32_t runs;
    bool heard;  /* some run has given its facts */
    bool silent; /* some run went well without: a rank that a launcher has started, and not the first one */
};

/* --- what cannot be measured --- */

/* Leaves out the sizes for which there is not enough memory. */
static void fit(struct measurement *measurement, uint32_t ranks, struct rank_asked *asked)
{
    const struct coll_plan *plan = &measurement->plan;
    char why[200], size[32];
    int kept = 0;

    for (int i = 0; i < asked->size_count; i++) {
        /* send, receive, and what a backend keeps beside them, at most as much again */
        coll_lacks_memory(plan, ranks, asked->sizes[i] * (plan->asked.out_of_place ? 3 : 2) + COLL_RANK_BYTES, 0, why);
        if (why[0])
            coll_reason_add(measurement->found.skipped, why, "%s among %u ranks",
                            wf_format_size(asked->sizes[i], size, sizeof size), ranks);
        else
            asked->sizes[kept++] = asked->sizes[i];
    }
    asked->size_count = kept;
}

/* --- one run --- */

static json_t *run_to_json(const struct coll_run *run, const struct coll_outcome *outcome, json_t *facts, int round,
                           const struct wf_status *status)
{
    return json_pack("{s:s, s:s, s:I, s:i, s:o, s:o, s:o, s:b}", "backend", run->backend->name, "way", run->way->name,
                     "ranks", (json_int_t)run->ranks, "round", round, "command", bench_heard_string(outcome->command),
                     "facts", facts ? json_incref(facts) : json_null(), "error",
                     status->code ? bench_heard_string(status->text) : json_null(), "ended_by_force", outcome->forced);
}

static void say_failure(struct measurement *measurement, const struct coll_run *run, const struct coll_outcome *outcome,
                        const struct wf_status *status)
{
    if (status->code == -EOPNOTSUPP) {
        coll_reason_add(measurement->found.absent, status->text, "%s among %u ranks", run->backend->name, run->ranks);
        return;
    }
    coll_reason_add(measurement->found.failed, status->text, "%s among %u ranks", run->backend->name, run->ranks);
    measurement->found.failures++;
    bench_progress_wipe(&measurement->progress);
    fprintf(stderr, "weft: %s\n", outcome->said[0] ? outcome->said : status->text);
    coll_end_keep(&measurement->end, status);
}

/* What was measured counts. */
static void say_forced(struct measurement *measurement, const struct coll_run *run)
{
    bench_progress_wipe(&measurement->progress);
    fprintf(stderr,
            "weft: %s (%s), %u ranks: all is measured, but it had not ended %d s later, and was ended by force\n",
            run->backend->name, run->way->name, run->ranks, COLL_END_S);
}

/* The table comes once all rounds are over. */
static void show(struct measurement *measurement, const struct coll_run *run, const json_t *facts, int round)
{
    bool last = round + 1 == measurement->plan.rounds;

    bench_progress_wipe(&measurement->progress);
    if (measurement->out && last && facts && !measurement->plan.options->collective.self_test)
        coll_table_run(measurement->out, &measurement->plan, &measurement->found, run, facts);
}

static int run_once(struct measurement *measurement, struct coll_run *run, int round)
{
    struct coll_outcome outcome;
    struct wf_status status = {0};
    json_t *facts = NULL;
    uint32_t ranks = run->ranks;
    char doing[96];

    snprintf(doing, sizeof doing, "%s (%s), %u ranks, round %d of %d", run->backend->name, run->way->name, run->ranks,
             round + 1, measurement->plan.rounds);
    bench_progress_begin(&measurement->progress, doing, 0);
    run->number = measurement->runs++;
    int result = coll_run(&measurement->plan, run, &outcome, &status);
    struct wf_status unread = {0};
    if (coll_found_read(&measurement->found, run, outcome.text ? outcome.text : "", &facts, &ranks, &unread) != 0 &&
        result == 0) {
        status = unread;
        result = unread.code;
    }
    measurement->heard |= facts != NULL;
    measurement->silent |= measurement->plan.found && !facts && result == 0;
    run->ranks = ranks;
    json_array_append_new(measurement->found.runs, run_to_json(run, &outcome, facts, round, &status));
    if (result)
        say_failure(measurement, run, &outcome, &status);
    else if (outcome.forced)
        say_forced(measurement, run);
    show(measurement, run, facts, round);
    json_decref(facts);
    coll_outcome_fini(&outcome);
    return result == -EINTR ? result : 0;
}

/* --- all of them --- */

static int run_backend(struct measurement *measurement, const struct coll_backend *backend, uint32_t ranks, int round)
{
    struct rank_asked asked = measurement->plan.asked;
    char why[200];
    int result = 0;

    coll_lacks(&measurement->plan, backend, ranks, why);
    if (why[0]) {
        coll_reason_add(measurement->found.absent, why, "%s", backend->name);
        return 0;
    }
    fit(measurement, ranks, &asked);
    for (int way = 0; way < coll_way_count(&measurement->plan, backend) && asked.size_count && result == 0; way++) {
        struct coll_run run = {.backend = backend, .way = &backend->ways[way], .ranks = ranks, .asked = &asked};
        if (round == 0 || !measurement->plan.best || coll_way_counts(&measurement->found, backend, run.way, ranks))
            result = run_once(measurement, &run, round);
    }
    return result;
}

static int run_all(struct measurement *measurement)
{
    const struct coll_plan *plan = &measurement->plan;
    int result = 0;

    for (int count = 0; count < plan->count_count; count++)
        for (int round = 0; round < plan->rounds; round++)
            for (int i = 0; i < plan->backend_count && result == 0; i++)
                result = run_backend(measurement, plan->backends[i], plan->counts[count], round);
    return result;
}

/* --- from options to an exit status --- */

static int exit_status_of(const struct measurement *measurement)
{
    bool any = false;

    for (size_t i = 0; i < measurement->found.count; i++)
        any |= measurement->found.samples[i].rounds > 0;
    if (bench_interrupt_signal() || measurement->found.failures || coll_found_wrong(&measurement->found))
        return coll_failed(&measurement->end);
    return any || measurement->silent ? BENCH_PASSED : BENCH_UNAVAILABLE;
}

static void say_end(struct measurement *measurement)
{
    bool none = measurement->plan.found && measurement->found.count == 0; /* and others print the same */

    if (measurement->out && measurement->plan.options->collective.self_test)
        coll_table_self_test(measurement->out, &measurement->plan, &measurement->found);
    else if (measurement->out && !none)
        coll_table_end(measurement->out, &measurement->plan, &measurement->found);
    if (measurement->end.exit_status == BENCH_UNAVAILABLE)
        fprintf(stderr, "weft: nothing could be measured here\n");
}

static int finish(struct measurement *measurement)
{
    struct wf_status status = {0};

    coll_end_note_signal(&measurement->end);
    measurement->end.exit_status = exit_status_of(measurement);
    if (measurement->silent)
        return measurement->end.exit_status;
    say_end(measurement);
    if (measurement->found.failures && !measurement->heard && coll_has_first(measurement->plan.found))
        return measurement->end.exit_status;
    if (coll_write_files(&measurement->plan, &measurement->found, &measurement->end, &status) != 0) {
        fprintf(stderr, "weft: %s\n", status.text);
        return BENCH_FAILED;
    }
    return measurement->end.exit_status;
}

static int perform(void *context, struct wf_status *status)
{
    struct measurement *measurement = context;
    const struct bench_options *options = measurement->plan.options;
    struct rank_asked asked;
    int result = coll_plan_asked(&asked, options, status);

    if (result == 0)
        result = coll_plan_init(&measurement->plan, options, &asked, status);
    if (result == 0)
        result = coll_found_init(&measurement->found, status);
    if (result == 0) {
        bench_progress_open(&measurement->progress, !bench_quiet(measurement->plan.options->config));
        run_all(measurement);
        bench_progress_end(&measurement->progress);
        bench_progress_close(&measurement->progress);
    }
    return result;
}

int bench_collective_run(struct bench_options *options)
{
    static struct measurement measurement; /* large */
    struct wf_status status = {0};

    if (options->collective.member)
        return coll_member(options, NULL);
    coll_note_time(&measurement.end.time);
    measurement.plan.options = options;
    measurement.out = bench_quiet(options->config) ? NULL : bench_people(options->config);
    int result = coll_with_signals(perform, &measurement, &status);
    int exit_status = result ? coll_refused(&status) : finish(&measurement);
    coll_found_fini(&measurement.found);
    coll_plan_fini(&measurement.plan);
    return exit_status;
}
