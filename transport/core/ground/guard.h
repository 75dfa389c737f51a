/*
 * guard.h: a session's lock and state, and who holds it: all that the rooms below session/ know of a session.
 *
 * One short lock guards everything that the halves, the callers and the door share: connections, matcher, messages,
 * queues, counters. It is taken once per batch and never held across a system call that moves data or waits.
 *
 * Fields that other rooms may read, with the lock held: world, peer_name (both: always), state, error, batch_ns,
 * peer_closing.
 */
#ifndef WF_CORE_GROUND_GUARD_H
#define WF_CORE_GROUND_GUARD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "core/ground/world.h"

struct wf_guard;

enum wf_session_state {
    WF_SESSION_JOINING, /* channels are being joined */
    WF_SESSION_UP,
    WF_SESSION_CLOSING, /* BYE is sent or due; channels end in an orderly way */
    WF_SESSION_FAILED,  /* halves let go; then every request ends with `error` */
    WF_SESSION_DEAD,    /* no channel, no request under way */
};

struct wf_worker;

/* What the rooms below session/ ask of the session. All but `push` with its lock held. */
struct wf_guard_ops {
    /* `state` is FAILED and `error` says why: channels let go, then requests complete. */
    void (*failed)(struct wf_guard *guard);
    /* Nothing touches any request's memory any more, and the session is FAILED or CLOSING: it is over. */
    void (*unheld)(struct wf_guard *guard);
    /* Something may be sendable: idle send halves hear of it. `self`: the worker whose token is held, or NULL. */
    void (*kick)(struct wf_guard *guard, struct wf_worker *self);
    /* After an operation was posted or cancelled, no lock held: sends what can be sent, or leaves a notice. */
    void (*push)(struct wf_guard *guard);
};

/* Owner: the session, whose lock this is. */
struct wf_guard {
    struct wf_world *world;
    const struct wf_guard_ops *ops;
    const char *peer_name; /* "host (addr:port)" */
    pthread_mutex_t lock;
    bool work_came; /* set when the end of one operation made another sendable; the pump kicks idle channels, clears it
                     */
    int64_t batch_ns; /* while what a receive brought is worked through: when it came; else 0 */
    bool wake_due;    /* requests have ended whose threads or queues are told once the lock is released */
    enum wf_session_state state;
    struct wf_status error; /* why it FAILED */
    int holders;         /* all that may still touch a user's memory: attached channel halves, device copies, landings;
                          * at 0 a FAILED or CLOSING session is DEAD */
    bool peer_closing;   /* BYE(done) was received */
    uint32_t references; /* requests not yet collected, the user's handle, the door: freed at 0 when DEAD */
};

void wf_guard_init(struct wf_guard *guard, struct wf_world *world, const struct wf_guard_ops *ops,
                   const char *peer_name);
void wf_guard_fini(struct wf_guard *guard);

static inline void wf_guard_lock(struct wf_guard *guard)
{
    pthread_mutex_lock(&guard->lock);
}

/* Then wakes the threads whose requests have ended meanwhile: the session may be gone by then, the world is not. */
static inline void wf_guard_unlock(struct wf_guard *guard)
{
    struct wf_world *world = guard->world;
    bool wake_due = guard->wake_due;
    guard->wake_due = false;
    pthread_mutex_unlock(&guard->lock);
    if (wake_due)
        world->wake(world->waiting);
}

/* --- with the lock held --- */

/* One more, or one less, that keeps the session from being freed. */
static inline void wf_guard_refer(struct wf_guard *guard)
{
    guard->references += 1;
}

/* Never the last: the caller's handle holds the session. */
static inline void wf_guard_unrefer(struct wf_guard *guard)
{
    guard->references -= 1;
}

/* Drops one reference and the lock; the door frees a dead session after the last. */
void wf_guard_unlock_and_release(struct wf_guard *guard);

/* Something may touch a user's memory from now on, or does not any more. */
static inline void wf_guard_hold(struct wf_guard *guard)
{
    guard->holders += 1;
}

void wf_guard_let_go(struct wf_guard *guard);

/* The end of one operation has made another sendable. */
static inline void wf_guard_stir(struct wf_guard *guard)
{
    guard->work_came = true;
}

/* Was it, since the last answer? */
static inline bool wf_guard_take_stir(struct wf_guard *guard)
{
    bool stirred = guard->work_came;
    guard->work_came = false;
    return stirred;
}

/* Requests have ended whose threads or queues are to be told. */
static inline void wf_guard_wake(struct wf_guard *guard, bool due)
{
    guard->wake_due |= due;
}

/* What a receive brought is worked through from now on: it came at `now_ns`. 0: that is over. */
static inline void wf_guard_batch(struct wf_guard *guard, int64_t now_ns)
{
    guard->batch_ns = now_ns;
}

/* BYE(done) of the peer has come. */
static inline void wf_guard_peer_closes(struct wf_guard *guard)
{
    guard->peer_closing = true;
}

static inline void wf_guard_enter(struct wf_guard *guard, enum wf_session_state state)
{
    guard->state = state;
}

/* Ends everything with an error. Only the first call counts. */
void wf_guard_fail(struct wf_guard *guard, int code, const char *format, ...)
    __attribute__((cold, format(printf, 3, 4)));

#endif
