/*
 * watched.h: tells the user of a message's chunks (WEFT_WATCH). A chunk to be sent holds its message until its batch
 * is released, one that comes has a claim on it: so every end is told before the request completes. Session lock held.
 */
#ifndef WF_CORE_SESSION_WATCHED_H
#define WF_CORE_SESSION_WATCHED_H

#include <stdbool.h>

struct wf_channel;
struct wf_frame;
struct wf_inbound;
struct wf_outbound;

/* The chunk is the last of the channel's batch. */
void wf_watched_send(struct wf_channel *channel, const struct wf_frame *frame, const struct wf_outbound *outbound);
/* The batch, which has such chunks, is let go of: its operation has ended, or was never posted. */
void wf_watched_sent(struct wf_channel *channel);

/* The payload of the channel's frame begins to come to the memory of a receive. */
void wf_watched_receive(struct wf_channel *channel, const struct wf_inbound *inbound);
/* It has come, or the channel lets go of its claim: not `whole`. The claim is still there. */
void wf_watched_received(struct wf_channel *channel, bool whole);

#endif
