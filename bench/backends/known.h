/*
 * known.h: the registrations by which a context of Weft knows the GPU memory that messages lie in. Host memory need not
 * be registered.
 */
#ifndef WF_BENCH_KNOWN_H
#define WF_BENCH_KNOWN_H

#include "base/status.h"
#include "bench/nodes/link.h"
#include "weft.h"

struct bench_arena;

/* What a context knows of a place of the arena; NULL: host memory, or nothing. */
struct bench_known {
    struct weft_registration *stream, *landings;
};

/* `out`: by place of the link's arena, to be freed, also when this failed; NULL: host memory. */
int bench_known_make(const struct bench_link *link, struct weft_context *context, struct bench_known **out,
                     struct wf_status *status);

/* Waits for what is under way: only where nothing is. `known` is not freed; NULL is allowed. */
void bench_known_forget(const struct bench_known *known, const struct bench_arena *arena);

#endif
