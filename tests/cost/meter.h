/*
 * meter.h: whose time passes. The time of this thread is put down to the sender or to the receiver, and, in a pass that
 * accounts for it, to the engine within that, and to the holds of sessions' locks. The cost of reading the clock is
 * measured first and subtracted.
 *
 * Other programs may have the processor in between: the time of a side is that of its turns, less the share of the pass
 * in which this thread did not run. Calls and holds that took more than a millisecond were interrupted, and do not
 * count.
 *
 * A hold is the time from the return of pthread_mutex_lock() to the call of pthread_mutex_unlock(): the program is
 * linked so that the library calls the two here. Only the locks that are watched count. Owner: the only thread.
 */
#ifndef TESTS_COST_METER_H
#define TESTS_COST_METER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum meter_side { METER_SENDER, METER_RECEIVER, METER_SIDES };

#define METER_LOCKS_MAX 4096 /* locks that can be watched at a time */

/* Of one side. All but `total_ns`: only of an accounting pass, which takes longer in all. */
struct meter_reading {
    double total_ns;
    double engine_ns;  /* in calls of the engine */
    double held_ns;    /* with a watched lock held */
    double longest_ns; /* the longest hold */
    double p99_ns;     /* 99 of 100 holds were not longer */
    uint64_t holds;
    double share; /* of the pass in which this thread ran; the same for both sides */
};

/* Measures the clock. First. */
void meter_init(void);

/* Watches these locks of a side, too; none at first and after meter_forget(). */
void meter_watch(pthread_mutex_t *lock, enum meter_side side);
void meter_forget(void);

/* A pass begins; the time goes to nobody. */
void meter_begin(bool accounting);
/* From now on it goes to this side. */
void meter_turn(enum meter_side side);
/* The pass ends. */
void meter_end(struct meter_reading readings[METER_SIDES]);

/* A call of the engine begins; false: nobody wants to know. */
bool meter_engine_begins(uint64_t *start);
void meter_engine_ends(uint64_t start);

/* Nanoseconds that a look at the clock takes. */
double meter_look_ns(void);

#endif
