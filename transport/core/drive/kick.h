/*
 * kick.h: notices for workers: "this has something for you". A notice is part of what it speaks of and can be left any
 * number of times before it is served, so leaving one cannot fail for lack of room.
 */
#ifndef WF_CORE_DRIVE_KICK_H
#define WF_CORE_DRIVE_KICK_H

#include <stdbool.h>

#include "base/list.h"
#include "core/drive/crew.h"

struct wf_kicks;

/* A notice "this has something for worker W"; a session has one for each worker. */
struct wf_kick {
    struct wf_link link;      /* in worker.kicked; guarded by worker.mail_lock */
    struct wf_kicks *kicks;   /* it is one of these */
    struct wf_worker *worker; /* NULL: the pair is not in use */
    bool queued;              /* guarded by worker.mail_lock */
};

/* A session's notices, by worker. Owner: the session. */
struct wf_kicks {
    void (*serve)(struct wf_kicks *kicks, struct wf_worker *worker); /* with the worker's token, no lock */
    int count;
    struct wf_kick each[WF_WORKERS_MAX];
};

void wf_kicks_init(struct wf_kicks *kicks, struct wf_crew *crew,
                   void (*serve)(struct wf_kicks *kicks, struct wf_worker *worker));
/* Takes those that have not been seen yet off the workers' lists, and waits for the one that is being served. No token
 * needed; no lock held. */
void wf_kicks_fini(struct wf_kicks *kicks);

/* Leaves one for a worker, by index, or for all. `self`: as for wf_worker_kick(). Any thread, with or without lock. */
void wf_kicks_one(struct wf_kicks *kicks, int worker, struct wf_worker *self);
void wf_kicks_all(struct wf_kicks *kicks, struct wf_worker *self);

/* Leaves a notice for the worker. `self`: the worker whose token the caller holds, or NULL. Any thread. */
void wf_worker_kick(struct wf_kick *kick, struct wf_worker *self);

/* --- token of `worker` held, no lock: for the worker itself --- */

/* Wakes the workers that this one has kicked. It may cost system calls. */
void wf_worker_ring_bells(struct wf_worker *worker);
/* Serves the notices that are there; returns how many. */
int wf_worker_serve_kicks(struct wf_worker *worker);

#endif
