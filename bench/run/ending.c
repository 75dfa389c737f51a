#include "ending.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"
#include "bench/result/files.h"
#include "bench/result/report.h"
#include "bench/nodes/team.h"
#include "bench/words/interrupt.h"
#include "facts.h"

#define CHILD_LOOKS 20 /* of 10 ms: a broken connection may be noticed before the death that broke it */

/* --- what is left behind --- */

int bench_ending_publish(struct bench_ending *ending, struct wf_status *status)
{
    struct bench_result *result = ending->result;
    const struct wf_config *config = result->options->config;

    pthread_mutex_lock(&result->lock);
    if (result->begun_ns && !result->took_ns)
        result->took_ns = wf_clock_now(&wf_clock_monotonic) - result->begun_ns;
    pthread_mutex_unlock(&result->lock);
    int code = bench_result_write(result, status);
    pthread_mutex_lock(&result->lock);
    if (!ending->reported && result->sample_count && !bench_quiet(config)) {
        ending->reported = true;
        bench_report(result, bench_people(config));
    }
    pthread_mutex_unlock(&result->lock);
    return code;
}

/* Of a run that ended before its time. `why`: it ended; what cannot be written for the same reason is not told again.
 */
static void leave(struct bench_ending *ending, int why)
{
    struct bench_result *result = ending->result;
    struct wf_status status;

    if (ending->link) {
        json_t *totals = bench_totals(ending->link);
        bench_result_keep_totals(result, result->node, totals);
        json_decref(totals);
    }
    int code = bench_ending_publish(ending, &status);
    if (code != 0 && code != why)
        fprintf(stderr, "weft: %s\n", status.text);
}

/* --- signals --- */

/* The other node is told at once, whatever the measuring thread is busy with. */
static int heard(void *context, int signal)
{
    struct bench_ending *ending = context;
    int patience_ms = BENCH_LAST_WORDS_MS;
    char reason[64];

    pthread_mutex_lock(&ending->lock);
    snprintf(reason, sizeof reason, "interrupted by %s", bench_signal_name(signal));
    if (ending->control)
        bench_control_abort(ending->control, reason, BENCH_FAILED, signal);
    else if (ending->alone)
        patience_ms = 0;
    pthread_mutex_unlock(&ending->lock);
    return patience_ms;
}

static void waiting(void *context, int signal)
{
    const struct bench_ending *ending = context;

    if (!ending->result->options->child)
        fprintf(stderr, "weft: still ending the run after %s: a second signal ends it at once\n",
                bench_signal_name(signal));
}

static void last_words(void *context, bool again)
{
    struct bench_ending *ending = context;
    struct bench_result *result = ending->result;
    struct bench_cut cut = {.by = BENCH_CUT_SIGNAL,
                            .node = result->node,
                            .signal = bench_interrupt_signal(),
                            .code = -EINTR,
                            .exit_status = BENCH_FAILED};
    char reason[64];

    bench_child_kill(ending->child);
    bench_progress_end(ending->progress);
    pthread_mutex_lock(&ending->lock);
    snprintf(reason, sizeof reason, "interrupted by %s", bench_signal_name(cut.signal));
    bench_result_cut(result, &cut, reason);
    leave(ending, cut.code);
    pthread_mutex_unlock(&ending->lock);
    if (!result->options->child)
        fprintf(stderr, "weft: %s%s\n", result->error, again ? ", and ended at once by a second signal" : "");
}

int bench_ending_watch(struct bench_ending *ending, struct wf_status *status)
{
    static const struct bench_interrupt_ops ops = {heard, waiting, last_words};

    return bench_interrupt_start(&ops, ending, status);
}

/* --- failure --- */

static int exit_of(int code, bool prepared)
{
    if (code == -EOPNOTSUPP)
        return BENCH_UNAVAILABLE;
    return code == -EINVAL && !prepared ? BENCH_USAGE : BENCH_FAILED;
}

/* What broke first is what a person should read: a killed child explains a lost connection. */
static void find_cause(struct bench_ending *ending, struct wf_status *status)
{
    struct wf_status child;

    if (ending->result->options->place != BENCH_PLACE_LOCAL || status->code == -EINTR || status->code == -ECONNABORTED)
        return;
    int ended = 0;
    for (int i = 0; i < CHILD_LOOKS && (ended = bench_child_check(ending->child, &child)) == 0; i++)
        usleep(10000);
    if (ended && bench_child_failed(ending->child))
        *status = child;
}

/* Whose doing it was. `theirs`: the other node gave up first, because of `signal` if that is not 0. */
static void find_cut(const struct bench_ending *ending, int code, bool theirs, int signal, struct bench_cut *cut)
{
    int here = ending->result->node;
    const struct bench_team *team = ending->link ? ending->link->team : NULL;
    const struct bench_child *dead = bench_child_failed(ending->child);
    int culprit = team ? bench_team_culprit(team) : 1 - here;

    if (team && ending->link->processes > 1 && culprit >= 0)
        culprit /= ending->link->processes;
    if (code == -ECHILD && !team && dead) /* before all have met */
        culprit = dead->node / (int)wf_config_number(ending->result->options->config, WF_SET_PROCESSES);
    bool gone = code == -ECHILD ||
                (team ? culprit >= 0 : ending->link != NULL && weft_peer_status(ending->link->peer, NULL) != 0);
    bool lost = gone && !theirs && !signal;

    cut->by = signal ? BENCH_CUT_SIGNAL : lost ? BENCH_CUT_LOSS : BENCH_CUT_FAILURE;
    cut->node = (theirs || lost) && culprit >= 0 ? culprit : here;
    cut->signal = signal;
    cut->code = code;
}

/* Has a node of --local ended by itself, with a status? Then it has said why, unless it could not even be started. Of
 * many, before all have met, it is said here, too, which one that was. */
static bool child_has_spoken(const struct bench_ending *ending, int code)
{
    const struct bench_child *child = bench_child_failed(ending->child);

    if (ending->result->options->nodes && !ending->link)
        return false;
    if (!child)
        child = ending->child;
    return code == -ECHILD && child->ended && WIFEXITED(child->wait_status) &&
           WEXITSTATUS(child->wait_status) != BENCH_CHILD_UNSTARTED;
}

/* Of two nodes on one terminal, one speaks: node0 also of what node1 could tell it (`told`), else the one where it
 * broke. */
static void speak(const struct bench_ending *ending, const struct wf_status *status, bool theirs, bool told, int signal)
{
    bool child = ending->result->options->child && !ending->result->options->member;
    char name[24] = "";

    if (child)
        snprintf(name, sizeof name, " (node%d)", ending->result->node);
    if (child ? theirs || told || signal : child_has_spoken(ending, status->code))
        return;
    fprintf(stderr, "weft%s: %s\n", name, status->text);
}

int bench_ending_give_up(struct bench_ending *ending, struct wf_status *status, bool prepared)
{
    int signal = bench_interrupt_signal(); /* what the other node has said since then was its answer */
    struct wf_status other;
    struct bench_cut cut;
    bool theirs = false;

    wf_blame_memory_limit(status);
    find_cause(ending, status);
    /* The other node's reason explains whatever broke here because of it. */
    if (ending->control && !signal && bench_control_check(ending->control, &other) == -ECONNABORTED)
        *status = other;
    int exit_status = exit_of(status->code, prepared);
    if (ending->control && !signal)
        theirs = bench_control_aborted(ending->control, &exit_status, &signal);
    bench_progress_end(ending->progress);
    find_cut(ending, status->code, theirs, signal, &cut);
    cut.exit_status = exit_status;
    bench_result_cut(ending->result, &cut, status->text);
    if (signal)
        bench_interrupt_hurry();
    bool told = ending->control && ending->link && weft_peer_status(ending->link->peer, NULL) == 0;
    if (ending->control && !theirs)
        bench_control_abort(ending->control, status->text, exit_status, signal);
    leave(ending, status->code);
    speak(ending, status, theirs, told, signal);
    return exit_status;
}

/* --- the ending itself --- */

void bench_ending_init(struct bench_ending *ending, struct bench_result *result, struct bench_progress *progress,
                       struct bench_child *child)
{
    memset(ending, 0, sizeof *ending);
    pthread_mutex_init(&ending->lock, NULL);
    ending->result = result;
    ending->progress = progress;
    ending->child = child;
}

void bench_ending_fini(struct bench_ending *ending)
{
    pthread_mutex_destroy(&ending->lock);
}

void bench_ending_set_alone(struct bench_ending *ending, bool alone)
{
    pthread_mutex_lock(&ending->lock);
    ending->alone = alone;
    pthread_mutex_unlock(&ending->lock);
}

void bench_ending_set_link(struct bench_ending *ending, const struct bench_link *link, struct bench_control *control)
{
    pthread_mutex_lock(&ending->lock);
    ending->link = link;
    ending->control = control;
    ending->result->begun |= link != NULL;
    pthread_mutex_unlock(&ending->lock);
}
