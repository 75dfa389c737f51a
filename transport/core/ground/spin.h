/*
 * spin.h: how long a thread looks for an event before it sleeps. While looking pays, it looks for the time of the
 * setting spin_us. Looking does not pay when events come later than that, or when the thread that makes them needs the
 * same CPU core. Then a wait looks for a sixteenth of spin_us, and one wait in WF_SPIN_RETRY for all of it, to see
 * whether that has changed.
 */
#ifndef WF_CORE_GROUND_SPIN_H
#define WF_CORE_GROUND_SPIN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define WF_SPIN_MISSES 4 /* looking does not pay after so many waits in a row that ended in sleep */
#define WF_SPIN_RETRY 64 /* after that, one wait in so many looks for the full time */
#define WF_SPIN_FRACTION 16

/* All zero: looking pays. Callers that wait for other threads share one; a wrong count costs a little time only. */
struct wf_spin {
    _Atomic uint32_t misses; /* waits in a row that ended in sleep */
};

/* For how long to look this time; `full` is the setting. */
static inline int64_t wf_spin_time(struct wf_spin *spin, int64_t full)
{
    uint32_t misses = atomic_load_explicit(&spin->misses, memory_order_relaxed);
    bool pays = misses < WF_SPIN_MISSES || (misses - WF_SPIN_MISSES) % WF_SPIN_RETRY == WF_SPIN_RETRY - 1;
    return pays ? full : full / WF_SPIN_FRACTION;
}

/* An event came while the thread looked (`hit`), or the thread is about to sleep. */
static inline void wf_spin_ended(struct wf_spin *spin, bool hit)
{
    uint32_t misses = atomic_load_explicit(&spin->misses, memory_order_relaxed);
    if (hit && misses == 0)
        return;
    atomic_store_explicit(&spin->misses, hit ? 0 : misses + 1, memory_order_relaxed);
}

/* When one thread, which looks for events again and again, is to sleep. */
struct wf_watch {
    struct wf_spin *spin;
    int64_t full, until_ns;
    bool idle;  /* a look since the last event found nothing */
    bool slept; /* sleep was due since the last event */
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

/* A look found `events` events. An event that the first look finds was not waited for: it does not show whether looking
 * pays. */
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
