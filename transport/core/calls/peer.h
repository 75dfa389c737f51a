/*
 * peer.h: the step behind weft_peer_close(), for the end of a context, and for tests that must not wait.
 */
#ifndef WF_CORE_CALLS_PEER_H
#define WF_CORE_CALLS_PEER_H

struct weft_request;
struct wf_session;

/* The step behind weft_peer_close(): a request that ends when the session is dead. NULL: no memory for it. Takes the
 * session's lock itself, and keeps the reference of the user's handle. */
struct weft_request *wf_session_ask_to_close(struct wf_session *session);

#endif
