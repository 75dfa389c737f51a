/*
 * session.h: this context and one other, joined by channels over all rails.
 *
 * It holds a part for each room of the core, written in that room alone; `guard` has the lock that guards them all
 * (core/ground/guard.h).
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
#include "core/request/request.h"
#include "core/session/life.h"
#include "core/session/loss.h"
#include "core/session/route.h"
#include "core/session/sessions.h"
#include "weft.h"

struct wf_session {
    struct wf_link link;        /* wf_sessions.all; world.lock */
    struct wf_link accept_link; /* wf_sessions.accepted; world.lock */
    struct wf_sessions *sessions;
    struct weft_peer peer;
    bool announced;   /* the user has been told of it (connect, accept); world.lock */
    bool user_has_it; /* the user has asked for it, or has its handle; session lock */
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

/* A session in JOINING with one reference (the door's); in the context's list. NULL: memory. */
struct wf_session *wf_session_create(struct wf_sessions *sessions, bool dialer, const struct wf_hello *peer_hello,
                                     uint64_t id, const uint8_t secret[WF_SECRET_BYTES]);

/* Fills our HELLO but for session and secret. */
void wf_session_hello(const struct wf_sessions *sessions, struct wf_hello *hello);

/* Room for `count` channels. 0 or -ENOMEM. */
int wf_session_expect(struct wf_session *session, int count);

/* Is there a place for this incarnation? -EAGAIN: an older one has to let go first, and is told to. -EALREADY: there is
 * a newer one, or the session takes none any more. No lock. */
int wf_session_may_join(struct wf_session *session, const struct wf_join *join);

/* A channel has proved itself on `fd`: hands its halves to their workers; UP when all others are joined
 * or missed. No lock. */
int wf_session_join(struct wf_session *session, const struct wf_join *join, uint64_t granted_frames,
                    uint64_t granted_bytes, int fd);

/* The dialer's first attempt at a channel has failed: from here on it is a lost one, which is dialled again and which
 * the peer hears of (DOWN). UP when it was the last and another is up. 0 or -ENOMEM. No lock. */
int wf_session_miss(struct wf_session *session, const struct wf_join *join, int code);

/* Drops one reference; the door frees a dead session after the last. No lock held. */
void wf_session_release(struct wf_session *session);

/* Dead, and nobody refers to it. No lock held. */
bool wf_session_is_over(struct wf_session *session);

/* Frees it. world.lock held (or the context's threads are gone). */
void wf_session_destroy(struct wf_session *session);

/* --- with the lock held --- */

/* UP once every channel is joined or missed, and one is up. */
void wf_session_check_joined(struct wf_session *session);

/* -errno and text when nothing new can be started, else 0. */
int wf_session_usable(const struct wf_session *session);

/* Something may be sendable: kicks the workers with an idle send half. `self`: the worker whose token is held. */
void wf_session_kick(struct wf_session *session, struct wf_worker *self);

/* Closing has been asked for; `closing`: the request that ends with the session, or NULL. */
void wf_session_dismiss(struct wf_session *session, struct weft_request *closing);

/* The peer has proved itself for a channel: its process lives. */
void wf_session_called(struct wf_session *session);

/* Starts an orderly close: requests end in -ESHUTDOWN, BYE follows once everything is acknowledged. */
void wf_session_start_close(struct wf_session *session);

/* Is the send half of an express channel idle? Then it can take a message at once, for all that can be seen without the
 * token. */
bool wf_session_has_idle_express(const struct wf_session *session);
/* Is there anything of the session's that an idle send half could take? What is a channel's own has been kicked for. */
bool wf_session_has_work(const struct wf_session *session);

/* The peer has closed the session, and there is no channel for its goodbye. */
void wf_session_peer_closed(struct wf_session *session);

/* Moves an orderly close on. */
void wf_session_check_close(struct wf_session *session);

/* Deadlines of requests and of the peer; returns when to come again. Takes the lock itself. */
int64_t wf_session_tick(struct wf_session *session, int64_t now_ns);

/* --- with the token of `worker` --- */

/* Everything the session has for this worker: starts, sends, redirects, lets go. Takes the lock itself. */
void wf_session_pump(struct wf_session *session, struct wf_worker *worker);

/* After posting: sends from the caller's own thread if the worker is free, else leaves a notice. No lock held. */
void wf_session_push(struct wf_session *session);

/* The same with the lock held, which is released. `copied`: a small message that is in no queue yet, or NULL. */
void wf_session_unlock_and_push(struct wf_session *session, struct wf_outbound *copied);

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
