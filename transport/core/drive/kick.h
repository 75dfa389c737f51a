/*
 * kick.h: notices for workers: "this session has something for you". A notice is a part of its session and can be left
 * any number of times before it is served, so leaving one cannot fail for lack of room.
 */
#ifndef WF_CORE_DRIVE_KICK_H
#define WF_CORE_DRIVE_KICK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "core/drive/crew.h"

struct wf_kicks;

/* A set of workers, by index. All zero: none. */
struct wf_bells {
    uint64_t words[(WF_WORKERS_MAX + 63) / 64];
};

static inline void wf_bells_add(struct wf_bells *bells, int worker)
{
    bells->words[worker / 64] |= UINT64_C(1) << worker % 64;
}

/* Takes one out; -1: the set is empty. */
static inline int wf_bells_take(struct wf_bells *bells)
{
    for (int i = 0; i < (int)(sizeof bells->words / sizeof bells->words[0]); i++) {
        int bit = __builtin_ffsll((long long)bells->words[i]);
        if (bit == 0)
            continue;
        bells->words[i] &= bells->words[i] - 1;
        return 64 * i + bit - 1;
    }
    return -1;
}

static inline bool wf_bells_any(const struct wf_bells *bells)
{
    uint64_t any = 0;
    for (size_t i = 0; i < sizeof bells->words / sizeof bells->words[0]; i++)
        any |= bells->words[i];
    return any != 0;
}

/* A notice of one session for one worker. */
struct wf_kick {
    struct wf_link link;      /* in worker.kicked; guarded by worker.mail_lock */
    struct wf_kicks *kicks;   /* the notices of the session, of which this is one */
    struct wf_worker *worker; /* NULL: there is no worker with this index */
    bool queued;              /* guarded by worker.mail_lock */
};

/* A session's notices, by worker. Owner: the session. */
struct wf_kicks {
    void (*serve)(struct wf_kicks *kicks, struct wf_worker *worker); /* with the worker's token, no lock */
    int count;
    struct wf_kick *each;
};

/* 0 or -ENOMEM. */
int wf_kicks_init(struct wf_kicks *kicks, struct wf_crew *crew,
                  void (*serve)(struct wf_kicks *kicks, struct wf_worker *worker));
/* Takes the notices that wait off the workers' lists, and waits until no worker serves one. No token needed; no lock
 * held. Also accepts an object of zeroes, or one whose init has failed. */
void wf_kicks_fini(struct wf_kicks *kicks);

/* Leaves the notice of one worker, by index, or of all. `self`: as for wf_worker_kick(). Any thread, with or without
 * lock. */
void wf_kicks_one(struct wf_kicks *kicks, int worker, struct wf_worker *self);
void wf_kicks_all(struct wf_kicks *kicks, struct wf_worker *self);

/* Leaves this notice for its worker. `self`: the worker whose token the caller holds, or NULL. Any thread. */
void wf_worker_kick(struct wf_kick *kick, struct wf_worker *self);

/* --- token of `worker` held, no lock: for the worker itself --- */

/* Wakes the workers that were kicked with `worker` as `self`. It may cost system calls. */
void wf_worker_ring_bells(struct wf_worker *worker);
/* Serves the notices that wait for `worker`; returns how many. */
int wf_worker_serve_kicks(struct wf_worker *worker);

#endif
