/*
 * placement.h: where the threads of a context run. affinity/ makes the plan (plain data, affinity/plan.h); the core
 * follows it, and reports where the threads really are.
 *
 * With pin = auto only one thing here makes a context fail: bindings of the user that are impossible. If the system
 * refuses to pin a thread, a fallback is noted. With pin = require that is an error.
 */
#ifndef WF_CORE_CALLS_PLACEMENT_H
#define WF_CORE_CALLS_PLACEMENT_H

#include <stdint.h>

#include "affinity/cpus.h"
#include "affinity/plan.h"
#include "base/config.h"
#include "base/status.h"
#include "core/drive/worker.h"

struct weft_context;

/* Makes the plan. The rails and the number of workers are known; no thread runs yet. */
int wf_placement_plan(struct weft_context *context, const struct wf_config *config, struct wf_status *status);
void wf_placement_free(struct wf_placement *placement);

/* The rails of the context, as bits by index, that carry large messages of an endpoint on this node; WF_RAILS_ANY: all.
 */
uint64_t wf_placement_rails(const struct weft_context *context, int node);

#endif
