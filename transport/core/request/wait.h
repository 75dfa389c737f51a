/*
 * wait.h: how a caller waits. With a shared worker it takes the drive token and makes the progress itself: spinning for
 * `spin_us` after the last event, then asleep in the engine. When another thread drives it sleeps until one of its
 * requests ends or the token is free.
 */
#ifndef WF_CORE_REQUEST_WAIT_H
#define WF_CORE_REQUEST_WAIT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "core/drive/worker.h"
#include "core/ground/spin.h"
#include "core/ground/world.h"

struct weft_request;

/* Who waits in a context, and for what. Owner: the context. */
struct wf_waiting {
    struct wf_world *world;
    struct wf_crew *crew;
    _Atomic uint64_t requests_out; /* requests not yet tested to their end */
    pthread_mutex_t lock;          /* what follows, and every request's `waiter` */
    struct wf_list waiters;        /* threads asleep until a completion or a free drive token */
    struct wf_list poked;          /* of these, the ones whose request has ended and who are still to be woken */
    struct wf_list signals;        /* queues whose descriptor is to be brought up to date */
    _Atomic int waiter_count;
    struct wf_spin caller_spin; /* of callers who wait for workers */
    struct wf_list queues;      /* all; world.lock */
};

void wf_waiting_init(struct wf_waiting *waiting, struct wf_crew *crew);
void wf_waiting_fini(struct wf_waiting *waiting);

/* A request has just ended, session lock held. True if a thread sleeps for it: wf_wait_wake() is to be called once the
 * lock is released. */
bool wf_wait_completed(struct wf_waiting *waiting, struct weft_request *request);

/* Wakes the threads, and brings the descriptors of the queues up to date, that ended requests ask for. No session lock
 * held: it costs system calls. */
void wf_wait_wake(struct wf_waiting *waiting);

/* The drive token is free: wakes a sleeping caller, who may want it. True if there was one. */
bool wf_wait_token_free(struct wf_waiting *waiting);

#endif
