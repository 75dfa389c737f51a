/* How a team ends before its time: by what a node says, by what the group finds, and how all hear of it. */
#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "team_parts.h"

#define EXPLAIN_MS 1000 /* a lost session is noticed before the group knows who is the cause */
#define SLICE_MS 20

/* Whatever one node has said, the others that this one talks to hear at once: so it goes through the tree. */
static void pass_on(struct bench_team *team, const struct bench_partner *from, const char *reason)
{
    int exit_status = 1, signal = 0;

    if (team->ended)
        return;
    team->ended = true;
    team->culprit = bench_control_culprit(from->control);
    bench_control_aborted(from->control, &exit_status, &signal);
    pthread_mutex_lock(&team->lock);
    for (struct bench_partner *at = team->partners; at; at = at->next)
        if (at != from && at->control)
            bench_control_pass_on(at->control, reason, exit_status, signal, team->culprit);
    pthread_mutex_unlock(&team->lock);
}

/* What the nodes that this one talks to have said. */
static int listen_to_all(struct bench_team *team, struct wf_status *status)
{
    for (struct bench_partner *at = team->partners; at; at = at->next) {
        int result = at->control ? bench_control_listen(at->control, status) : 0;
        if (result == -ECONNABORTED)
            pass_on(team, at, status->text);
        if (result)
            return result;
    }
    return 0;
}

static int ask_group(struct bench_team *team, struct wf_status *status)
{
    struct weft_error err = {0};
    unsigned rank;
    int result = weft_group_status(team->group, &err);

    if (result == 0)
        return 0;
    if (team->culprit < 0 && sscanf(err.text, "rank %u ", &rank) == 1 && (int)rank < team->size)
        team->culprit = (int)rank;
    return wf_fail(status, result, "%s", err.text);
}

/* A session has ended: who is the cause, the group or another node tells soon. */
static int explain(struct bench_team *team, struct wf_status *status)
{
    int64_t deadline = wf_deadline_after_ms(wf_clock_now(&wf_clock_monotonic), EXPLAIN_MS);
    struct weft_completion completion;
    struct wf_status other;

    do {
        int result = ask_group(team, &other);
        for (struct bench_partner *at = team->partners; result == 0 && at; at = at->next)
            if (at->control && bench_control_listen(at->control, &other) == -ECONNABORTED) {
                pass_on(team, at, other.text);
                result = -ECONNABORTED;
            }
        if (result) {
            *status = other;
            return result;
        }
        weft_group_wait(team->group, SLICE_MS, &completion, 1);
    } while (wf_clock_now(&wf_clock_monotonic) < deadline);
    return status->code;
}

int bench_team_look(void *context, struct wf_status *status)
{
    struct bench_team *team = context;
    int result = listen_to_all(team, status);

    if (result == 0)
        return ask_group(team, status);
    return result == -ECONNABORTED ? result : explain(team, status);
}

/* Where it is another node that was lost, the reason says so already. */
void bench_team_abort(void *context, const char *reason, int exit_status, int signal)
{
    struct bench_team *team = context;

    pthread_mutex_lock(&team->lock);
    for (struct bench_partner *at = team->partners; at; at = at->next)
        if (at->control)
            bench_control_pass_on(at->control, reason, exit_status, signal, team->culprit);
    pthread_mutex_unlock(&team->lock);
}

bool bench_team_aborted(void *context, int *exit_status, int *signal)
{
    struct bench_team *team = context;

    for (struct bench_partner *at = team->partners; at; at = at->next)
        if (at->control && bench_control_aborted(at->control, exit_status, signal))
            return true;
    return false;
}

int bench_team_culprit(const struct bench_team *team)
{
    return team->culprit;
}
