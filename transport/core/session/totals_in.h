/*
 * totals_in.h: frames that arrive about channels and credit, not about messages: absolute totals, which may come twice
 * and in any order, and DOWN for a lost channel. Results as of wf_channel_ops.take_frame(). Session lock held.
 */
#ifndef WF_CORE_SESSION_TOTALS_IN_H
#define WF_CORE_SESSION_TOTALS_IN_H

#include "wire/frame.h"

struct wf_channel;
struct wf_session;

/* STATE, CREDIT, PING, PONG, BYE. */
int wf_totals_take(struct wf_channel *channel, const struct wf_frame *frame);

/* DOWN. */
int wf_totals_take_down(struct wf_session *session, const struct wf_frame *frame);

#endif
