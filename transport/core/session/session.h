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
#include "core/calls/context.h"
#include "core/channel/channel.h"
#include "core/device/device.h"
#include "core/drive/worker.h"
#include "core/ground/counter.h"
#include "core/message/inbound.h"
#include "core/request/wait.h"
#include "core/session/resend.h"
#include "core/session/spread_plan.h"
#include "weft.h"
#include "wire/finished.h"

#define WF_HASH_SIZE 1024
#define WF_CONNECTIONS_MAX 65536            /* of one session at a time */
#define WF_INTRODUCTIONS_SHARED (1u << 20)  /* that its connections have been promised, beside */
#define WF_INTRODUCTIONS_FEW 16             /* that each of them has: two are enough for all that waits to end */
#define WF_CHANNELS_MAX (WF_RAILS_MAX * 65) /* an express and up to 64 bulk channels for each pair of rails */

enum wf_session_state {
    WF_SESSION_JOINING, /* channels are being joined */
    WF_SESSION_UP,
    WF_SESSION_CLOSING, /* BYE is sent or due; channels end in an orderly way */
    WF_SESSION_FAILED,  /* halves let go; then every request ends with `error` */
    WF_SESSION_DEAD,    /* no channel, no request under way */
};

/* A pair of rails, ours and the peer's. Counters: relaxed, written by the halves. */
struct wf_session_rail {
    int local; /* index of context.rails; -1: an address that is no rail */
    char name[64];
    struct sockaddr_storage from, to; /* `from` with port 0 */
    bool device_bound;
    _Atomic uint64_t sent_bytes, received_bytes, resent_bytes, stalls, failures, damaged, retransmits;
    bool retired;  /* session lock: it has damaged too much */
    int last_code; /* session lock: why a channel of it was lost last; 0: none was */
};

/* The handle the user has. */
struct weft_peer {
    struct wf_session *session;
    char name[WF_NAME_BYTES + 72]; /* "host (addr:port)" */
};

struct wf_session {
    struct wf_link link;        /* context.sessions; context.lock */
    struct wf_link accept_link; /* context.accepted; context.lock */
    struct weft_context *context;
    struct weft_peer peer;
    bool dialer;
    bool reported; /* the user has been told of it (connect, accept); context.lock */
    bool known;    /* the user has asked for it, or has its handle; session lock */
    uint64_t id;
    uint64_t peer_boot;
    uint8_t secret[WF_SECRET_BYTES];
    struct wf_limits limits; /* the peer's */
    uint32_t chunk;          /* most payload of one of our frames: what both sides allow */
    uint32_t eager, first_burst;

    int rail_count;
    struct wf_session_rail rails[WF_RAILS_MAX];
    int channel_count, joined;
    int missed;                           /* acceptor: channels that were never joined, and the dialer has lost */
    int up_count;                         /* channels that are up */
    struct wf_channel **channels;         /* by id; entries NULL until joined, or missed by the dialer */
    uint32_t *told;                       /* by id: the highest incarnation that the peer has told us it has lost */
    struct wf_kick kicks[WF_WORKERS_MAX]; /* by worker */

    pthread_mutex_t lock;
    bool stirred;     /* the end of an operation has made work of another kind */
    int64_t batch_ns; /* while what a receive brought is worked through: when it came; else 0 */
    bool wake_due;    /* requests have ended whose threads or queues are told once the lock is released */
    enum wf_session_state state;
    struct wf_status error;       /* why it FAILED */
    int halves;                   /* attached halves; at 0 a FAILED or CLOSING session is DEAD */
    bool peer_closing;            /* BYE(done) was received */
    struct weft_request *closing; /* PEER_CLOSE request */
    uint32_t references;          /* requests not yet collected, the user's handle, the door: freed at 0 when DEAD */
    bool dismissed;               /* closing has been asked for: by the user, or by the end of the context */

    struct wf_list requests; /* not completed */
    struct wf_list deadlines;
    struct wf_list bulk_ready, express_ready; /* connections that have something for such a channel */
    struct wf_list todo_connections, todo_inbounds, todo_outbounds;
    struct wf_list backlog;   /* opened by the peer, not accepted by the user */
    struct wf_list orphans;   /* opened by the peer, no such endpoint yet */
    struct wf_list acceptors; /* ACCEPT requests */
    struct wf_list connection_hash[WF_HASH_SIZE], inbound_hash[WF_HASH_SIZE], outbound_hash[WF_HASH_SIZE];
    struct wf_list notes_due;                       /* connections with notifications to hand out */
    _Atomic bool slots_told;                        /* those may look for slots again */
    struct wf_list stage_waiting;                   /* messages in device memory that no slot is free for */
    struct wf_device_share *shares[WF_DEVICES_MAX]; /* by device index */
    uint32_t device_bells;       /* workers, by index, whose devices have something to start for this session */
    struct wf_list regions_used; /* what the peer is doing with our registrations */
    struct wf_list pieces;       /* blocks of pieces that exist */
    uint32_t answers;            /* to refusals of what has ended, not sent yet */
    uint64_t upload_bytes;       /* of lists that the peer is sending, or has sent and not used */
    uint64_t list_bytes;         /* of these, and of those that its operations use */
    struct wf_list posted_hash[WF_HASH_SIZE], unexpected_hash[WF_HASH_SIZE];
    struct wf_finished closed_numbers[2]; /* closed connections: opened by the acceptor, by the dialer */
    uint32_t next_connection;             /* index of the next one we open */
    uint32_t connection_count;
    uint32_t introductions_taken; /* by connections, of WF_INTRODUCTIONS_SHARED */
    uint64_t next_order;          /* of posted receives */
    struct wf_pool request_pool, inbound_pool, outbound_pool, slot_pool, transit_pool;
    struct wf_pool range_pool; /* limited to as many as frames may be under way, of all channels */
    struct wf_blocks blocks;

    /* unsolicited credit, in charged bytes: absolute totals */
    uint64_t unsolicited_spent, unsolicited_limit;  /* ours, as sender */
    uint64_t unsolicited_settled, unsolicited_told; /* the peer's: given back; limit as last told */
    bool credit_due;
    uint64_t waiting;     /* bytes that may be sent and that no channel has taken */
    uint32_t bulk_frames; /* DATA frames for bulk channels that the peer has not acknowledged */
    uint32_t choosy;      /* connections that do not take every rail */

    struct wf_strays strays[2]; /* express, bulk: what lost channels have left */
    int downs_due;              /* channels of whose end the peer is to be told */
    bool place_wanted;          /* a channel waits until another lets go of a place */
    struct wf_log_limit lost_log;
    struct wf_spread spread;
    int bulk_count; /* bulk channels: with more than one the work is spread by rate */

    _Atomic int64_t heard_ns;         /* last byte from the peer */
    uint64_t denied;                  /* writes and reads of the peer that were refused for what they name */
    _Atomic uint64_t moved;           /* payload bytes, both directions: the progress an error text tells of */
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
};

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
    pthread_mutex_lock(&session->lock);
}

/* Then wakes those whose requests have ended meanwhile: the session may be gone by then, its context is not. */
static inline void wf_session_unlock(struct wf_session *session)
{
    struct weft_context *context = session->context;
    bool wake_due = session->wake_due;
    session->wake_due = false;
    pthread_mutex_unlock(&session->lock);
    if (wake_due)
        wf_wait_wake(context);
}

/* The bucket for (connection, value). Values that follow one another, as numbers do, have neighbouring buckets, which
 * share cache lines; the upper bits, where some keep what is theirs of a tag, count too. */
static inline unsigned wf_hash(uint32_t connection, uint64_t value)
{
    uint64_t upper = (value >> 10 ^ (uint64_t)connection << 32) * 0x9E3779B97F4A7C15ull;
    return (unsigned)(value + (upper >> 54)) % WF_HASH_SIZE;
}

#endif
