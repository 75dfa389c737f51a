/*
 * engines.h: which engine a context has, and the workers and the door, each with an engine of its own.
 */
#ifndef WF_CORE_CALLS_ENGINES_H
#define WF_CORE_CALLS_ENGINES_H

#include "base/config.h"
#include "base/status.h"

struct weft_context;

/* Sets world.engine_ops and engine_host, wrapped as the settings `fault` and `encrypt` ask. The rails are found before.
 * -errno: an engine, faults or encryption that a setting asks for cannot work here. */
int wf_engines_choose(struct weft_context *context, const struct wf_config *config, struct wf_status *status);

/* Makes the door and `workers` workers. crew.count, 0 before, is the number of workers made, also after a failure. */
int wf_engines_create(struct weft_context *context, const struct wf_config *config, int workers,
                      struct wf_status *status);

/* Destroys the workers and the door. Every channel has let go of its descriptor, and no thread drives any more. */
void wf_engines_destroy(struct weft_context *context);

#endif
