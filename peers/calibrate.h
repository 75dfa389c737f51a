/*
 * calibrate.h: one measurement, and how many messages a case shall have.
 */
#ifndef WF_PEERS_CALIBRATE_H
#define WF_PEERS_CALIBRATE_H

#include "peers.h"

#define PEERS_MESSAGES_LEAST 8 /* of a case, whatever its seconds; and never fewer than are in flight */

/* Runs variant `variant` of `tool` once for the case of `block`; `commands` keeps what was run. Where another
 * program took the port meanwhile, and the plan names no port, it tries a few others. 0, or why there is no reading. */
int peers_run_once(const struct peers_plan *plan, const struct peers_block *block, const struct peer_tool *tool,
                   int variant, struct peer_commands *commands, struct peer_reading *reading, struct wf_status *status);

/* Sets the numbers of messages of the block's case, and `weft_s`, so that Weft takes about plan->seconds: every tool
 * then moves the same number. */
int peers_calibrate(const struct peers_plan *plan, struct peers_block *block, struct wf_status *status);

#endif
