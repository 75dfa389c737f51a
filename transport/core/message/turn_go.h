/*
 * turn_go.h: what an operation does when its turn in a user's stream has come (core/device/turn.h).
 */
#ifndef WF_CORE_MESSAGE_TURN_GO_H
#define WF_CORE_MESSAGE_TURN_GO_H

#include "core/device/turn.h"

/* The work before it has been done, or the device failed: the operation goes on, or ends. Session lock held. */
void wf_turn_go(struct wf_turn *turn, const struct wf_transit *transit);

#endif
