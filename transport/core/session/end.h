/*
 * end.h: how a session ends: closed by one of the two, or failed; and what becomes of the requests that it finds.
 * Session lock held.
 */
#ifndef WF_CORE_SESSION_END_H
#define WF_CORE_SESSION_END_H

#include "core/request/request.h"

struct wf_session;

/* PEER_CLOSE. */
extern const struct wf_request_ops wf_closing_ops;

/* Its guard has failed (wf_guard_ops.failed). */
void wf_session_failed(struct wf_session *session);

/* Nothing can touch any request's memory any more: every one that is left ends now (wf_guard_ops.unheld). */
void wf_session_unheld(struct wf_session *session);

#endif
