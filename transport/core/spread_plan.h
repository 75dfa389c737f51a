/*
 * spread_plan.h: which bulk channel may take how much of what a session has to send (wire/spread.h has the rule).
 */
#ifndef WF_CORE_SPREAD_PLAN_H
#define WF_CORE_SPREAD_PLAN_H

#include <stdbool.h>
#include <stdint.h>

struct wf_channel;

/*
 * The most that `channel`, which has nothing posted, may take now out of `waiting` bytes. 0 only if an event is sure to
 * come that asks again: an acknowledgement, or a better channel's turn. Session lock held.
 */
uint64_t wf_spread_plan(const struct wf_channel *channel, uint64_t waiting);

/* May the channel take a chunk of `length` bytes that cannot be cut? The fastest always may, in its turn. */
bool wf_spread_suits(const struct wf_channel *channel, uint64_t waiting, uint64_t length);

#endif
