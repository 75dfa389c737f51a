/*
 * payload.h: the claim by which a channel may write the payload of a DATA frame to its message, from the frame on until
 * all of the payload has been read, or the claim is dropped. Session lock held.
 */
#ifndef WF_CORE_SESSION_PAYLOAD_H
#define WF_CORE_SESSION_PAYLOAD_H

struct wf_channel;
struct wf_frame;
struct wf_inbound;

/* Claims the inbound message for the payload to come, after matching all that can be matched now. A payload for a
 * device needs a slot. If none is free and the payload is unsolicited, it goes by the pool; else the channel waits
 * until another copy ends. */
void wf_session_payload_claim(struct wf_channel *channel, struct wf_inbound *inbound);

/* The other channel with a claim on bytes of this payload, or NULL. There can be one only in a message of which bytes
 * were sent again: nobody looks at all channels for others. */
struct wf_channel *wf_session_payload_rival(const struct wf_channel *channel, struct wf_inbound *inbound,
                                            const struct wf_frame *frame);

/*
 * A chunk comes twice only when its sender has lost the channel `other`, which carried the older copy: the newer copy
 * has the flag RESENT. So `other` is lost here, too. 0: `channel` waits until `other` has ended its claim. -ESTALE:
 * `channel` brings the older copy, or is being lost itself.
 */
int wf_session_payload_outlive(struct wf_channel *channel, struct wf_channel *other, const struct wf_frame *frame);

/* The payload of the frame in progress is complete. May drop the lock and take it again. */
void wf_session_payload_finish(struct wf_channel *channel);

/* The receive half ends its claim and gives its slot back: the rest of the payload goes to the sink. */
void wf_session_payload_drop_claim(struct wf_channel *channel);

#endif
