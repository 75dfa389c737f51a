#include "straggler.h"

#include <errno.h>
#include <stdio.h>

#include "bench/collective/plan.h"
#include "bench/collective/run.h"
#include "bench/collective/work.h"
#include "bench/words/interrupt.h"
#include "bench/words/progress.h"
#include "bench/words/words.h"
#include "show.h"

#define WORDS 16
#define ROOM_S 60 /* beside the barriers themselves, until rank 0 says something again */

/* Owner: the measuring thread. */
struct straggler {
    struct bench_options *options;
    struct straggler_asked asked;
    struct coll_plan plan;
    struct coll_outcome outcome;
    struct straggler_found found;
    struct coll_end end;
    struct bench_progress progress;
    struct wf_status ended; /* why the run ended early; code 0: it did not */
};

/* --- the run --- */

/* What is asked, as words of the command line of a rank. */
static void make_words(const struct straggler_asked *asked, char text[WORDS][24], const char *words[WORDS])
{
    const struct {
        const char *option;
        uint64_t number;
    } all[] = {
        {"--barriers", asked->barriers},
        {"--delay-ms", asked->delay_ms},
        {"--every", asked->every},
        {"--threshold-ms", asked->threshold_ms},
        {"--interval-ms", asked->interval_ms},
        {"--seed", asked->seed},
        {"--delayed-rank", (uint64_t)asked->delayed_rank},
    };
    size_t count = sizeof all / sizeof all[0] - (asked->delayed_rank == STRAGGLER_ANY);

    for (size_t i = 0; i < count; i++) {
        snprintf(text[i], sizeof text[i], "%llu", (unsigned long long)all[i].number);
        words[2 * i] = all[i].option;
        words[2 * i + 1] = text[i];
    }
    words[2 * count] = NULL;
}

/* Rank 0 says something at each point of its curve; until then it may be silent. */
static uint64_t patience_s(const struct straggler_asked *asked)
{
    uint64_t barrier_ms = asked->interval_ms + (asked->delay_ms + asked->every - 1) / asked->every;

    return ROOM_S + (uint64_t)asked->timeout_ms / 1000 + straggler_step(asked) * barrier_ms / 1000;
}

static int run_ranks(struct straggler *straggler, struct wf_status *status)
{
    const struct coll_backend *weft = coll_backend_find("weft");
    const char *words[WORDS];
    char text[WORDS][24];
    struct coll_run run = {.backend = weft,
                           .way = &weft->ways[0],
                           .ranks = straggler->plan.counts[0],
                           .asked = &straggler->plan.asked,
                           .silence_s = patience_s(&straggler->asked),
                           .words = words};

    make_words(&straggler->asked, text, words);
    bench_progress_open(&straggler->progress, !bench_quiet(straggler->options->config));
    bench_progress_begin(&straggler->progress, "barriers", 0);
    int result = coll_run(&straggler->plan, &run, &straggler->outcome, &straggler->ended);
    bench_progress_end(&straggler->progress);
    bench_progress_close(&straggler->progress);
    straggler->ended.code = result;
    int unread =
        straggler_found_read(&straggler->found, straggler->outcome.text ? straggler->outcome.text : "", status);
    return result ? 0 : unread;
}

/* --- from options to an exit status --- */

static int check(struct straggler *straggler, struct wf_status *status)
{
    const struct coll_plan *plan = &straggler->plan;

    if (plan->count_count > 1)
        return wf_fail(status, -EINVAL, "--processes: weft straggler takes one number of ranks");
    if (!plan->found && straggler->asked.delayed_rank >= (int)plan->counts[0])
        return wf_fail(status, -EINVAL, "--delayed-rank %d: the ranks are 0 to %u", straggler->asked.delayed_rank,
                       plan->counts[0] - 1);
    return 0;
}

static int perform(void *context, struct wf_status *status)
{
    static const struct rank_asked nothing; /* its ranks have words of their own */
    struct straggler *straggler = context;
    int result = straggler_read_asked(&straggler->asked, straggler->options, status);

    if (result == 0)
        result = coll_plan_init(&straggler->plan, straggler->options, &nothing, status);
    if (result == 0)
        result = check(straggler, status);
    return result ? result : run_ranks(straggler, status);
}

/* A rank that was delayed and not named, and a deadline that has ended the group, are failures; that somebody else is
 * late is a finding. */
static int exit_status_of(const struct straggler *straggler)
{
    struct straggler_sums sums;

    straggler_sum(&straggler->found, -1, &sums);
    return straggler->ended.code || straggler->found.deadline || sums.found < sums.delayed
               ? coll_failed(&straggler->end)
               : BENCH_PASSED;
}

static int finish(struct straggler *straggler)
{
    FILE *out = bench_quiet(straggler->options->config) ? NULL : bench_people(straggler->options->config);
    struct straggler_run run = {.options = straggler->options,
                                .asked = &straggler->asked,
                                .found = &straggler->found,
                                .command = straggler->outcome.command};
    struct wf_status status = {0};

    if (straggler->ended.code)
        coll_end_keep(&straggler->end, &straggler->ended);
    straggler->end.exit_status = exit_status_of(straggler);
    run.end = straggler->end;
    if (straggler->ended.code)
        fprintf(stderr, "weft: %s\n", straggler->outcome.said[0] ? straggler->outcome.said : straggler->ended.text);
    if (!straggler->found.facts &&
        straggler->plan.found) /* a rank that a launcher has started, and not the first one */
        return straggler->ended.code ? coll_failed(&straggler->end) : BENCH_PASSED;
    if (!straggler->found.facts) /* none has spoken */
        run.end.exit_status = coll_failed(&straggler->end);
    else if (out)
        straggler_show(out, &run);
    if (straggler_write(&run, &status) != 0) {
        fprintf(stderr, "weft: %s\n", status.text);
        return BENCH_FAILED;
    }
    return run.end.exit_status;
}

int bench_straggler(struct bench_options *options)
{
    static struct straggler straggler; /* large */
    struct wf_status status = {0};

    if (options->collective.member)
        return straggler_member(options);
    straggler.options = options;
    coll_note_time(&straggler.end.time);
    int result = coll_with_signals(perform, &straggler, &status);
    int exit_status = result ? coll_refused(&status) : finish(&straggler);
    straggler_found_fini(&straggler.found);
    coll_outcome_fini(&straggler.outcome);
    coll_plan_fini(&straggler.plan);
    return exit_status;
}
