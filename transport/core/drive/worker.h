/*
 * worker.h: a thread, an engine, and the channel halves it drives.
 *
 * Whoever holds the drive token owns the engine and every half that belongs to this worker; nobody blocks on the token.
 * In a shared worker a caller that waits takes the token and drives, so that its own wait needs no wake-up; the
 * thread takes over again once callers stay away. Others reach a worker only through kicks: an intrusive notice plus
 * a doorbell, which cannot fail for lack of room.
 */
#ifndef WF_CORE_DRIVE_WORKER_H
#define WF_CORE_DRIVE_WORKER_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "affinity/cpus.h"
#include "affinity/plan.h"
#include "base/list.h"
#include "base/status.h"
#include "core/ground/spin.h"
#include "core/ground/world.h"
#include "io/engine.h"

struct wf_crew;
struct wf_kicks;
struct wf_worker;

enum wf_token { WF_TOKEN_FREE = 0, WF_TOKEN_CALLER = 1, WF_TOKEN_THREAD = 2 };

/* What the parked thread is told: nothing; to take the token at once; to rest less. */
enum wf_park { WF_PARK_REST = 0, WF_PARK_END = 1, WF_PARK_LESS = 2 };

/* A notice "this has something for worker W"; a session has one for each worker. */
struct wf_kick {
    struct wf_link link;      /* in worker.kicked; guarded by worker.mail_lock */
    struct wf_kicks *kicks;   /* it is one of these */
    struct wf_worker *worker; /* NULL: the pair is not in use */
    bool queued;              /* guarded by worker.mail_lock */
};

#define WF_SINK_BYTES (64 * 1024)

struct wf_worker {
    struct wf_crew *crew;
    int index;
    char name[16];
    struct wf_engine *engine;
    pthread_t thread;
    bool has_thread;
    sem_t entered;            /* the thread has bound itself, or could not: */
    struct wf_status refusal; /* why, where that is an error */
    int tid;                  /* 0: no thread */
    _Atomic bool stopping;

    _Atomic uint32_t token;        /* enum wf_token */
    _Atomic uint32_t wanted;       /* a caller wants the token: the thread lets go and parks */
    _Atomic uint32_t caller_turns; /* times a caller drove; tells the thread to stay away */
    _Atomic uint32_t park;         /* enum wf_park; futex word of the parked thread: a change ends its rest */
    _Atomic bool rests_long;       /* it rests longer than is good for large messages */

    pthread_mutex_t mail_lock;
    struct wf_list kicked;
    _Atomic bool has_mail;
    struct wf_kicks *serving; /* whose notice is being handled; mail_lock */

    uint32_t bells;         /* workers to be woken, by index; token holder */
    struct wf_list untold;  /* who has something to tell before the worker rests; token holder */
    uint32_t rounds_untold; /* rounds since there are some; token holder */
    struct wf_spin spin;    /* does looking pay? */
    uint8_t *sink;          /* where unwanted payload goes; token holder */
};

/* Two for each rail, or one for all. */
#define WF_WORKERS_MAX (2 * WF_RAILS_MAX)

/* What the core keeps of a plan. Without one nothing is pinned, and no rail has a node. All zero: not planned yet. */
struct wf_placement {
    enum wf_pin pin;
    enum wf_rail_policy rail_policy;
    struct wf_cpus *cpus;              /* by worker; NULL: none is pinned */
    int16_t rail_nodes[WF_PLAN_RAILS]; /* NUMA node of each rail, or WF_NO_NODE */
};

/* What stands behind an operation's context: the engine returns it, the worker calls `ended`. Token held, no lock. */
struct wf_task {
    void (*ended)(struct wf_task *task);
};

/*
 * What workers do besides operations and notices, each time they look. Installed by the rooms that want it, before any
 * worker runs; NULL: nothing. `user` is theirs.
 */
struct wf_chores {
    /* Copies of devices: starts what is queued, ends what is done; returns how many. Token held. */
    int (*drive)(void *devices, struct wf_worker *worker);
    /* Is one under way that rings no bell? Token held. */
    bool (*busy)(void *devices, const struct wf_worker *worker);
    void *devices;
    /* The worker is about to rest, or has been busy for long: wf_worker.untold is told, and emptied. Token held. */
    void (*tell)(struct wf_worker *worker);
    /* The drive token is free: a caller who waits may want it. */
    bool (*token_free)(void *waiting);
    void *waiting;
};

/* The workers of a context. Owner: the context. */
struct wf_crew {
    struct wf_world *world;
    struct wf_chores chores;
    _Atomic uint64_t large_out; /* operations of more than `eager` under way; receives by what they may bring */
    int count;
    struct wf_worker *workers[WF_WORKERS_MAX];
    struct wf_placement placement;
};

int wf_worker_create(struct wf_crew *crew, int index, struct wf_worker **out, struct wf_status *status);
int wf_worker_start(struct wf_worker *worker, struct wf_status *status);
/* Stops the thread; frees nothing. */
void wf_worker_stop(struct wf_worker *worker);
void wf_worker_destroy(struct wf_worker *worker);

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

/* The token, without waiting, for a caller. */
bool wf_worker_try(struct wf_worker *worker);
/* Asks the thread, should it hold the token, to let go. */
void wf_worker_want(struct wf_worker *worker);
/* Nobody is going to drive: the thread is to take the token at once, should it rest. May cost a system call. */
void wf_worker_recall(struct wf_worker *worker);
/* Something large is under way: should the thread rest for long, it rests less. May cost a system call. */
void wf_worker_stay_near(struct wf_worker *worker);
/* Gives it back; work that arrived meanwhile is looked at by this thread before it leaves. */
void wf_worker_leave(struct wf_worker *worker);

/*
 * One round, token held: notices, then finished operations, then what they made possible. Waits up to `timeout_ns` when
 * there is nothing to do. Returns the number of operations and notices handled.
 */
int wf_worker_drive(struct wf_worker *worker, int64_t timeout_ns);

/* One large operation more, or less. */
static inline void wf_crew_count_large(struct wf_crew *crew, bool more)
{
    if (more)
        atomic_fetch_add(&crew->large_out, 1);
    else
        atomic_fetch_sub_explicit(&crew->large_out, 1, memory_order_relaxed);
}

#endif
