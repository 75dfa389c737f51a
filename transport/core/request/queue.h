/*
 * queue.h: the queue that requests enter when they have ended, for a user who waits for many requests on one
 * descriptor.
 *
 * Invariant, once the user has the descriptor: while no thread is inside signal or poll, it is readable exactly if
 * `ended` is not empty. A request enters with its session's lock held, which costs only a link in a list. The system
 * call that changes the descriptor follows after that lock is released, and only if `ended` became empty or not empty.
 */
#ifndef WF_CORE_REQUEST_QUEUE_H
#define WF_CORE_REQUEST_QUEUE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/status.h"
#include "core/request/wait.h"
#include "weft.h"

struct weft_queue {
    struct wf_link link; /* wf_waiting.queues; world.lock */
    struct wf_link
        signal_link; /* wf_waiting.signals while the descriptor is to be brought up to date; wf_waiting.lock */
    struct wf_waiting *waiting;
    int fd;
    _Atomic uint32_t attached;   /* requests that were not yet handed out */
    _Atomic uint32_t references; /* one for the user's handle, one for each thread that signals */

    pthread_mutex_t lock;
    struct wf_list ended; /* requests in the order of their ends */
    bool watched;         /* the user has the descriptor; while false, it is never written */

    pthread_mutex_t level_lock; /* taken before `lock`: `fd` and `level` change together */
    bool level;                 /* `fd` is readable */
};

/* --- with the session's lock held --- */

/* `request` will end in `queue`. */
void wf_queue_attach(struct weft_queue *queue, struct weft_request *request);
/* The request ends without being posted: it leaves its queue. */
void wf_queue_detach(struct weft_request *request);
/* `request` has ended. True: wf_wait_wake() is to be called once the lock is released. */
bool wf_queue_push(struct weft_request *request);

/* --- no lock held, except perhaps world.lock --- */

/* Takes a reference for a thread that will signal. wf_waiting.lock held, so that the queue still exists. */
void wf_queue_hold(struct weft_queue *queue);
/* Updates the descriptor, and drops the reference of wf_queue_hold(). May cost a system call. */
void wf_queue_signal(struct weft_queue *queue);

/* Frees all queues of a context that ends. */
void wf_queues_free(struct wf_waiting *waiting);

/* The step behind weft_queue_create(). */
int wf_queue_create(struct wf_waiting *waiting, struct weft_queue **out, struct wf_status *status);

#endif
