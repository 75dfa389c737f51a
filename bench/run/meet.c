#include "meet.h"

#include <stdio.h>

#include "base/clock.h"
#include "bench/nodes/key_check.h"
#include "invite.h"
#include "vigil.h"

static int look_after_child(void *context, struct wf_status *status)
{
    return bench_child_check(context, status);
}

void bench_listen_address(const struct bench_options *options, char *address, size_t room)
{
    bool local = options->place == BENCH_PLACE_LOCAL;

    /* For --local the kernel chooses. */
    if (local)
        snprintf(address, room, "127.0.0.1:%d",
                 bench_is_default(options->config, WF_SET_PORT) ? 0
                                                                : (int)wf_config_number(options->config, WF_SET_PORT));
    else if (options->address[0])
        snprintf(address, room, "%s", options->address);
    else
        snprintf(address, room, "%d", (int)wf_config_number(options->config, WF_SET_PORT));
}

static int be_server(struct bench_meeting *meeting, struct wf_status *status)
{
    bool local = meeting->options->place == BENCH_PLACE_LOCAL;
    char address[280];
    int port;

    bench_listen_address(meeting->options, address, sizeof address);
    int result = bench_link_listen(meeting->link, address, &port, status);
    if (result)
        return result;
    meeting->prepared = true;
    if (!local)
        bench_key_warn(meeting->link->context, meeting->options, address, port);
    if (local)
        result = bench_child_start(meeting->child, meeting->options, port, status);
    else if (!bench_quiet(meeting->options->config))
        bench_invite(meeting->link, meeting->options, address, port, bench_people(meeting->options->config));
    return result ? result
                  : bench_link_accept(meeting->link, !local, local ? look_after_child : NULL, meeting->child, status);
}

int bench_meet(struct bench_meeting *meeting, struct wf_status *status)
{
    int node = meeting->options->place == BENCH_PLACE_CONNECT ? 1 : 0;
    int result = bench_link_open(meeting->link, node, meeting->options->config, meeting->gpus, status);

    if (result)
        return result;
    meeting->link->gave_way = meeting->options->gave_way;
    if (node == 0)
        return be_server(meeting, status);
    bench_ending_set_alone(meeting->ending, true);
    bench_progress_begin(meeting->progress, "connecting to the other node",
                         meeting->link->connect_timeout_ms * WF_NS_PER_MS);
    result = bench_link_connect(meeting->link, meeting->options->address, status);
    bench_progress_wipe(meeting->progress);
    bench_ending_set_alone(meeting->ending, false);
    if (result == 0)
        meeting->prepared = true;
    return result;
}

/* --- many --- */

/* node0 of --local: the others are told the port that the kernel chose. */
static int start_all(struct bench_meeting *meeting, char *place, size_t room, struct wf_status *status)
{
    char address[280];
    int port;

    bench_listen_address(meeting->options, address, sizeof address);
    int result = bench_link_listen(meeting->link, address, &port, status);
    if (result)
        return result;
    snprintf(place, room, "127.0.0.1:%d", port);
    return bench_child_start(meeting->child, meeting->options, port, status);
}

/* Nothing wakes this thread before all have come, or the time is over: of --local, another one looks after them. */
static int join_team(struct bench_meeting *meeting, const struct weft_group_options *who, struct bench_team **team,
                     struct wf_status *status)
{
    bool local = meeting->options->place == BENCH_PLACE_LOCAL;
    struct bench_vigil vigil;

    bench_ending_set_alone(meeting->ending, true);
    bench_progress_begin(meeting->progress, "waiting for all nodes", meeting->link->connect_timeout_ms * WF_NS_PER_MS);
    int64_t start = wf_clock_now(&wf_clock_monotonic);
    int result = local ? bench_vigil_start(&vigil, meeting->ending, status) : 0;
    if (result == 0) {
        result = bench_team_join(meeting->link, who, team, status);
        if (local)
            bench_vigil_stop(&vigil);
    }
    meeting->link->footprint.session_ns = wf_clock_now(&wf_clock_monotonic) - start;
    bench_progress_wipe(meeting->progress);
    bench_ending_set_alone(meeting->ending, false);
    return result;
}

int bench_meet_team(struct bench_meeting *meeting, struct bench_team **team, struct wf_status *status)
{
    const struct bench_options *options = meeting->options;
    struct weft_group_options who = {.rank = options->rank > 0 ? (uint32_t)options->rank : 0,
                                     .size = options->rank >= 0 ? (uint32_t)options->nodes : 0,
                                     .sessions = (uint32_t)wf_config_number(options->config, WF_SET_SESSIONS),
                                     .rendezvous = options->rendezvous};
    char place[40];
    int result = bench_link_open(meeting->link, BENCH_OF_MANY, options->config, meeting->gpus, status);

    if (result == 0 && options->place == BENCH_PLACE_LOCAL) {
        meeting->prepared = true;
        result = start_all(meeting, place, sizeof place, status);
        who.size = (uint32_t)options->nodes;
        who.rendezvous = place;
    }
    if (result)
        return result;
    meeting->link->gave_way = options->gave_way;
    result = join_team(meeting, &who, team, status);
    if (result == 0)
        meeting->prepared = true;
    return result;
}
