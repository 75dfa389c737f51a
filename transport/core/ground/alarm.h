/*
 * alarm.h: when the door's thread visits which session next, and the bell that wakes that thread. Any room may ask for
 * a visit. The door knows whom to visit: it looks at no other session.
 */
#ifndef WF_CORE_GROUND_ALARM_H
#define WF_CORE_GROUND_ALARM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/list.h"
#include "io/engine.h"

/* The next visit to one session. */
struct wf_visit {
    _Atomic int64_t by_ns; /* the door comes no later than this; WF_NEVER: it need not come */
    struct wf_link link;   /* in wf_alarm.asked; its lock */
    int64_t due_ns;        /* as the door knows it; world.lock, as `place` */
    int place;             /* in wf_alarm.heap, from 1 on; 0: not there */
};

/* Owner: the context. All zero but for `lock` and `asked`: no engine listens yet, and wf_alarm_by() does nothing. */
struct wf_alarm {
    struct wf_engine *_Atomic engine; /* the door's; its wake() is the bell */
    _Atomic int64_t due_ns;           /* of the next visit to any session */
    pthread_mutex_t lock;             /* taken after any other lock */
    struct wf_list asked;             /* visits that were asked for and that the door does not know of */
    /* world.lock: the visits that the door knows of, the earliest in heap[0], each before those at 2i + 1 and 2i + 2.
     */
    struct wf_visit **heap;
    int count, room;
};

void wf_alarm_init(struct wf_alarm *alarm);
void wf_alarm_fini(struct wf_alarm *alarm);

/* Asks for a visit no later than `when_ns`. Any thread, any lock. */
void wf_alarm_by(struct wf_alarm *alarm, struct wf_visit *visit, int64_t when_ns);

/* From now on `engine`'s wake() is the bell, and a look is due at once. NULL: no engine listens any more. */
void wf_alarm_listen(struct wf_alarm *alarm, struct wf_engine *engine);

/* --- for the door, world.lock held. The door has alarms of its own thread alone, too: no engine listens to them, and
 * what is said of sessions holds of dials and conversations --- */

/* A session begins, with a visit at once. 0 or -ENOMEM. */
int wf_alarm_enter(struct wf_alarm *alarm, struct wf_visit *visit);
/* It ends. Accepts a visit that was never entered, all zero. */
void wf_alarm_leave(struct wf_alarm *alarm, struct wf_visit *visit);

/* The next visit that is due at `now_ns`: it counts as made. What is asked for from now on is another visit. NULL: none
 * is due, and `due_ns` says when one will be. */
struct wf_visit *wf_alarm_next(struct wf_alarm *alarm, int64_t now_ns);
/* The next visit is due no later than this; WF_NEVER: none is. After a visit, or at any time. */
void wf_alarm_again(struct wf_alarm *alarm, struct wf_visit *visit, int64_t due_ns);

#endif
