/*
 * alarm.h: when the door's thread visits the sessions next, and the bell that wakes that thread. Any room may ask for a
 * visit.
 */
#ifndef WF_CORE_GROUND_ALARM_H
#define WF_CORE_GROUND_ALARM_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/clock.h"
#include "io/engine.h"

/* Owner: the context. All zero: no engine listens yet, and wf_alarm_by() does nothing. */
struct wf_alarm {
    struct wf_engine *_Atomic engine; /* the door's; its wake() is the bell */
    _Atomic int64_t due_ns;           /* of the next visit */
};

/* Asks for a visit no later than `when_ns`. Any thread, any lock. */
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

/* From now on `engine`'s wake() is the bell, and a visit is due at once. NULL: no engine listens any more. */
static inline void wf_alarm_listen(struct wf_alarm *alarm, struct wf_engine *engine)
{
    atomic_store(&alarm->due_ns, 0);
    atomic_store(&alarm->engine, engine);
}

/* A visit begins: a later call of wf_alarm_by() asks for the next one. */
static inline void wf_alarm_taken(struct wf_alarm *alarm)
{
    atomic_store(&alarm->due_ns, WF_NEVER);
}

#endif
