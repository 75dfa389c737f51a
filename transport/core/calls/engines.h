/*
 * engines.h: which engine a context has, and the workers and the door that have one each.
 */
#ifndef WF_CORE_CALLS_ENGINES_H
#define WF_CORE_CALLS_ENGINES_H

#include "base/config.h"
#include "base/status.h"

struct weft_context;

/* Sets world.engine_ops and engine_host, with what the settings `fault` and `encrypt` ask for around it. -errno: what
 * was asked for cannot work here. After the rails have been found. */
int wf_engines_choose(struct weft_context *context, const struct wf_config *config, struct wf_status *status);

/* The door and `workers` workers; context.worker_count, 0 before, tells how many there are, also after a failure. */
int wf_engines_create(struct weft_context *context, const struct wf_config *config, int workers,
                      struct wf_status *status);

/* Every channel has let go of its descriptor, no thread drives any more. */
void wf_engines_destroy(struct weft_context *context);

#endif
