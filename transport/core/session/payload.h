/*
 * payload.h: the end of a DATA frame's payload: all of it has been read, or its claim is dropped. Session lock held.
 */
#ifndef WF_CORE_SESSION_PAYLOAD_H
#define WF_CORE_SESSION_PAYLOAD_H

struct wf_channel;

/* The payload of the frame in progress is complete. May drop the lock and take it again. */
void wf_session_payload_finish(struct wf_channel *channel);

/* The receive half ends its claim and gives its slot back: the rest of the payload goes to the sink. */
void wf_session_payload_drop_claim(struct wf_channel *channel);

#endif
