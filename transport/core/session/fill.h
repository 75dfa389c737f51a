/*
 * fill.h: what the session has to say, gathered for a send half that can take it. Session lock and token held.
 */
#ifndef WF_CORE_SESSION_FILL_H
#define WF_CORE_SESSION_FILL_H

#include <stdbool.h>

#include "wire/hello.h"

struct wf_channel;
struct wf_outbound;
struct wf_session;

/* Has the session anything for idle channels of a kind; has this send half, for itself or the session? Whether or not
 * it may go now. */
bool wf_session_wants(const struct wf_session *session, enum wf_channel_kind kind);
bool wf_channel_wants(const struct wf_channel *channel);
/* It has not: new work needs a kick. Returns false. */
bool wf_channel_rest(struct wf_channel *channel);
/* Gathers the next batch into the operation; true when there is something to post. */
bool wf_channel_fill(struct wf_channel *channel);
/* The whole operation is this message, which is a copy, small and in no queue; the send half is idle. False: others
 * come first, or it has to wait; nothing has changed. */
bool wf_channel_take_copied(struct wf_channel *channel, struct wf_outbound *outbound);

#endif
