/*
 * clock_guard.h: the process that unlocks clocks when a run has ended; shared by the files clock_*.c. No other file
 * includes it.
 *
 * It ends with the run, whatever becomes of that: a killed run closes its end of the socket, and where a child of the
 * run still holds that, the end of the process itself is seen. Nothing that a terminal sends ends it earlier, and it
 * holds no file of the run: who reads the run's output sees its end.
 */
#ifndef WF_BENCH_CLOCK_GUARD_H
#define WF_BENCH_CLOCK_GUARD_H

#include "clock_lock.h"
#include "clock_record.h"

#define BENCH_GUARDIAN_MS 5000 /* most that a guardian is waited for */

/* Starts it for lock->folder: fills lock->guard, lock->guardian. Once this returns, signals do not end it. */
int bench_clock_guard_start(struct bench_clock_lock *lock, struct bench_process *guardian, struct wf_status *status);
/* Lets it unlock, and waits for what comes of it. -ECHILD: it was killed before, without
 * words; -ETIMEDOUT: nothing came. lock->guard
 * is -1 afterwards. */
int bench_clock_guard_end(struct bench_clock_lock *lock, struct wf_status *status);

#endif
