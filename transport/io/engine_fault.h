/*
 * engine_fault.h: an engine that behaves as badly as a network may. It stands around another one and has its contract
 * (io/engine.h): what it injects is what a kernel could have answered. docs/faults.md says what each fault does.
 *
 * One struct wf_fault serves all engines of a context: bytes are counted, and chance decides, for all of them together.
 */
#ifndef WF_IO_ENGINE_FAULT_H
#define WF_IO_ENGINE_FAULT_H

#include "base/clock.h"
#include "base/log.h"
#include "io/engine.h"
#include "io/fault.h"

struct wf_fault;

struct wf_fault_options {
    const char *spec; /* as of the setting `fault` */
    const struct wf_fault_rail *rails;
    int rail_count;
    const struct wf_clock *clock; /* any thread; time counts from the creation */
    const struct wf_log *log;     /* a line at level info for each fault, except for shortened calls */
};

/* -EINVAL, -ENOMEM. What the options point at must outlive it. */
int wf_fault_create(const struct wf_fault_options *options, struct wf_fault **out, struct wf_status *status);

/* Every engine and descriptor has been closed before. NULL is fine. */
void wf_fault_destroy(struct wf_fault *fault);

/*
 * The engine around `engine`, which gets `host`. Its own host is the struct wf_fault; its name is that of `engine`.
 * Another one may be chosen once all engines are closed. Lives as long as `fault`.
 */
const struct wf_engine_ops *wf_fault_around(struct wf_fault *fault, const struct wf_engine_ops *engine, void *host);

/* The engine within one of these; any other engine is its own. */
struct wf_engine *wf_fault_within(struct wf_engine *engine);

/* What has been injected so far. */
struct wf_fault_counts {
    uint64_t resets, flips; /* connections reset and bits flipped by the bytes that moved */
    uint64_t shortened;     /* calls made to move less */
    uint64_t stalls, drops; /* times that began */
    uint64_t cut, refused;  /* connections reset because their rail was gone, and connects and accepts refused */
};

/* Any thread may call it. */
void wf_fault_count(struct wf_fault *fault, struct wf_fault_counts *out);

#endif
