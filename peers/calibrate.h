/*
 * calibrate.h: one measurement, and how many messages a case shall have.
 */
#ifndef WF_PEERS_CALIBRATE_H
#define WF_PEERS_CALIBRATE_H

#include "peers.h"

/* Runs variant `variant` of `tool` once; `commands` keeps what was run. 0, or why there is no reading. */
int peers_run_once(const struct peers_plan *plan, const struct peer_tool *tool, const struct peer_case *asked,
                   int variant, struct peer_commands *commands, struct peer_reading *reading, struct wf_status *status);

/* Sets `messages` and `warmup` so that Weft takes about plan->seconds: every tool then moves the same number. */
int peers_calibrate(const struct peers_plan *plan, struct peer_case *asked, struct wf_status *status);

#endif
