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

#include "base/list.h"
#include "base/status.h"
#include "core/drive/crew.h"
#include "core/drive/kick.h"
#include "core/ground/spin.h"
#include "io/engine.h"

enum wf_token { WF_TOKEN_FREE = 0, WF_TOKEN_CALLER = 1, WF_TOKEN_THREAD = 2 };

/* What the parked thread is told: nothing; to take the token at once; to rest less. */
enum wf_park { WF_PARK_REST = 0, WF_PARK_END = 1, WF_PARK_LESS = 2 };

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
    struct wf_list untold;  /* receive halves whose disposals no frame has carried yet; token holder */
    uint32_t rounds_untold; /* rounds since there are some; token holder */
    struct wf_spin spin;    /* does looking pay? */
    uint8_t *sink;          /* where unwanted payload goes; token holder */
};

/* What stands behind an operation's context: the engine returns it, the worker calls `ended`. Token held, no lock. */
struct wf_task {
    void (*ended)(struct wf_task *task);
};

int wf_worker_create(struct wf_crew *crew, int index, struct wf_worker **out, struct wf_status *status);
int wf_worker_start(struct wf_worker *worker, struct wf_status *status);
/* Stops the thread; frees nothing. */
void wf_worker_stop(struct wf_worker *worker);
void wf_worker_destroy(struct wf_worker *worker);

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

#endif
