/*
 * end.h: how a session ends, closed by one side or failed, and how its requests end then. Session lock held.
 */
#ifndef WF_CORE_SESSION_END_H
#define WF_CORE_SESSION_END_H

#include <stdint.h>

#include "core/request/request.h"

struct wf_session;

/* The operations of a PEER_CLOSE request. */
extern const struct wf_request_ops wf_closing_ops;

/* The session has failed (wf_guard_ops.failed): every channel must let go. */
void wf_session_failed(struct wf_session *session);

/* The user closes the session, and the peer has not answered each CLOSE. Goes on without the answers when their time is
 * over; returns when to look again. */
int64_t wf_session_check_answers(struct wf_session *session, int64_t now_ns);

/* What a close by the user ends in when the session is dead: that either side has closed it is no error. */
int wf_session_close_status(const struct wf_session *session);

/* Nothing can touch a user's memory any more (wf_guard_ops.unheld): every request that is left ends now. */
void wf_session_unheld(struct wf_session *session);

#endif
