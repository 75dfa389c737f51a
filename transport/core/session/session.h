/*
 * session.h: this context and one other, joined by channels over all rails.
 *
 * One short lock guards everything the halves, the callers and the door share: connections, matcher, landings, queues,
 * counters. It is taken once per batch and never held across a system call.
 */
#ifndef WF_CORE_SESSION_SESSION_H
#define WF_CORE_SESSION_SESSION_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/pool.h"
#include "core/channel/channel.h"
#include "core/channel/lines.h"
#include "core/device/device.h"
#include "core/drive/worker.h"
#include "core/ground/counter.h"
#include "core/ground/guard.h"
#include "core/ground/terms.h"
#include "core/message/desk.h"
#include "core/message/inbound.h"
#include "core/request/request.h"
#include "core/request/wait.h"
#include "core/session/resend.h"
#include "core/session/spread_plan.h"
#include "weft.h"
#include "wire/finished.h"

/* The handle the user has. */
struct weft_peer {
    struct wf_session *session;
    char name[WF_NAME_BYTES + 72]; /* "host (addr:port)" */
};

/* What lost channels have left. Owner: session lock. */
struct wf_loss {
    struct wf_strays strays[2]; /* express, bulk */
    int downs_due;              /* channels of whose end the peer is to be told */
    bool place_wanted;          /* a channel waits until another lets go of a place */
    struct wf_log_limit lost_log;
    struct wf_spread spread;
};

/* Patience: what was seen last, and when the next look is due. Owner: session lock. */
struct wf_life {
    int64_t due_ns;                   /* when the next look at deadlines should be; 0: there was none yet */
    int64_t closing_ns;               /* CLOSING: since when */
    int64_t join_by_ns;               /* JOINING: the acceptor's patience */
    int64_t alone_ns;                 /* when the last channel was lost; means something while up_count is 0 */
    uint64_t retired, retired_before; /* frames that the peer has acknowledged; when progress was last seen, */
    int64_t progress_ns;              /* and when that was */
    bool waited;                      /* something was unacknowledged at the last look */
    int64_t greeted_ns;               /* when it was given time after it had been gone */
    int64_t goodbye_ns;               /* the last BYE, or end of a stream after ours; 0: none */
    int64_t called_ns;                /* when the peer last proved itself for a channel: its process lives */
    int64_t survey_ns;                /* the next look at the rails */
    uint32_t heard_before;            /* rails that had been heard at the last one, as bits */
    int64_t ping_ns;                  /* 0: none under way */
    uint64_t ping_number;
    struct weft_request *closing; /* PEER_CLOSE request */
    bool dismissed;               /* closing has been asked for: by the user, or by the end of the context */
};

/* The sessions of a context. Owner: the context. */
struct wf_sessions {
    pthread_cond_t changed;  /* a session came up, failed or went; CLOCK_MONOTONIC; with world.lock */
    struct wf_list all;      /* every session that exists; world.lock, as the next two */
    struct wf_list accepted; /* sessions that came up and wait for weft_accept() */
    int count;
    pthread_mutex_t log_lock; /* taken after any other lock */
    struct wf_log_limit unknown_log;
};

struct wf_session {
    struct wf_link link;        /* wf_sessions.all; world.lock */
    struct wf_link accept_link; /* wf_sessions.accepted; world.lock */
    struct weft_context *context;
    struct weft_peer peer;
    bool reported; /* the user has been told of it (connect, accept); world.lock */
    bool known;    /* the user has asked for it, or has its handle; session lock */
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

void wf_sessions_init(struct wf_sessions *sessions);
void wf_sessions_fini(struct wf_sessions *sessions);

/* A session in JOINING with one reference (the door's); in the context's list. NULL: memory. */
struct wf_session *wf_session_create(struct weft_context *context, bool dialer, const struct wf_hello *peer_hello,
                                     uint64_t id, const uint8_t secret[WF_SECRET_BYTES]);

/* Fills our HELLO but for session and secret. */
void wf_session_hello(struct weft_context *context, struct wf_hello *hello);

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

/* The same with the lock held, which is released. */
void wf_session_unlock_and_release(struct wf_session *session);

/* The step behind weft_peer_close(): a request that ends when the session is dead; NULL when it is already, or cannot
 * end in an orderly way. Takes the lock itself. */
struct weft_request *wf_session_ask_to_close(struct wf_session *session);

/* Dead, and nobody refers to it. No lock held. */
bool wf_session_is_over(struct wf_session *session);

/* Frees it. context.lock held (or the context's threads are gone). */
void wf_session_destroy(struct wf_session *session);

/* --- with the lock held --- */

/* UP once every channel is joined or missed, and one is up. */
void wf_session_check_joined(struct wf_session *session);

/* Ends everything with an error: channels let go first, then requests complete. Only the first call counts. */
void wf_session_fail(struct wf_session *session, int code, const char *format, ...)
    __attribute__((cold, format(printf, 3, 4)));

/* --- loss.c --- */

/* A channel is lost: lets go, what it retained goes elsewhere, it will be dialled again. `doing`: how it showed. */
void wf_session_lost(struct wf_session *session, struct wf_channel *channel, int code, const char *doing)
    __attribute__((cold));

/* The same for a channel that was never joined: there is nothing to let go or to send again. */
void wf_channel_missed(struct wf_channel *channel, int code);

/* Is any channel of the rail up? */
bool wf_rail_is_up(const struct wf_session *session, int rail);

/* Totals may have gone down with a channel, or a new one has not heard them: all are told again. */
void wf_session_repeat_totals(struct wf_session *session);

/* The receive half has let go: nothing more is disposed of, which the peer is to be told. */
void wf_channel_tell_down(struct wf_channel *channel);

/* A claim has ended: channels that wait for a place look again. */
void wf_session_place_free(struct wf_session *session);

/* A rail has damaged so much that it is used no more; and whether it has, after a channel was lost with `code`. */
void wf_rail_retire(struct wf_session *session, int rail);
void wf_rail_check_damage(struct wf_session *session, int rail, int code);

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

/* "eth0 up, eth1 Connection timed out". */
void wf_session_describe_rails(const struct wf_session *session, char *text, size_t room);

/* Our rail `local` went down, or is back; `gone`: what was bound to its interface is lost. Takes the lock itself. */
void wf_session_rail_changed(struct wf_session *session, int local, bool down, bool gone);

/* -errno and text when nothing new can be started, else 0. */
int wf_session_usable(const struct wf_session *session);

/* Something may be sendable: kicks the workers with an idle send half. `self`: the worker whose token is held. */
void wf_session_kick(struct wf_session *session, struct wf_worker *self);
void wf_session_kick_all(struct wf_session *session, struct wf_worker *self); /* with or without the lock */

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

/* A half has let go. */
void wf_session_half_gone(struct wf_session *session);

/* Gives `charge` bytes of unsolicited credit back to the peer. */
void wf_session_settle(struct wf_session *session, uint64_t charge);

/* Deadlines of requests and of the peer; returns when to come again. Takes the lock itself. */
int64_t wf_session_tick(struct wf_session *session, int64_t now_ns);

/* --- with the token of `worker` --- */

/* Everything the session has for this worker: starts, sends, redirects, lets go. Takes the lock itself. */
void wf_session_pump(struct wf_session *session, struct wf_worker *worker);

/* After posting: sends from the caller's own thread if the worker is free, else leaves a notice. No lock held. */
void wf_session_push(struct wf_session *session);

/* The same with the lock held, which is released. `copied`: a small message that is in no queue yet, or NULL. */
void wf_session_unlock_and_push(struct wf_session *session, struct wf_outbound *copied);

static inline void wf_session_lock(struct wf_session *session)
{
    wf_guard_lock(&session->guard);
}

static inline void wf_session_unlock(struct wf_session *session)
{
    wf_guard_unlock(&session->guard);
}

#endif
