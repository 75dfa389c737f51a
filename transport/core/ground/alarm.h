/*
 * alarm.h: when the door's thread looks at the sessions next, and the bell that wakes it. Any room may ask for a visit.
 */
#ifndef WF_CORE_GROUND_ALARM_H
#define WF_CORE_GROUND_ALARM_H

#include <stdatomic.h>
#include <stdint.h>

#include "io/engine.h"

/* Owner: the context. All zero: nobody listens yet, and nothing has to. */
struct wf_alarm {
    struct wf_engine *_Atomic engine; /* whose wake() is the bell: the door's */
    _Atomic int64_t due_ns;           /* of the next visit */
};

/* The sessions are looked at no later than `when_ns`. Any thread, any lock. */
static inline void wf_alarm_by(struct wf_alarm *alarm, int64_t when_ns)
{
    struct wf_engine *engine = atomic_load(&alarm->engine);
    if (!engine)
        return;
    int64_t known = atomic_load(&alarm->due_ns);
    while (when_ns < known)
        if (atomic_compare_exchange_weak(&alarm->due_ns, &known, when_ns)) {
            engine->ops->wake(engine);
            return;
        }
}

/* The bell is `engine`'s wake from now on, and a visit is due; NULL: nobody listens any more. */
static inline void wf_alarm_listen(struct wf_alarm *alarm, struct wf_engine *engine)
{
    atomic_store(&alarm->due_ns, 0);
    atomic_store(&alarm->engine, engine);
}

/* A visit begins: requests for one are heard from here on. */
static inline void wf_alarm_taken(struct wf_alarm *alarm)
{
    atomic_store(&alarm->due_ns, INT64_MAX);
}

#endif
