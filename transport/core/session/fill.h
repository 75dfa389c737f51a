/*
 * fill.h: gathers the frames that a session has to send into a send half's next batch. Session lock and token held.
 */
#ifndef WF_CORE_SESSION_FILL_H
#define WF_CORE_SESSION_FILL_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/hello.h"

struct wf_channel;
struct wf_outbound;
struct wf_session;

/* Is there anything to send: of the session, for channels of this group; of the session or the channel itself, for this
 * channel? True also if the window does not let it go now. */
bool wf_session_wants(const struct wf_session *session, int group);
bool wf_channel_wants(const struct wf_channel *channel);
/* Is there anything that the channel would be offered? */
bool wf_channel_has_offers(const struct wf_channel *channel);
/* The pairs of rails whose channels of this group there is something for, as bits. */
uint64_t wf_session_pairs(const struct wf_session *session, int group);
/* Nothing is to be sent: marks the send half as idle, so that new work kicks its worker. Returns false. */
bool wf_channel_rest(struct wf_channel *channel);
/* Gathers the next batch into the send operation; true when there is something to post. */
bool wf_channel_fill(struct wf_channel *channel);
/* Makes a batch of this one message, which is small or brief and in no queue. The send half is idle. False: other
 * messages come first, or it must wait; nothing has changed. */
bool wf_channel_take_fresh(struct wf_channel *channel, struct wf_outbound *outbound);

#endif
