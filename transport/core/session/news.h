/*
 * news.h: what the user of a context is told unasked: a peer has come, a peer has opened a connection, a peer is lost.
 *
 * A session about which something may be told is in the tray `wf_sessions.news`. It enters where its state changes, so
 * nothing is searched for; what there is to tell is read from the session itself when the user asks. So nothing is
 * told that a call has handed out meanwhile, and nothing is allocated.
 */
#ifndef WF_CORE_SESSION_NEWS_H
#define WF_CORE_SESSION_NEWS_H

#include <stdbool.h>

#include "weft.h"

struct wf_session;
struct wf_sessions;

/* Something has changed about the session. Lock held. */
void wf_session_tell(struct wf_session *session);

/* Fills up to `max` events and returns their number. `*watched`: the user has the descriptor. No lock held. */
int wf_sessions_news(struct wf_sessions *sessions, struct weft_event *events, int max, bool *watched);

#endif
