/*
 * silence.h: rails on which nothing moves any more, and a peer that does not answer. Session lock held.
 */
#ifndef WF_CORE_SESSION_SILENCE_H
#define WF_CORE_SESSION_SILENCE_H

#include <stdint.h>

struct wf_session;

/* Asks for a sign of life on every rail. */
void wf_session_ask_all(struct wf_session *session);

/* Looks for silent rails; returns when to look again. */
int64_t wf_session_survey(struct wf_session *session, int64_t now_ns);

/* The peer is given up: names it, the rails, and what came last. */
void wf_session_give_up(struct wf_session *session, int64_t now_ns, int code, const char *what);

/* At the end: channels on which the goodbye of the others does not come are lost. Returns when to look again. */
int64_t wf_session_check_stragglers(struct wf_session *session, int64_t now_ns);

/* With no channel left: fails the session in its time. Returns when that is. */
int64_t wf_session_check_alone(struct wf_session *session, int64_t now_ns);

#endif
