#include "show.h"

#include <inttypes.h>
#include <string.h>

#include "bench/words/heard.h"
#include "rule.h"

#define ROWS_MOST 40 /* of the table; the JSON has all */

static double number_of(const json_t *object, const char *name)
{
    return json_number_value(json_object_get(object, name));
}

static size_t rank_count(const struct straggler_run *run)
{
    return json_array_size(json_object_get(run->found->facts, "names"));
}

/* --- the table --- */

static const char *verdict_of(const json_t *event)
{
    if (json_is_true(json_object_get(event, "named")))
        return number_of(event, "delayed_ms") > 0 ? "named" : "named, and not delayed on purpose";
    return number_of(event, "delayed_ms") > 0 ? "NOT NAMED" : "its processor was busy";
}

static void put_event(FILE *out, const struct straggler_run *run, const json_t *event)
{
    int rank = (int)number_of(event, "rank");
    double delayed_ms = number_of(event, "delayed_ms");
    char delayed[24] = "-";

    if (delayed_ms > 0)
        snprintf(delayed, sizeof delayed, "%.2f", delayed_ms);
    fprintf(out, "%9.0f %9.2f %9s %9.2f %9.2f  %s: %s\n", number_of(event, "barrier"), number_of(event, "late_ms"),
            delayed, number_of(event, "processor_ms"), number_of(event, "after_ms"), straggler_name(run->found, rank),
            verdict_of(event));
}

static void put_events(FILE *out, const struct straggler_run *run)
{
    const json_t *event, *events = run->found->events;
    size_t index, count = json_array_size(events);

    if (count == 0)
        return;
    fprintf(out, "#%8s %9s %9s %9s %9s\n", "barrier", "late", "delayed", "no cpu", "known");
    fprintf(out, "#%8s %9s %9s %9s %9s\n", "", "(ms)", "(ms)", "(ms)", "after (ms)");
    json_array_foreach(events, index, event)
    {
        if (index < ROWS_MOST)
            put_event(out, run, event);
    }
    if (count > ROWS_MOST)
        fprintf(out, "# and %zu more, which are in the JSON\n", count - ROWS_MOST);
}

static void put_rank(FILE *out, const struct straggler_run *run, int rank)
{
    struct straggler_sums sums;

    straggler_sum(run->found, rank, &sums);
    if (sums.found + sums.named)
        fprintf(out, "# %s: named %" PRIu64 " times, late by %.2f ms (median)\n", straggler_name(run->found, rank),
                sums.found + sums.named, sums.late_ms);
    if (sums.processor)
        fprintf(out, "# %s: late %" PRIu64 " times because its processor was busy: what else runs there?\n",
                straggler_name(run->found, rank), sums.processor);
}

static void put_end(FILE *out, const struct straggler_run *run)
{
    const json_t *end = run->found->end, *deadline = run->found->deadline;
    struct straggler_sums sums;

    straggler_sum(run->found, -1, &sums);
    for (size_t rank = 0; rank < rank_count(run); rank++)
        put_rank(out, run, (int)rank);
    if (sums.delayed)
        fprintf(out, "# Delayed on purpose: %" PRIu64 ", named %" PRIu64 ", within 10 %% of the delay %" PRIu64,
                sums.delayed, sums.found, sums.near);
    if (sums.found)
        fprintf(out, " (off by %.1f %%, %.1f %% at most)", 100 * sums.off, 100 * sums.off_most);
    if (sums.delayed)
        fputc('\n', out);
    fprintf(out, "# Named without having been delayed: %" PRIu64 "\n", sums.named);
    if (end)
        fprintf(out, "# A barrier took %.3f ms where nobody was late: what the network adds to a figure at most\n",
                number_of(end, "barrier_ms"));
    if (deadline)
        fprintf(out, "# The deadline: %s (known after %.0f ms); the group has ended\n",
                json_string_value(json_object_get(deadline, "text")), number_of(deadline, "after_ms"));
}

void straggler_show(FILE *out, const struct straggler_run *run)
{
    const struct straggler_asked *asked = run->asked;

    fprintf(out, "# weft straggler: %zu ranks, %" PRIu64 " barriers", rank_count(run), asked->barriers);
    if (asked->delay_ms && asked->every > asked->barriers)
        fprintf(out, ", nobody delayed: --every %" PRIu64 " is more than there are", asked->every);
    else if (asked->delay_ms && asked->delayed_rank == STRAGGLER_ANY)
        fprintf(out, ", any rank delayed by %" PRIu64 " ms before one in %" PRIu64 " (seed %" PRIu64 ")",
                asked->delay_ms, asked->every, asked->seed);
    else if (asked->delay_ms)
        fprintf(out, ", rank %d delayed by %" PRIu64 " ms before one in %" PRIu64, asked->delayed_rank, asked->delay_ms,
                asked->every);
    fprintf(out, "\n# late: by %" PRIu64 " ms or %d times what a barrier takes, beside a third of the others\n",
            asked->threshold_ms, STRAGGLER_FACTOR);
    if (asked->delay_ms && asked->delay_ms < asked->threshold_ms)
        fprintf(out, "# A delay of %" PRIu64 " ms is below --threshold-ms: no rank is named for it\n", asked->delay_ms);
    put_events(out, run);
    put_end(out, run);
}

/* --- JSON --- */

static json_t *asked_to_json(const struct straggler_asked *asked)
{
    return json_pack("{s:I, s:I, s:I, s:o, s:I, s:I, s:I, s:i}", "barriers", (json_int_t)asked->barriers, "delay_ms",
                     (json_int_t)asked->delay_ms, "every", (json_int_t)asked->every, "delayed_rank",
                     asked->delayed_rank == STRAGGLER_ANY ? json_string("any") : json_integer(asked->delayed_rank),
                     "threshold_ms", (json_int_t)asked->threshold_ms, "interval_ms", (json_int_t)asked->interval_ms,
                     "seed", (json_int_t)asked->seed, "timeout_ms", asked->timeout_ms);
}

static json_t *sums_to_json(const struct straggler_sums *sums)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:f}", "delayed", (json_int_t)sums->delayed,
                     "delayed_and_named", (json_int_t)sums->found, "within_10_percent", (json_int_t)sums->near,
                     "named_without_delay", (json_int_t)sums->named, "late_for_a_processor",
                     (json_int_t)sums->processor, "off_p50", sums->off, "off_max", sums->off_most, "late_ms_p50",
                     sums->late_ms, "after_ms_p50", sums->after_ms);
}

static json_t *ranks_to_json(const struct straggler_run *run)
{
    json_t *all = json_array();

    for (size_t rank = 0; rank < rank_count(run); rank++) {
        struct straggler_sums sums;
        straggler_sum(run->found, (int)rank, &sums);
        json_t *one = sums_to_json(&sums);
        json_object_set_new(one, "rank", json_integer((json_int_t)rank));
        json_object_set_new(one, "name", bench_heard_string(straggler_name(run->found, (int)rank)));
        json_array_append_new(all, one);
    }
    return all;
}

static json_t *or_null(json_t *json)
{
    return json ? json_incref(json) : json_null();
}

static json_t *summary(const struct straggler_run *run)
{
    struct straggler_sums sums;

    straggler_sum(run->found, -1, &sums);
    json_t *json = sums_to_json(&sums);
    json_object_set_new(json, "passed", json_boolean(run->end.exit_status == BENCH_PASSED));
    return json;
}

static json_t *everything(const struct straggler_run *run)
{
    const struct straggler_found *found = run->found;
    json_t *root = coll_head_to_json("weft.straggler/1", run->options, &run->end);

    json_object_set_new(root, "asked", asked_to_json(run->asked));
    json_object_set_new(root, "run_command", bench_heard_string(run->command));
    json_object_set_new(root, "facts", or_null(found->facts));
    json_object_set_new(root, "ranks", ranks_to_json(run));
    json_object_set_new(root, "events", or_null(found->events));
    json_object_set_new(root, "curve", or_null(found->curve));
    json_object_set_new(root, "deadline", or_null(found->deadline));
    json_object_set_new(root, "end", or_null(found->end));
    json_object_set_new(root, "summary", summary(run));
    return root;
}

int straggler_write(const struct straggler_run *run, struct wf_status *status)
{
    return coll_write_result(everything(run), "straggler.json", run->options, status);
}
