/* What all nodes of a team do together: sums and barriers, what node0 says to all, and what all say to node0. */
#include <string.h>

#include "base/clock.h"
#include "team_parts.h"

static int add_below(const struct bench_team *team, struct bench_news *sum, struct wf_status *status)
{
    struct bench_news news, both;
    int result = 0;

    for (int i = 0; result == 0 && i < 2 && team->down[i]; i++) {
        result = bench_control_learn(team->down[i]->control, &news, status);
        if (result)
            return result;
        bench_news_join(sum, &news, &both);
        *sum = both;
    }
    return 0;
}

/* Up to node0, and what it comes to down to all. */
static int sum_up(struct bench_team *team, const struct bench_news *mine, struct bench_news *sum,
                  struct wf_status *status)
{
    *sum = *mine;
    int result = add_below(team, sum, status);

    if (result == 0 && team->up)
        result = bench_control_tell(team->up->control, sum, status);
    if (result == 0 && team->up)
        result = bench_control_learn(team->up->control, sum, status);
    for (int i = 0; result == 0 && i < 2 && team->down[i]; i++)
        result = bench_control_tell(team->down[i]->control, sum, status);
    return result;
}

/* Receives stand when the first barrier is over, and every clock has started when the second one is. */
static int start_all(void *context, int64_t *start_ns, struct wf_status *status)
{
    const struct bench_news none = {0};
    struct bench_news sum;
    int result = sum_up(context, &none, &sum, status);
    int64_t start = wf_clock_now(&wf_clock_monotonic);

    if (result == 0)
        result = sum_up(context, &none, &sum, status);
    if (result == 0)
        *start_ns = start;
    return result;
}

/* The others' part of a sum; of what is the largest, that of all. */
static int swap_all(void *context, const struct bench_news *mine, struct bench_news *theirs, struct wf_status *status)
{
    struct bench_news sum;
    int result = sum_up(context, mine, &sum, status);

    if (result)
        return result;
    *theirs = sum;
    theirs->cpu_ns -= mine->cpu_ns;
    theirs->retransmits -= mine->retransmits;
    theirs->wrong_bytes -= mine->wrong_bytes;
    theirs->verified_bytes -= mine->verified_bytes;
    theirs->resent_bytes -= mine->resent_bytes;
    theirs->page_faults -= mine->page_faults;
    return 0;
}

static int start_alone(void *context, int64_t *start_ns, struct wf_status *status)
{
    *start_ns = wf_clock_now(&wf_clock_monotonic);
    return bench_team_look(context, status);
}

static int swap_alone(void *context, const struct bench_news *mine, struct bench_news *theirs, struct wf_status *status)
{
    (void)mine;
    memset(theirs, 0, sizeof *theirs);
    return bench_team_look(context, status);
}

const struct bench_control_ops bench_team_of_all = {start_all, swap_all, bench_team_look, bench_team_abort,
                                                    bench_team_aborted};
const struct bench_control_ops bench_team_of_one = {start_alone, swap_alone, bench_team_look, bench_team_abort,
                                                    bench_team_aborted};

/* --- the tree --- */

int bench_team_spread(struct bench_team *team, json_t **text, struct wf_status *status)
{
    int result = team->up ? bench_control_hear(team->up->control, text, status) : 0;

    for (int i = 0; result == 0 && i < 2 && team->down[i]; i++)
        result = bench_control_say(team->down[i]->control, *text, status);
    return result;
}

/* What one child and those below it have to say. */
static int take_below(struct bench_team *team, const struct bench_partner *child,
                      const struct bench_gathering *gathering, struct wf_status *status)
{
    bool more = true;
    int result = 0;

    while (result == 0 && more) {
        json_t *text = NULL;
        result = bench_control_hear(child->control, &text, status);
        if (result)
            return result;
        more = !json_is_true(json_object_get(text, "end"));
        if (more && team->up)
            result = bench_control_say(team->up->control, text, status);
        else if (more)
            result = gathering->take(gathering->context, text, status);
        json_decref(text);
    }
    return result;
}

static int tell_own(struct bench_team *team, const struct bench_gathering *gathering, struct wf_status *status)
{
    json_t *text;
    int result = 0;

    while (result == 0 && (text = gathering->tell(gathering->context)) != NULL) {
        result = bench_control_say(team->up->control, text, status);
        json_decref(text);
    }
    text = json_pack("{s:b}", "end", 1);
    if (result == 0)
        result = bench_control_say(team->up->control, text, status);
    json_decref(text);
    return result;
}

int bench_team_gather(struct bench_team *team, const struct bench_gathering *gathering, struct wf_status *status)
{
    int result = 0;

    for (int i = 0; result == 0 && i < 2 && team->down[i]; i++)
        result = take_below(team, team->down[i], gathering, status);
    return result == 0 && team->up ? tell_own(team, gathering, status) : result;
}
