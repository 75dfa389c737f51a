/*
 * entry.h: how a channel becomes a part of its session: planned, missed, or joined, with its payload stream parked
 * before; and what the door must know of the session first.
 */
#ifndef WF_CORE_SESSION_ENTRY_H
#define WF_CORE_SESSION_ENTRY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

struct wf_greeting;
struct wf_join;
struct wf_session;

/* The peer's GREETING has come, or is to come (wf_terms.greets) and has not come yet: then no channel may join. By the
 * door's thread. */
int wf_session_take_greeting(struct wf_session *session, const struct wf_greeting *greeting); /* 0 or -ENOMEM */
bool wf_session_awaits_greeting(const struct wf_session *session);

/* Room for `count` channels of each traffic class. 0 or -ENOMEM. */
int wf_session_expect(struct wf_session *session, int count);

/* May this incarnation of the channel join? 0: yes. -EAGAIN: an older incarnation must let go first, and was told to.
 * -EALREADY: this incarnation or a newer one has joined, or the session takes no more channels. No lock. */
int wf_session_may_join(struct wf_session *session, const struct wf_join *join);

/* A channel has proved itself on `fd`: gives its halves to their workers. The session is UP when all other channels are
 * joined or missed. 0, -ENOMEM, or -EALREADY when the session has ended meanwhile. No lock. */
int wf_session_join(struct wf_session *session, const struct wf_join *join, uint64_t granted_frames,
                    uint64_t granted_bytes, int fd);

/* May the payload stream of a channel come to rest here? 0, or -EALREADY: the session takes no more. No lock. */
int wf_session_may_park(struct wf_session *session);
/* The payload stream of a device channel has proved itself on `fd`: leads it to the GPU if payload comes on it, and
 * keeps it for the channel. 0, or a negative errno with its reason; then `fd` is still the caller's. No lock. */
int wf_session_park(struct wf_session *session, const struct wf_join *join, int fd, struct wf_status *status);

/* The dialer's first attempt at a channel has failed: the channel counts as lost. It is dialled again, and DOWN tells
 * the peer. The session is UP if no other channel is to come and one is up. 0 or -ENOMEM. No lock. */
int wf_session_miss(struct wf_session *session, const struct wf_join *join, int code);

/* Dialer: a channel of a class above 0 is to be dialled for the first time, as one that was lost is dialled again. 0 or
 * -ENOMEM. No lock. */
int wf_session_plan(struct wf_session *session, const struct wf_join *join);

/* The peer has proved itself for a channel, so its process lives: notes the time. Session lock held. */
void wf_session_called(struct wf_session *session);

/* Makes the session UP once every channel is joined or missed, and one is up. Session lock held. */
void wf_session_check_joined(struct wf_session *session);

#endif
