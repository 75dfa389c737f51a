/*
 * spin.h: how long to look for an event before sleeping. Up to the setting spin_us while that pays; where it does not,
 * because the events come later than that, or because whoever is to make them needs this very core, a sixteenth of it,
 * and all of it once in a while to see whether that has changed.
 */
#ifndef WF_CORE_GROUND_SPIN_H
#define WF_CORE_GROUND_SPIN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define WF_SPIN_MISSES 4 /* waits in a row that looking did not end */
#define WF_SPIN_RETRY 64 /* of those that follow, one in so many looks for the full time */
#define WF_SPIN_FRACTION 16

/* All zero: it pays. Callers who wait for other threads share one; a wrong count costs a little time only. */
struct wf_spin {
    _Atomic uint32_t misses; /* in a row */
};

/* For how long to look this time; `full` is the setting. */
static inline int64_t wf_spin_time(struct wf_spin *spin, int64_t full)
{
    uint32_t misses = atomic_load_explicit(&spin->misses, memory_order_relaxed);
    bool pays = misses < WF_SPIN_MISSES || (misses - WF_SPIN_MISSES) % WF_SPIN_RETRY == WF_SPIN_RETRY - 1;
    return pays ? full : full / WF_SPIN_FRACTION;
}

/* The wait ended while looking (`hit`), or sleep begins. */
static inline void wf_spin_ended(struct wf_spin *spin, bool hit)
{
    uint32_t misses = atomic_load_explicit(&spin->misses, memory_order_relaxed);
    if (hit && misses == 0)
        return;
    atomic_store_explicit(&spin->misses, hit ? 0 : misses + 1, memory_order_relaxed);
}

/* One waiter's turns, looked at one after the other. */
struct wf_watch {
    struct wf_spin *spin;
    int64_t full, until_ns;
    bool idle;  /* there was a look that found nothing since the last event */
    bool slept; /* and sleep since then */
};

static inline void wf_watch_begin(struct wf_watch *watch, struct wf_spin *spin, int64_t full, int64_t now_ns)
{
    *watch = (struct wf_watch){.spin = spin, .full = full, .until_ns = now_ns + wf_spin_time(spin, full)};
}

/* Is it time to sleep? */
static inline bool wf_watch_over(struct wf_watch *watch, int64_t now_ns)
{
    if (now_ns < watch->until_ns)
        return false;
    if (watch->idle && !watch->slept)
        wf_spin_ended(watch->spin, false);
    watch->slept = true;
    return true;
}

/* A look that found `events`. What comes at once was not waited for, and says nothing. */
static inline void wf_watch_saw(struct wf_watch *watch, int events, int64_t now_ns)
{
    if (events <= 0) {
        watch->idle = true;
        return;
    }
    if (watch->idle && !watch->slept)
        wf_spin_ended(watch->spin, true);
    watch->idle = watch->slept = false;
    watch->until_ns = now_ns + wf_spin_time(watch->spin, watch->full);
}

#endif
