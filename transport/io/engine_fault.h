/*
 * engine_fault.h: an engine that injects faults of a network. It stands around an inner engine and keeps the contract
 * of io/engine.h: every injected result is one that a kernel could give. docs/faults.md describes each fault.
 *
 * One struct wf_fault serves all engines of a context: they share one count of bytes and one source of chance.
 */
#ifndef WF_IO_ENGINE_FAULT_H
#define WF_IO_ENGINE_FAULT_H

#include "base/clock.h"
#include "base/log.h"
#include "io/engine.h"
#include "io/fault.h"

struct wf_fault;

struct wf_fault_options {
    const char *spec; /* the text of the setting `fault` */
    const struct wf_fault_rail *rails;
    int rail_count;
    const struct wf_clock *clock; /* used by any thread; time counts from wf_fault_create() */
    const struct wf_log *log;     /* gets a line at level info for each fault, except for shortened calls */
};

/* -EINVAL, -ENOMEM. `rails`, `clock` and `log` must live longer than `*out`. */
int wf_fault_create(const struct wf_fault_options *options, struct wf_fault **out, struct wf_status *status);

/* Every engine and descriptor must be closed before. NULL is allowed. */
void wf_fault_destroy(struct wf_fault *fault);

/*
 * The outer engine around `engine`, whose host is `host`. The outer engine has the host `fault` and the inner name.
 * A later call may choose another `engine` once all engines are closed. The result lives as long as `fault`.
 */
const struct wf_engine_ops *wf_fault_around(struct wf_fault *fault, const struct wf_engine_ops *engine, void *host);

/* The inner engine of `engine`; `engine` itself if it injects no faults. */
struct wf_engine *wf_fault_within(struct wf_engine *engine);

/* Counts of the faults injected so far. */
struct wf_fault_counts {
    uint64_t resets, flips; /* connections reset and bits flipped by the bytes that moved */
    uint64_t shortened;     /* calls that were given fewer bytes to move */
    uint64_t stalls, drops; /* stalls and drops of rails that have begun */
    uint64_t cut, refused;  /* connections reset because their rail was gone; connects and accepts refused */
};

/* Any thread may call it. */
void wf_fault_count(struct wf_fault *fault, struct wf_fault_counts *out);

#endif
