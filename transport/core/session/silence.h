/*
 * silence.h: finds rails on which no bytes move any more, and a peer that does not answer. Session lock held.
 */
#ifndef WF_CORE_SESSION_SILENCE_H
#define WF_CORE_SESSION_SILENCE_H

#include <stdbool.h>
#include <stdint.h>

struct wf_channel;
struct wf_session;

/* Was the channel dialled again, and has no byte come on it since? Then the proof may not have reached the peer, which
 * knows nothing of this incarnation: the PING on it is not answered. */
bool wf_channel_is_unproven(const struct wf_channel *channel);

/* No frame on it has been acknowledged for long: it is lost, and the log says where its bytes are. */
void wf_channel_stands_still(struct wf_channel *channel);

/* Sends a PING on every rail. */
void wf_session_ask_all(struct wf_session *session);

/* Looks for silent rails; returns when to look again. */
int64_t wf_session_survey(struct wf_session *session, int64_t now_ns);

/* Gives the peer up: fails the session. The error text names the peer, the rails, and when bytes last came. */
void wf_session_give_up(struct wf_session *session, int64_t now_ns, int code, const char *what);

/* At the end of a session: loses channels on which BYE has not come, or that have not ended, some time after the last
 * BYE on another channel. Returns when to look again. */
int64_t wf_session_check_stragglers(struct wf_session *session, int64_t now_ns);

/* With no channel left: fails the session when its time is over. Returns when to look again. */
int64_t wf_session_check_alone(struct wf_session *session, int64_t now_ns);

#endif
