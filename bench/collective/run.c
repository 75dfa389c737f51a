#include "run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "bench/words/heard.h"
#include "bench/words/interrupt.h"
#include "bench/words/words.h"
#include "peers/program.h"

#define SLICE_MS 50
#define SILENT_OPERATIONS 5 /* a line, if an empty one, comes with the first that ends after one such time */
#define SILENT_SHARES 2     /* and after what is measured: batches that are foreseen may take longer than the share */
#define GRACE_MS 20000      /* for the other ranks to end by themselves after one has failed: they name it */
#define BRIEF_MS 2000       /* the same where an MPI has failed: it ends them */
#define EXIT_USAGE 2
#define EXIT_UNAVAILABLE 77

/* Owner: coll_run(). */
struct crowd {
    struct peer_program programs[COLL_RANKS_MAX];
    struct peer_command commands[COLL_RANKS_MAX];
    uint32_t count;                                 /* started */
    uint32_t failed;                                /* the first that did, or was killed; COLL_RANKS_MAX: none */
    int64_t begun_ns, heard_ns, failed_ns, done_ns; /* done_ns: 0 until all is measured */
    int64_t ended_ns;                               /* the first that did; 0: none has */
    size_t heard_bytes;
};

static int64_t now_ns(void)
{
    return wf_clock_now(&wf_clock_monotonic);
}

static int start(const struct coll_plan *plan, const struct coll_run *run, struct crowd *crowd,
                 struct wf_status *status)
{
    uint32_t count = coll_program_count(plan, run);
    int result = 0;

    for (uint32_t i = 0; i < count && result == 0; i++) {
        if (coll_command(plan, run, i, &crowd->commands[i]) != 0)
            return wf_fail(status, -ENOBUFS, "the command of a rank is too long: fewer sizes or settings");
        crowd->count = i + 1; /* a program can be ended whatever start() returns */
        result = peer_program_start(&crowd->programs[i], &crowd->commands[i], status);
    }
    return result;
}

static bool was_killed(const struct peer_program *program)
{
    return program->told && WIFSIGNALED(program->how.wait_status);
}

/* The first failure is looked for; but the others end because one was killed, and may be seen before it. */
static void note_failure(struct crowd *crowd, uint32_t which)
{
    if (crowd->failed == COLL_RANKS_MAX)
        crowd->failed_ns = now_ns();
    else if (!was_killed(&crowd->programs[which]) || was_killed(&crowd->programs[crowd->failed]))
        return;
    crowd->failed = which;
}

/* Returns how many still run, and notes which one has failed, and whether anything was heard. */
static uint32_t look(struct crowd *crowd)
{
    struct wf_status ignored;
    size_t bytes = 0;
    uint32_t left = 0;

    for (uint32_t i = 0; i < crowd->count; i++) {
        const struct peer_program *program = &crowd->programs[i];
        bytes += program->used + program->tail_used;
        left += !program->ended;
        if (program->ended && !crowd->ended_ns)
            crowd->ended_ns = now_ns();
        if (program->ended && peer_program_verdict(program, &ignored) != 0)
            note_failure(crowd, i);
    }
    if (bytes != crowd->heard_bytes)
        crowd->heard_ns = now_ns();
    crowd->heard_bytes = bytes;
    return left;
}

/* Has one of them said that all is measured? */
static bool is_done(const struct crowd *crowd)
{
    size_t length = strlen(RANK_DONE);

    for (uint32_t i = 0; i < crowd->count; i++) {
        const struct peer_program *program = &crowd->programs[i];
        if (program->used >= length && strcmp(program->text + program->used - length, RANK_DONE) == 0)
            return true;
    }
    return false;
}

/* One that has done its part says so to all others before it ends: they cannot have much left to do. */
static int judge_left(const struct crowd *crowd, struct wf_status *status)
{
    char ranks[160] = "";
    int count = 0;

    if (!crowd->ended_ns || now_ns() - crowd->ended_ns < COLL_END_S * INT64_C(1000000000))
        return 0;
    for (uint32_t i = 0; i < crowd->count; i++) {
        size_t used = strlen(ranks);
        if (!crowd->programs[i].ended)
            snprintf(ranks + used, sizeof ranks - used, "%s%u", count++ ? ", " : "", i);
    }
    return count ? wf_fail(status, -ETIMEDOUT, "rank%s %s still ran %d s after another had ended: stopped, or hangs",
                           count > 1 ? "s" : "", ranks, COLL_END_S)
                 : 0;
}

static uint64_t patience_s(const struct rank_asked *asked)
{
    return SILENT_OPERATIONS * asked->timeout_s + SILENT_SHARES * asked->share_ms / 1000;
}

/* Whether they have taken too long: some of them, with silence, or with everything. One that has failed has its own
 * words, for which GRACE_MS waits. */
static int judge_time(const struct coll_plan *plan, const struct coll_run *run, const struct crowd *crowd,
                      struct wf_status *status)
{
    const char *name = run->backend->name;
    uint64_t silence_s = run->silence_s ? run->silence_s : patience_s(run->asked);

    if (crowd->done_ns || crowd->failed < COLL_RANKS_MAX)
        return 0;

    if (plan->limit_s && now_ns() - crowd->begun_ns > (int64_t)plan->limit_s * 1000000000)
        return wf_fail(
            status, -ETIMEDOUT,
            "%s: not all was measured within %llu s: try it alone (--backend %s), leave it out of --backend, "
            "or raise --timeout",
            name, (unsigned long long)plan->limit_s, name);
    if (now_ns() - crowd->heard_ns > (int64_t)silence_s * 1000000000)
        return plan->options->command == BENCH_STRAGGLER
                   ? wf_fail(status, -ETIMEDOUT, "nothing was heard for %llu s: all ranks hang, or were stopped",
                             (unsigned long long)silence_s)
                   : wf_fail(status, -ETIMEDOUT,
                             "%s: nothing was heard for %llu s: leave it out of --backend, or raise --timeout", name,
                             (unsigned long long)silence_s);
    int result = judge_left(crowd, status);
    if (result && plan->options->command != BENCH_STRAGGLER)
        wf_fail_prefix(status, "%s", name);
    return result;
}

/* Until all have ended, or have had the time for it. */
static int attend(const struct coll_plan *plan, const struct coll_run *run, struct crowd *crowd,
                  struct coll_outcome *outcome, struct wf_status *status)
{
    struct peer_program *all[COLL_RANKS_MAX];
    int64_t grace_ns = (run->backend->starter == COLL_BY_US ? GRACE_MS : BRIEF_MS) * (int64_t)1000000;
    int result = 0;

    for (uint32_t i = 0; i < crowd->count; i++)
        all[i] = &crowd->programs[i];
    crowd->failed = COLL_RANKS_MAX;
    crowd->begun_ns = crowd->heard_ns = now_ns();
    while (look(crowd) > 0 && result == 0 && !outcome->forced) {
        peer_program_pump(all, (int)crowd->count, SLICE_MS);
        result = bench_interrupted(status);
        if (!crowd->done_ns && is_done(crowd))
            crowd->done_ns = now_ns();
        if (result == 0)
            result = judge_time(plan, run, crowd, status);
        if (crowd->failed < COLL_RANKS_MAX && now_ns() - crowd->failed_ns > grace_ns)
            break;
        outcome->forced = crowd->done_ns && now_ns() - crowd->done_ns > COLL_END_S * INT64_C(1000000000);
    }
    return result;
}

static void end_all(struct crowd *crowd)
{
    for (uint32_t i = 0; i < crowd->count; i++)
        peer_program_end(&crowd->programs[i]);
}

/* --- what is left of it --- */

/* The last line of each that has failed. */
static void keep_words(const struct crowd *crowd, struct coll_outcome *outcome)
{
    struct wf_status how = {0};

    for (uint32_t i = 0; i < crowd->count; i++) {
        const struct peer_program *program = &crowd->programs[i];
        size_t used = strlen(outcome->said);
        if (!program->ended || peer_program_verdict(program, &how) == 0)
            continue;
        if (crowd->count > 1)
            snprintf(outcome->said + used, sizeof outcome->said - used, "%srank %u: %s", used ? "\n" : "", i, how.text);
        else
            snprintf(outcome->said + used, sizeof outcome->said - used, "%s%s", used ? "\n" : "", how.text);
    }
}

static bool has_status(const struct peer_program *program, int status)
{
    return program->told && WIFEXITED(program->how.wait_status) && WEXITSTATUS(program->how.wait_status) == status;
}

static int judge(const struct coll_plan *plan, const struct coll_run *run, struct crowd *crowd,
                 struct coll_outcome *outcome, struct wf_status *status)
{
    if (crowd->failed == COLL_RANKS_MAX)
        return 0;
    keep_words(crowd, outcome);
    const struct peer_program *program = &crowd->programs[crowd->failed];
    peer_program_verdict(program, status);
    if (has_status(program, EXIT_UNAVAILABLE))
        status->code = -EOPNOTSUPP;
    if (plan->found && has_status(program, EXIT_USAGE)) /* only the rank knows whether a launcher has started it */
        status->code = -EINVAL;
    if (crowd->count > 1)
        wf_fail_prefix(status, "%s: rank %u", run->backend->name, crowd->failed);
    else
        wf_fail_prefix(status, "%s", run->backend->name);
    return status->code;
}

/* The lines of the one program that has written some: rank 0, or the launcher for it. */
static int keep_text(struct crowd *crowd, struct coll_outcome *outcome, struct wf_status *status)
{
    for (uint32_t i = 0; i < crowd->count; i++)
        if (crowd->programs[i].used) {
            outcome->text = crowd->programs[i].text;
            crowd->programs[i].text = NULL;
            return 0;
        }
    outcome->text = strdup("");
    return outcome->text ? 0 : wf_fail(status, -ENOMEM, "no memory");
}

/* Gloo's store is a folder. */
static int make_store(const struct coll_plan *plan, const struct coll_run *run, char path[PATH_MAX],
                      struct wf_status *status)
{
    path[0] = '\0';
    if (run->backend->starter != COLL_BY_US || !run->backend->program)
        return 0;
    snprintf(path, PATH_MAX, "%s/%s.%u", plan->meeting, run->backend->name, run->number);
    if (mkdir(path, 0777) != 0 && errno != EEXIST)
        return wf_fail(status, -errno, "%s: %s", path, wf_strerror(errno));
    return 0;
}

int coll_run(const struct coll_plan *plan, const struct coll_run *run, struct coll_outcome *outcome,
             struct wf_status *status)
{
    struct crowd *crowd = calloc(1, sizeof *crowd);
    char store[PATH_MAX];

    memset(outcome, 0, sizeof *outcome);
    if (!crowd)
        return wf_fail(status, -ENOMEM, "no memory for %u ranks", run->ranks);
    int result = make_store(plan, run, store, status);
    if (result == 0)
        result = start(plan, run, crowd, status);
    peer_command_text(&crowd->commands[0], outcome->command, sizeof outcome->command);
    if (result == 0)
        result = attend(plan, run, crowd, outcome, status);
    end_all(crowd);
    if (result == 0)
        result = judge(plan, run, crowd, outcome, status);
    if (keep_text(crowd, outcome, status) != 0)
        result = -ENOMEM;
    for (uint32_t i = 0; i < crowd->count; i++)
        peer_program_fini(&crowd->programs[i]);
    free(crowd);
    if (store[0] && !plan->found)
        coll_remove_folder(store);
    return result;
}

void coll_outcome_fini(struct coll_outcome *outcome)
{
    free(outcome->text);
    outcome->text = NULL;
}

/* --- what they say --- */

static bool take_facts(json_t *line, json_t **facts, uint32_t *ranks)
{
    json_t *told = NULL;
    json_int_t count;

    if (*facts || json_unpack(line, "{s:I, s:o}", "ranks", &count, "facts", &told) != 0 || count < 1)
        return false;
    *ranks = (uint32_t)count;
    *facts = json_incref(told);
    return true;
}

int coll_read_lines(const char *text, const char *backend, coll_take_line *take, void *context, json_t **facts,
                    uint32_t *ranks, struct wf_status *status)
{
    bool good = true;

    *facts = NULL;
    while (good && *text) {
        size_t length = strcspn(text, "\n");
        json_t *line = bench_heard(text, length);
        good = !line                            ? length == 0 || text[0] != '{'
               : json_object_get(line, "facts") ? take_facts(line, facts, ranks)
               : json_object_get(line, "done")  ? *facts != NULL
                                                : *facts && take(context, *ranks, line);
        if (!good)
            wf_fail(status, -EPROTO, "%s said '%.*s', which is not understood", backend,
                    (int)(length > 100 ? 100 : length), text);
        json_decref(line);
        text += length + (text[length] == '\n');
    }
    return good ? 0 : -EPROTO;
}
