/*
 * wait.h: how a caller waits. With a shared worker the caller takes the drive token and makes the progress itself: it
 * spins for `spin_us` after the last event, then sleeps in the engine. While another thread drives, the caller sleeps
 * until one of its requests ends or the token is free.
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
struct wf_tray;

/* The threads and queues of a context that wait for requests. Owner: the context. */
struct wf_waiting {
    struct wf_world *world;
    struct wf_crew *crew;
    _Atomic uint64_t requests_out; /* requests that were not yet given back */
    pthread_mutex_t lock;          /* guards the next five fields, and every request's `waiter` */
    struct wf_list waiters;        /* threads asleep until a completion or a free drive token */
    struct wf_list poked;          /* waiters that were told of an ended request and are still to be woken */
    bool bell_due;                 /* one of them sleeps in the engine of the callers' own worker */
    struct wf_list signals;        /* trays whose descriptor must be updated */
    struct wf_tray *lent;          /* of the queue whose user drives the callers' own worker; NULL: none does */
    _Atomic int waiter_count;
    struct wf_spin caller_spin; /* shared by callers that wait for workers */
    struct wf_list queues;      /* all queues; world.lock */
};

/* A thread that sleeps until one of its requests ends or it should drive. Guarded by wf_waiting.lock. */
struct wf_waiter {
    struct wf_link link;       /* wf_waiting.waiters */
    struct wf_link poked_link; /* wf_waiting.poked until the thread is woken */
    struct wf_link tray_link;  /* wf_tray.sleepers, if it waits for a tray */
    bool drives; /* it sleeps in the engine of the worker that it drives, and is in no list of wf_waiting */
    pthread_t thread;
    _Atomic uint32_t poked; /* futex word: 0 asleep, 1 look again */
};

void wf_waiting_init(struct wf_waiting *waiting, struct wf_crew *crew);
void wf_waiting_fini(struct wf_waiting *waiting);

/* A request has just ended. Session lock held. True: a thread sleeps for it, so wf_wait_wake() must be called once the
 * lock is released. */
bool wf_wait_completed(struct wf_waiting *waiting, struct weft_request *request);

/* Wakes the threads that wait for ended requests, and updates the descriptors of their queues. No session lock held: it
 * costs system calls. */
void wf_wait_wake(struct wf_waiting *waiting);

/* Tells one of these threads to look, one that was told nothing yet. wf_waiting.lock held. True: wf_wait_wake() is to
 * be called once the locks are released. */
bool wf_wait_poke(struct wf_waiting *waiting, struct wf_list *sleepers);

/* Waits, as weft_wait() does, until the tray holds something: true. False: the deadline has passed. No lock held. */
bool wf_wait_tray(struct wf_tray *tray, int64_t deadline_ns);

/* A request has ended on a thread that drives no worker. No lock held: a caller that drives the shared worker looks. */
void wf_wait_ring(struct wf_waiting *waiting);

/* Makes the progress of one look, if this thread may: callers that poll drive. No lock held. */
void wf_wait_progress(struct wf_waiting *waiting);

/* The drive token is free: wakes one sleeping caller, which may take it. True: a caller was woken. */
bool wf_wait_token_free(struct wf_waiting *waiting);

#endif
