/*
 * meet.h: how the two nodes of a run meet. Node0 listens, says so to people, or starts node1 where both are here; node1
 * dials. What is wrong with an address or a key is found here.
 */
#ifndef WF_BENCH_MEET_H
#define WF_BENCH_MEET_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"
#include "bench/machine/gpus.h"
#include "bench/nodes/link.h"
#include "bench/nodes/team.h"
#include "bench/plan/options.h"
#include "bench/words/progress.h"
#include "ending.h"
#include "local.h"

/* Owner: the measuring thread. */
struct bench_meeting {
    const struct bench_options *options;
    const struct bench_gpus *gpus; /* that this node's context is for */
    struct bench_link *link;
    struct bench_child *child; /* node1 of --local is started here */
    struct bench_ending *ending;
    struct bench_progress *progress;
    bool prepared; /* out: settings are sound; what fails from here on is a failure of the run */
};

/* Opens the link, and waits until the other node is there. */
int bench_meet(struct bench_meeting *meeting, struct wf_status *status);

/* Opens the link, and waits until all nodes of a group are there; `*team` is to be left and freed, also after a
 * failure. */
int bench_meet_team(struct bench_meeting *meeting, struct bench_team **team, struct wf_status *status);

/* "[ADDR:]PORT" of --listen; the setting `port` where it names none. */
void bench_listen_address(const struct bench_options *options, char *address, size_t room);

#endif
