/*
 * session.h: this context and one other, joined by channels over all rails.
 *
 * A session holds a part for each room of the core; only that room writes the part. The lock in `guard` protects all
 * parts (core/ground/guard.h).
 */
#ifndef WF_CORE_SESSION_SESSION_H
#define WF_CORE_SESSION_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/pool.h"
#include "core/channel/channel.h"
#include "core/channel/lines.h"
#include "core/device/device.h"
#include "core/device/transit.h"
#include "core/drive/worker.h"
#include "core/ground/guard.h"
#include "core/ground/terms.h"
#include "core/message/desk.h"
#include "core/request/book.h"
#include "core/request/request.h"
#include "core/session/life.h"
#include "core/session/loss.h"
#include "core/session/route.h"
#include "core/session/sessions.h"
#include "core/session/user.h"
#include "weft.h"

struct wf_session {
    struct wf_link link;          /* wf_sessions.all; world.lock */
    struct wf_link redial_link;   /* wf_door.redials_wait; the door's thread */
    struct wf_visit *visited_too; /* that of the dial which waits for the session; the door's thread */
    struct wf_sessions *sessions;
    struct weft_peer peer;
    struct wf_user user;
    uint64_t id;
    uint8_t secret[WF_SECRET_BYTES];
    struct wf_guard guard;
    struct wf_terms terms;
    struct wf_kicks kicks;
    struct wf_book book;
    struct wf_shares shares;
    struct wf_lines lines;
    struct wf_desk desk;
    struct wf_loss loss;
    struct wf_life life;
};

/* A session in JOINING, in the context's list, with one reference: the door's. NULL: no memory. */
struct wf_session *wf_session_create(struct wf_sessions *sessions, bool dialer, const struct wf_hello *peer_hello,
                                     uint64_t id, const uint8_t secret[WF_SECRET_BYTES]);

/* Fills the HELLO of this side, all but session and secret. `theirs`: the peer's HELLO, which says how many rails it
 * takes; NULL: this side dials, and does not know yet. */
void wf_session_hello(const struct wf_sessions *sessions, const struct wf_hello *theirs, struct wf_hello *hello);

/* How many rails of this side, and pairs of rails, the peer takes. If this side has more, a fallback says so. */
int wf_session_rails_taken(const struct wf_sessions *sessions, const struct wf_hello *theirs);

/* The user has the handle from now on, and may be told what happens to it. No lock. */
void wf_session_hand_over(struct wf_session *session);

/* Drops one reference. The door frees a DEAD session without references. No lock held. */
void wf_session_release(struct wf_session *session);

/* Is the session DEAD, with no reference left? No lock held. */
bool wf_session_is_over(struct wf_session *session);

/* Frees the session. world.lock held (or the context's threads are gone). */
void wf_session_destroy(struct wf_session *session);

/* --- with the lock held --- */

/* 0 if a new operation may start, else -errno. */
int wf_session_usable(const struct wf_session *session);

/* Why wf_session_usable() is negative, in one line; valid as long as the lock is held. */
const char *wf_session_why_unusable(const struct wf_session *session);

/* Kicks the worker of each idle send half that has something to send. `self`: the worker whose token is held. */
void wf_session_kick(struct wf_session *session, struct wf_worker *self);

/* The user, or the end of the context, closes the session; `closing`: the request that ends with it, or NULL. */
void wf_session_dismiss(struct wf_session *session, struct weft_request *closing);

/* Starts an orderly close: requests end in -ESHUTDOWN, BYE follows once everything is acknowledged. */
void wf_session_start_close(struct wf_session *session);

/* Is the send half of an express channel idle that carries the traffic class? Then it can probably take a message at
 * once; only the token tells for sure. */
bool wf_session_has_idle_express(const struct wf_session *session, unsigned traffic);
/* Has the session anything that an idle send half could take? Does not ask for frames that one channel alone must send
 * (STATE, PING, PONG, BYE): their worker was kicked when they became due. */
bool wf_session_has_work(const struct wf_session *session);

/* The peer has closed the session, and no channel is left to bring its BYE. */
void wf_session_peer_closed(struct wf_session *session);

/* Takes the next step of an orderly close, if it is possible. */
void wf_session_check_close(struct wf_session *session);

/* Checks the deadlines of requests and of the peer; returns the time of the next check. Takes the lock itself. */
int64_t wf_session_tick(struct wf_session *session, int64_t now_ns);

/* --- with the token of `worker` --- */

/* Does all work of the session for this worker: channels start, send, redirect and let go. Takes the lock itself. */
void wf_session_pump(struct wf_session *session, struct wf_worker *worker);

/* After an operation was posted: sends from the caller's thread if the worker is free, else leaves a notice. No lock
 * held. */
void wf_session_push(struct wf_session *session);

/* The same, called with the lock held; releases it. `fresh`: a small or brief message that is in no queue yet, or NULL.
 */
void wf_session_unlock_and_push(struct wf_session *session, struct wf_outbound *fresh);

static inline struct wf_session *wf_session_of(const struct wf_channel *channel)
{
    return WF_CONTAINER(channel->lines, struct wf_session, lines);
}

static inline struct wf_session *wf_session_at(const struct wf_desk *desk)
{
    return WF_CONTAINER(desk, struct wf_session, desk);
}

static inline void wf_session_lock(struct wf_session *session)
{
    wf_guard_lock(&session->guard);
}

static inline void wf_session_unlock(struct wf_session *session)
{
    wf_guard_unlock(&session->guard);
}

#endif
