/*
 * counter.h: counters that are written by one thread at a time (the holder of a lock or of a token) and read by any. An
 * addition is a plain load and store: every message adds to counters, and a locked instruction would cost a tenth of
 * the message.
 */
#ifndef WF_CORE_GROUND_COUNTER_H
#define WF_CORE_GROUND_COUNTER_H

#include <stdatomic.h>
#include <stdint.h>

static inline void wf_counter_add(_Atomic uint64_t *counter, uint64_t amount)
{
    uint64_t before = atomic_load_explicit(counter, memory_order_relaxed);
    atomic_store_explicit(counter, before + amount, memory_order_relaxed);
}

#endif
