/*
 * guard.h: a session's lock, its state and its holders: all that the rooms below session/ know of a session.
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
#include "core/ground/session_state.h"
#include "core/ground/world.h"

struct wf_guard;
struct wf_worker;

/* Calls from the rooms below session/ to the session. All but `push` with its lock held. */
struct wf_guard_ops {
    /* `state` becomes FAILED, `error` says why: the channels let go, then the requests end. */
    void (*failed)(struct wf_guard *guard);
    /* `holders` fell to 0 in a FAILED or CLOSING session: nothing touches a request's memory, the session is over. */
    void (*unheld)(struct wf_guard *guard);
    /* A frame may be sendable: workers with an idle send half are kicked. `self`: the worker whose token is held, or
     * NULL. */
    void (*kick)(struct wf_guard *guard, struct wf_worker *self);
    /* An operation was posted or cancelled. No lock held: sends from the caller's thread, or kicks the worker. */
    void (*push)(struct wf_guard *guard);
    /* A connection has come that nobody waits for. NULL: nobody is told. */
    void (*news)(struct wf_guard *guard);
};

/* Owner: the session, whose lock this is. */
struct wf_guard {
    struct wf_world *world;
    const struct wf_guard_ops *ops;
    const char *peer_name; /* "host (addr:port)" */
    pthread_mutex_t lock;
    struct wf_visit visit; /* the door's next one */
    bool work_came;        /* an operation's end made more sendable; the pump kicks idle channels and clears it */
    int64_t batch_ns;      /* when the frames that are handled now were received; 0: none are handled now */
    bool wake_due;         /* requests have ended: their threads and queues are told once the lock is released */
    enum wf_session_state state;
    struct wf_status error; /* why the session is FAILED */
    int holders;         /* all that may still touch a user's memory: attached channel halves, device copies, landings;
                          * at 0 a FAILED or CLOSING session is DEAD */
    bool peer_closing;   /* the peer's BYE(done) was received */
    uint32_t references; /* of requests not yet collected, the user's handle, the door; a DEAD session is freed at 0 */
};

void wf_guard_init(struct wf_guard *guard, struct wf_world *world, const struct wf_guard_ops *ops,
                   const char *peer_name);
void wf_guard_fini(struct wf_guard *guard);

static inline void wf_guard_lock(struct wf_guard *guard)
{
    pthread_mutex_lock(&guard->lock);
}

/* Releases the lock, then wakes the threads whose requests have ended. The session may be freed by then, the world
 * not. */
static inline void wf_guard_unlock(struct wf_guard *guard)
{
    struct wf_world *world = guard->world;
    bool wake_due = guard->wake_due;
    guard->wake_due = false;
    pthread_mutex_unlock(&guard->lock);
    if (wake_due)
        world->wake(world->waiting);
}

/* Releases a lock that was taken inside that of `outer`, which stays held: what is to be told is told when `outer` is
 * released. */
static inline void wf_guard_unlock_within(struct wf_guard *guard, struct wf_guard *outer)
{
    outer->wake_due |= guard->wake_due;
    guard->wake_due = false;
    pthread_mutex_unlock(&guard->lock);
}

/* Asks the door to visit the session no later than `when_ns`. Any thread; with the session's lock or world.lock held,
 * or on the door's thread: the door takes the lock before it frees a session, so the visit is not freed meanwhile. */
static inline void wf_guard_visit(struct wf_guard *guard, int64_t when_ns)
{
    wf_alarm_by(&guard->world->alarm, &guard->visit, when_ns);
}

/* --- with the lock held --- */

/* The end of one operation made more sendable: `work_came` is set. */
static inline void wf_guard_stir(struct wf_guard *guard)
{
    guard->work_came = true;
}

/* Was `work_came` set? Clears it. */
static inline bool wf_guard_take_stir(struct wf_guard *guard)
{
    bool stirred = guard->work_came;
    guard->work_came = false;
    return stirred;
}

/* Something has come that the user may be told of. */
static inline void wf_guard_news(struct wf_guard *guard)
{
    if (guard->ops->news)
        guard->ops->news(guard);
}

/* `due`: requests have ended; wf_guard_unlock() tells their threads and queues. */
static inline void wf_guard_wake(struct wf_guard *guard, bool due)
{
    guard->wake_due |= due;
}

/* Frames that were received at `now_ns` are handled from now on. 0: they are done. */
static inline void wf_guard_batch(struct wf_guard *guard, int64_t now_ns)
{
    guard->batch_ns = now_ns;
}

/* The peer's BYE(done) was received. */
static inline void wf_guard_peer_closes(struct wf_guard *guard)
{
    guard->peer_closing = true;
}

static inline void wf_guard_enter(struct wf_guard *guard, enum wf_session_state state)
{
    guard->state = state;
}

/* 0, or why nothing more comes from the peer. */
int wf_guard_over(const struct wf_guard *guard);

/* Fails the session: all its requests end with this error. Only the first call counts. */
void wf_guard_fail(struct wf_guard *guard, int code, const char *format, ...)
    __attribute__((cold, format(printf, 3, 4)));

#endif
