#include "overlap.h"

#include <errno.h>
#include <string.h>

#include "bench/words/heard.h"
#include "bench/words/interrupt.h"
#include "bench/words/progress.h"
#include "bench/words/words.h"
#include "parts.h"

#define RANK_BYTES (160u << 20) /* of a process beside its gradients: what layers are made of, and the backend */

/* Owner: the measuring thread. */
struct measurement {
    struct coll_plan plan;
    struct overlap_found found;
    struct coll_end end;
    struct bench_progress progress;
    uint32_t runs;
    bool heard;  /* some run has given its facts */
    bool silent; /* some run went well without: a rank that a launcher has started, and not the first one */
};

/* --- one run --- */

static void keep_run(struct measurement *measurement, const struct coll_run *run, const struct coll_outcome *outcome,
                     json_t *facts, const struct wf_status *status)
{
    json_array_append_new(measurement->found.runs,
                          json_pack("{s:s, s:s, s:I, s:o, s:o, s:o}", "backend", run->backend->name, "way",
                                    run->way->name, "ranks", (json_int_t)run->ranks, "command",
                                    bench_heard_string(outcome->command), "facts", facts ? facts : json_null(), "error",
                                    status->code ? bench_heard_string(status->text) : json_null()));
}

static void say_failure(struct measurement *measurement, const struct coll_run *run, const struct coll_outcome *outcome,
                        const struct wf_status *status)
{
    if (status->code == -EOPNOTSUPP) {
        coll_reason_add(measurement->found.absent, status->text, "%s among %u ranks", run->backend->name, run->ranks);
        return;
    }
    measurement->found.failures++;
    bench_progress_wipe(&measurement->progress);
    fprintf(stderr, "weft: %s\n", outcome->said[0] ? outcome->said : status->text);
    coll_end_keep(&measurement->end, status);
}

/* The computation that the first run has found is that of all others: else they could not be compared. */
static void keep_batch(struct measurement *measurement)
{
    const json_t *first = json_array_get(measurement->found.cases, 0);

    if (first)
        measurement->plan.asked.overlap.batch = (uint32_t)json_integer_value(json_object_get(first, "batch"));
}

static int run_once(struct measurement *measurement, struct coll_run *run)
{
    struct coll_outcome outcome;
    struct wf_status status = {0}, unread = {0};
    json_t *facts = NULL;
    char doing[96];

    snprintf(doing, sizeof doing, "%s, %u ranks", run->backend->name, run->ranks);
    bench_progress_begin(&measurement->progress, doing, 0);
    run->number = measurement->runs++;
    int result = coll_run(&measurement->plan, run, &outcome, &status);
    if (overlap_read(&measurement->found, run, outcome.text ? outcome.text : "", &facts, &unread) != 0 && result == 0) {
        status = unread;
        result = unread.code;
    }
    keep_batch(measurement);
    measurement->heard |= facts != NULL;
    measurement->silent |= measurement->plan.found && !facts && result == 0;
    bench_progress_wipe(&measurement->progress);
    if (result)
        say_failure(measurement, run, &outcome, &status);
    keep_run(measurement, run, &outcome, facts, &status);
    coll_outcome_fini(&outcome);
    return result == -EINTR ? result : 0;
}

/* --- all of them --- */

/* Why there is not enough memory for so many ranks; "": there is. A server has room for another's gradients. */
static void lacks_memory(const struct measurement *measurement, uint32_t ranks, char why[200])
{
    const struct rank_overlap *asked = &measurement->plan.asked.overlap;
    uint64_t gradients = asked->layers * asked->layer_bytes;
    uint64_t factor = asked->layer_bytes / 1024 * asked->batch; /* of the product */

    coll_lacks_memory(&measurement->plan, ranks, gradients + factor + RANK_BYTES, gradients, why);
}

/* An MPI that waits takes a processor from the computation, unless it yields. */
static const struct coll_way *way_of(const struct coll_backend *backend)
{
    for (int i = 0; i < backend->way_count; i++)
        if (strcmp(backend->ways[i].name, "yielding") == 0)
            return &backend->ways[i];
    return &backend->ways[0];
}

static int run_backend(struct measurement *measurement, const struct coll_backend *backend, uint32_t ranks)
{
    struct coll_run run = {
        .backend = backend, .way = way_of(backend), .ranks = ranks, .asked = &measurement->plan.asked};
    char why[200];

    coll_lacks(&measurement->plan, backend, ranks, why);
    if (!why[0])
        lacks_memory(measurement, ranks, why);
    if (!why[0])
        return run_once(measurement, &run);
    coll_reason_add(measurement->found.absent, why, "%s among %u ranks", backend->name, ranks);
    return 0;
}

static void run_all(struct measurement *measurement)
{
    const struct coll_plan *plan = &measurement->plan;
    int result = 0;

    for (int count = 0; count < plan->count_count; count++)
        for (int i = 0; i < plan->backend_count && result == 0; i++)
            result = run_backend(measurement, plan->backends[i], plan->counts[count]);
}

/* --- from options to an exit status --- */

static int exit_status_of(const struct measurement *measurement)
{
    if (bench_interrupt_signal() || measurement->found.failures || measurement->found.wrong)
        return coll_failed(&measurement->end);
    return json_array_size(measurement->found.cases) || measurement->silent ? BENCH_PASSED : BENCH_UNAVAILABLE;
}

static int finish(struct measurement *measurement, const struct bench_options *options)
{
    struct wf_status status = {0};

    coll_end_note_signal(&measurement->end);
    measurement->end.exit_status = exit_status_of(measurement);
    if (measurement->silent)
        return measurement->end.exit_status;
    if (!bench_quiet(options->config))
        overlap_put_table(bench_people(options->config), &measurement->found);
    if (measurement->end.exit_status == BENCH_UNAVAILABLE)
        fprintf(stderr, "weft: nothing could be measured here\n");
    if (measurement->found.failures && !measurement->heard && coll_has_first(measurement->plan.found))
        return measurement->end.exit_status;
    if (overlap_write_files(&measurement->plan, &measurement->found, &measurement->end, &status) == 0)
        return measurement->end.exit_status;
    fprintf(stderr, "weft: %s\n", status.text);
    return BENCH_FAILED;
}

static int perform(void *context, struct wf_status *status)
{
    struct measurement *measurement = context;
    const struct bench_options *options = measurement->plan.options;
    struct rank_asked asked = measurement->plan.asked;
    int result = coll_plan_init(&measurement->plan, options, &asked, status);

    if (result == 0)
        result = overlap_found_init(&measurement->found, status);
    if (result == 0) {
        bench_progress_open(&measurement->progress, !bench_quiet(options->config));
        run_all(measurement);
        bench_progress_end(&measurement->progress);
        bench_progress_close(&measurement->progress);
    }
    return result;
}

int bench_overlap(struct bench_options *options)
{
    static struct measurement measurement; /* large */
    struct rank_asked asked;
    struct wf_status status = {0};
    int result = overlap_asked(&asked, options, &status);

    if (result == 0 && options->collective.member)
        return coll_member(options, &asked);
    coll_note_time(&measurement.end.time);
    measurement.plan.options = options;
    measurement.plan.asked = asked;
    if (result == 0)
        result = coll_with_signals(perform, &measurement, &status);
    int exit_status = result ? coll_refused(&status) : finish(&measurement, options);
    overlap_found_fini(&measurement.found);
    coll_plan_fini(&measurement.plan);
    return exit_status;
}
