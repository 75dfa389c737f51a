/*
 * queue.h: the queue that requests enter when they have ended, for a user who waits for many requests on one
 * descriptor. It is a tray (tray.h) of ended requests, and the number of requests that it is still to hand out.
 */
#ifndef WF_CORE_REQUEST_QUEUE_H
#define WF_CORE_REQUEST_QUEUE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/status.h"
#include "core/request/tray.h"
#include "core/request/wait.h"
#include "weft.h"

struct weft_queue {
    struct wf_link link; /* wf_waiting.queues; world.lock */
    struct wf_waiting *waiting;
    struct wf_tray *ended;     /* requests in the order of their ends */
    _Atomic uint32_t attached; /* requests that were not yet handed out */
    bool watched;              /* the user has the descriptor; world.lock, as the next two */
    int set;                   /* epoll: the tray's descriptor and, while `lent`, the engine's; -1: none */
    _Atomic bool lent;         /* whoever sleeps on `set` drives the callers' own worker */
};

/* --- with the session's lock held --- */

/* `request` will end in `queue`. */
void wf_queue_attach(struct weft_queue *queue, struct weft_request *request);
/* The request ends without being posted: it leaves its queue. */
void wf_queue_detach(struct weft_request *request);
/* `request` has ended. True: wf_wait_wake() is to be called once the lock is released. */
bool wf_queue_push(struct weft_request *request);

/* --- no lock held, except perhaps world.lock --- */

/* Frees all queues of a context that ends. */
void wf_queues_free(struct wf_waiting *waiting);

/* The step behind weft_queue_create(). */
int wf_queue_create(struct wf_waiting *waiting, struct weft_queue **out, struct wf_status *status);

#endif
