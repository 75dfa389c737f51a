/*
 * holders.h: what keeps a session from ending, and from being freed. At its end it waits for the last holder; once it
 * is dead, for the last reference.
 *
 * All with the session's lock held.
 */
#ifndef WF_CORE_GROUND_HOLDERS_H
#define WF_CORE_GROUND_HOLDERS_H

#include "core/ground/guard.h"

/* Adds a reference. A session that has references is not freed. */
static inline void wf_guard_refer(struct wf_guard *guard)
{
    guard->references += 1;
}

/* Drops a reference that is never the last: the caller's handle has another one. */
static inline void wf_guard_unrefer(struct wf_guard *guard)
{
    guard->references -= 1;
}

/* Drops one reference, which may be the last. */
void wf_guard_drop(struct wf_guard *guard);

/* Drops one reference and the lock; the door frees a dead session after the last. */
void wf_guard_unlock_and_release(struct wf_guard *guard);

/* A holder (see `holders`) begins to use a user's memory. */
static inline void wf_guard_hold(struct wf_guard *guard)
{
    guard->holders += 1;
}

/* A holder has ended. After the last one, ops->unheld is called in a FAILED or CLOSING session. */
void wf_guard_let_go(struct wf_guard *guard);

#endif
