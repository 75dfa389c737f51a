/*
 * calibrate.h: one measurement, how many messages a case shall have, and how long a tool may take for them.
 */
#ifndef WF_PEERS_CALIBRATE_H
#define WF_PEERS_CALIBRATE_H

#include "peers.h"

#define PEERS_MESSAGES_LEAST 8 /* of a case, whatever its seconds; and never fewer than are in flight */

/* Runs variant `variant` of `tool` once for the case of `block`; `commands` keeps what was run. Where another
 * program took the port meanwhile, and the plan names no port, it tries a few others. 0, or why there is no reading. */
int peers_run_once(const struct peers_plan *plan, const struct peers_block *block, const struct peer_tool *tool,
                   int variant, struct peer_commands *commands, struct peer_reading *reading, struct wf_status *status);

/* For how long a run of a tool may go on: 20 s and 40 times what Weft takes, at most an hour; 180 s where that is not
 * known. Where the plan fixes the messages at least 180 s; where it fixes these or the warm-up more than an hour if
 * need be. */
int peers_timeout_ms(const struct peers_plan *plan, const struct peers_block *block);

/* What Weft is first run for, to find how fast it is, and whether it is: not for fixed messages that are as few. */
struct peer_case peers_first_case(const struct peer_case *asked);
bool peers_has_first_run(const struct peers_plan *plan, const struct peer_case *asked);

/* Sets the numbers of messages of the block's case, so that Weft takes about plan->seconds: every tool then moves the
 * same number. What the plan fixes stays, messages or warm-up. Sets `weft_s`; of fixed messages it is a guess where
 * there was no first run, or it failed. */
int peers_calibrate(const struct peers_plan *plan, struct peers_block *block, struct wf_status *status);

#endif
