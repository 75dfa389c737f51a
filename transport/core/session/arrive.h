/*
 * arrive.h: what the session does with each frame that arrives.
 */
#ifndef WF_CORE_SESSION_ARRIVE_H
#define WF_CORE_SESSION_ARRIVE_H

#include "core/channel/channel.h"

/* The calls that a channel makes into its session. */
extern const struct wf_channel_ops wf_session_channel_ops;

/* Takes the acknowledgement that every frame carries; taking it twice is harmless. 0, or negative: the peer broke the
 * protocol. Session lock held. */
int wf_channel_take_acknowledgement(struct wf_channel *channel, const struct wf_frame *frame);

#endif
