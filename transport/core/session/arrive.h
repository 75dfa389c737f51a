/*
 * arrive.h: what each frame does on arrival.
 */
#ifndef WF_CORE_SESSION_ARRIVE_H
#define WF_CORE_SESSION_ARRIVE_H

#include "core/channel/channel.h"

/* What a session does for its channels. */
extern const struct wf_channel_ops wf_session_channel_ops;

/* The acknowledgement that every frame carries; saying it twice is harmless. 0; negative: the peer broke the protocol.
 * Session lock held. */
int wf_channel_take_acknowledgement(struct wf_channel *channel, const struct wf_frame *frame);

#endif
