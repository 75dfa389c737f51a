/*
 * queue.h: where requests go when they have ended, for a user who waits for many of them by a descriptor.
 *
 * Invariant: whenever no thread is inside signal or poll, the descriptor is readable exactly if something is in
 * `ended`. A request joins with its session's lock held, and costs nothing but the link in it; the system call that
 * changes the descriptor comes after that lock has been released, and only when the queue becomes empty or ceases to
 * be.
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
    _Atomic uint32_t attached;   /* requests that have not been handed out */
    _Atomic uint32_t references; /* the user's handle, and threads that signal */

    pthread_mutex_t lock;
    struct wf_list ended; /* requests in the order of their ends */
    bool watched;         /* the user has the descriptor: until then it is left alone */

    pthread_mutex_t level_lock; /* outside `lock`: `fd` and `level` change together */
    bool level;                 /* `fd` is readable */
};

/* --- with the session's lock held --- */

/* `request` will end in `queue`. */
void wf_queue_attach(struct weft_queue *queue, struct weft_request *request);
/* It was never posted. */
void wf_queue_detach(struct weft_request *request);
/* `request` has ended. True: wf_wait_wake() is to be called once the lock is released. */
bool wf_queue_push(struct weft_request *request);

/* --- no lock held but world.lock, perhaps --- */

/* For the thread that will signal: with wf_waiting.lock held, so that the queue is still there. */
void wf_queue_hold(struct weft_queue *queue);
/* Brings the descriptor up to date, and gives the hold back. May cost a system call. */
void wf_queue_signal(struct weft_queue *queue);

/* Ends every queue with its context. */
void wf_queues_free(struct wf_waiting *waiting);

/* The step behind weft_queue_create(). */
int wf_queue_create(struct wf_waiting *waiting, struct weft_queue **out, struct wf_status *status);

#endif
