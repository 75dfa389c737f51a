/*
 * redial.h: lost channels are dialled again, in the background, by the side that dialled them first. In the door's
 * thread. Every attempt is an incarnation of its own, so the peer can tell it from any earlier attempt.
 */
#ifndef WF_CORE_JOIN_REDIAL_H
#define WF_CORE_JOIN_REDIAL_H

#include "core/join/talk.h"

/* Dials the channels that are due; returns the time of the next call. No session lock. */
int64_t wf_redial_tick(struct wf_door *door, struct wf_session *session, int64_t now_ns);

/* A session is gone that may have had the turn to dial: the one that has waited longest has it now. */
void wf_redial_pass_on(struct wf_door *door);

/* The attempt has failed. `reason`: of the peer's DENY, with its proof if it needs one; 0: none. No session lock. */
void wf_redial_failed(struct wf_talk *talk, int code, int reason, const char *text);

/* The peer takes this payload stream at another port. No session lock. */
void wf_redial_sent_on(struct wf_talk *talk, uint16_t port);

/* The conversation is over, with success or without. No session lock. */
void wf_redial_over(struct wf_talk *talk);

#endif
