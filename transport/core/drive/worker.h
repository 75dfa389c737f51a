/*
 * worker.h: a thread, an engine, and the channel halves that they drive.
 *
 * The thread that holds the drive token owns the engine and every half that belongs to this worker; no thread blocks on
 * the token. In a shared worker a caller that waits takes the token and drives, so that its own wait needs no wake-up;
 * the worker's thread takes over again once callers stay away. Other threads reach a worker only through kicks: a
 * notice in a list and a doorbell, which cannot fail for lack of room.
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

/* Orders for the parked thread: none; take the token at once; rest less. */
enum wf_park { WF_PARK_REST = 0, WF_PARK_END = 1, WF_PARK_LESS = 2 };

#define WF_SINK_BYTES (64 * 1024)

struct wf_worker {
    struct wf_crew *crew;
    int index;
    bool shared; /* callers drive it, too */
    char name[16];
    struct wf_engine *engine;
    pthread_t thread;
    bool has_thread;
    sem_t entered;            /* the thread has pinned itself, or could not */
    struct wf_status refusal; /* why it could not, if pin = require */
    int tid;                  /* 0: no thread */
    _Atomic bool stopping;

    _Atomic uint32_t token;        /* enum wf_token */
    _Atomic uint32_t wanted;       /* a caller wants the token: the thread lets go and parks */
    _Atomic uint32_t caller_turns; /* times a caller drove; tells the thread to stay away */
    _Atomic uint32_t park;         /* enum wf_park; futex word of the parked thread: a change ends its rest */
    _Atomic bool rests_long;       /* the thread rests too long for large messages */
    _Atomic bool lent;             /* a user sleeps until the engine's descriptor is readable, and drives then */
    _Atomic bool outside;  /* the thread sleeps without the token, until the descriptor or `nudge` is readable */
    _Atomic bool tell_all; /* a rest of the thread has passed: see wf_worker_drive_lent() */
    bool driven;           /* the last round of wf_worker_drive_lent() has done something; token holder */
    int descriptor;        /* the engine's; -1: it has none, or the worker is not shared */
    int nudge;             /* eventfd; -1 as `descriptor` */

    pthread_mutex_t mail_lock;
    struct wf_list kicked;
    _Atomic bool has_mail;
    struct wf_kicks *serving; /* the session whose notice is being served; mail_lock */

    struct wf_bells bells;  /* workers to be woken; token holder */
    struct wf_list untold;  /* receive halves whose disposals no frame has carried yet; token holder, as the next two */
    struct wf_list awaited; /* the same, where senders may wait for them */
    uint32_t rounds_untold; /* rounds since both were empty */
    bool answer_comes;      /* see wf_worker_expect_answer(); token holder */
    struct wf_spin spin;    /* does looking pay? */
    uint8_t *sink;          /* buffer for payload that no message wants; token holder */
};

/* wf_op.context points to one: when the engine returns the operation, the worker calls `ended`. Token held, no lock. */
struct wf_task {
    void (*ended)(struct wf_task *task);
};

int wf_worker_create(struct wf_crew *crew, int index, struct wf_worker **out, struct wf_status *status);
int wf_worker_start(struct wf_worker *worker, struct wf_status *status);
/* Stops the thread; frees nothing. */
void wf_worker_stop(struct wf_worker *worker);
void wf_worker_destroy(struct wf_worker *worker);

/* Takes the token for a caller, without waiting. False: another thread holds it. */
bool wf_worker_try(struct wf_worker *worker);
/* If the worker's thread holds the token: asks it to let go. */
void wf_worker_want(struct wf_worker *worker);
/* No caller is going to drive: a resting thread takes the token at once. May cost a system call. */
void wf_worker_recall(struct wf_worker *worker);
/* A large operation is under way: a thread that rests for long rests less. May cost a system call. */
void wf_worker_stay_near(struct wf_worker *worker);
/* A message has come that the user may answer at once on the same channel, where its acknowledgement is about to go:
 * the round that sends it also takes its end, so that the user finds the send half idle. Token held. */
static inline void wf_worker_expect_answer(struct wf_worker *worker)
{
    worker->answer_comes = true;
}
/* Gives the token back; this thread first serves the kicks that came meanwhile. */
void wf_worker_leave(struct wf_worker *worker);

/*
 * Lends the engine to a user who sleeps until its descriptor is readable, and drives then: an event costs one wake-up
 * instead of two. The worker's thread sleeps beside the user, and drives only if the user does not. For a worker with a
 * descriptor. No token.
 */
void wf_worker_lend(struct wf_worker *worker, bool lent);
/* One round of such a user, without waiting: as wf_worker_drive(), but disposals for which no sender waits are left to
 * frames that go out soon, or to the thread. Token held. */
int wf_worker_drive_lent(struct wf_worker *worker);
/* The user is about to sleep. False: there is something to do of which the descriptor does not tell, so the caller
 * calls wf_worker_recall() once it has left. Token held. */
bool wf_worker_rest(struct wf_worker *worker);

/*
 * One round, token held: notices, copies of devices, finished operations, disposals, then the notices that these
 * caused. Waits up to `timeout_ns` when there is nothing to do. Returns the number of operations, copies and notices
 * handled.
 */
int wf_worker_drive(struct wf_worker *worker, int64_t timeout_ns);

/* The same, but the round does not sleep once `*call` is not 0. Who sets that calls engine.wake afterwards. */
int wf_worker_drive_until(struct wf_worker *worker, int64_t timeout_ns, const _Atomic uint32_t *call);

#endif
