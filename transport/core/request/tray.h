/*
 * tray.h: a list for the user, and a descriptor that is readable while the list holds something.
 *
 * Invariant, once the user has the descriptor: while no thread is inside a call of this header or between a put that
 * returned true and its signal, the descriptor is readable exactly if the list is not empty. A put happens with a
 * session's lock held, so it costs only a link in a list. The system call that changes the descriptor follows after
 * that lock is released, and only if the list became empty or not empty.
 *
 * That call is saved where the user will look at the list anyway, at once or soon: then the list holds something that
 * the descriptor does not show (`hidden`). A look shows it or takes it. Where no look comes, wf_tray_settle() shows it.
 */
#ifndef WF_CORE_REQUEST_TRAY_H
#define WF_CORE_REQUEST_TRAY_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "core/request/wait.h"

/* Owner: what made it, with one reference. A thread that signals has another one: the descriptor must stay open, and
 * its number must not be given to another file, while that thread is about to write to it. */
struct wf_tray {
    struct wf_link signal_link; /* wf_waiting.signals while the descriptor is to be brought up to date;
                                 * wf_waiting.lock */
    struct wf_waiting *waiting;
    int fd;
    _Atomic uint32_t references;

    pthread_mutex_t lock; /* guards the next fields, and the links of what is in the list */
    struct wf_list list;
    bool watched; /* the user has the descriptor; while false, it is never written */
    bool settles; /* somebody calls wf_tray_settle() again and again: the next look may be left to the user */
    bool looking; /* the last look found something, so the user will look again */
    int drivers;  /* threads that make progress for this list, and look at it afterwards */
    bool hidden;  /* the list holds something, and nobody was told to make the descriptor readable */

    struct wf_list sleepers; /* threads in wf_wait_tray(); wf_waiting.lock */
    _Atomic int sleeper_count;

    pthread_mutex_t level_lock; /* taken before `lock`: `fd` and `level` change together */
    bool level;                 /* `fd` is readable */
};

/* -ENOMEM, or the errno of making a descriptor. */
int wf_tray_create(struct wf_waiting *waiting, struct wf_tray **out);

/* Waits until a put that is under way has let go of the tray, and drops the owner's reference. The list is empty, or
 * what it holds is nobody's any more. */
void wf_tray_destroy(struct wf_tray *tray);

/* --- a session's lock may be held --- */

/* Puts `link` at the end of the list; if it is there already, does nothing. True: wf_wait_wake() is to be called once
 * the session's lock is released. */
bool wf_tray_put(struct wf_tray *tray, struct wf_link *link);

/* The same for something that is no news to the thread that put it there, which is the user's: the descriptor need not
 * tell of it before the user looks again. */
bool wf_tray_put_quietly(struct wf_tray *tray, struct wf_link *link);

/* Does the list hold something? */
bool wf_tray_holds(struct wf_tray *tray);

/* Somebody has taken links, and some may be left: a thread that sleeps for the tray is to look. True: as wf_tray_put().
 */
bool wf_tray_pass_on(struct wf_tray *tray);

/* --- no lock held, except perhaps world.lock --- */

/* A thread makes progress for this list from now on (`begins`), or not any more: it takes what it has put there. */
void wf_tray_drive(struct wf_tray *tray, bool begins);
/* See `settles`. */
void wf_tray_let_settle(struct wf_tray *tray, bool settles);
/* The user was given time to look again: shows what is hidden. May cost a system call. */
void wf_tray_settle(struct wf_tray *tray);

/* Moves up to `max` links from the front of the list to the end of `taken`, and returns their number. `*watched`: the
 * user has the descriptor. May cost a system call. */
int wf_tray_take(struct wf_tray *tray, struct wf_list *taken, int max, bool *watched);

/* Takes out the first link, which may be put again from that moment on; NULL: the list is empty. Else as
 * wf_tray_take().
 */
struct wf_link *wf_tray_pop(struct wf_tray *tray, bool *watched);

/* Takes `link` out, wherever it is in the list. May cost a system call. */
void wf_tray_drop(struct wf_tray *tray, struct wf_link *link);

/* The descriptor. From now on it follows the list. */
int wf_tray_watch(struct wf_tray *tray);

/* Takes a reference, for a thread that will signal or settle, and drops it. To take one wf_waiting.lock is held, so
 * that the tray still exists. */
void wf_tray_hold(struct wf_tray *tray);
void wf_tray_let_go(struct wf_tray *tray);
/* Updates the descriptor, and drops the reference of wf_tray_hold(). May cost a system call. */
void wf_tray_signal(struct wf_tray *tray);

#endif
