/*
 * payload.h: the bytes of a DATA frame are in their place, or will not be. Session lock held.
 */
#ifndef WF_CORE_SESSION_PAYLOAD_H
#define WF_CORE_SESSION_PAYLOAD_H

struct wf_channel;

/* The payload of the frame in progress is complete. May drop the lock and take it again. */
void wf_payload_finish(struct wf_channel *channel);

/* The receive half lets go of its claim and of its slot: the rest of the payload goes to the sink. */
void wf_payload_drop_claim(struct wf_channel *channel);

#endif
