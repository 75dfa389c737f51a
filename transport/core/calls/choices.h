/*
 * choices.h: what a context makes of its settings and of its machine while it is created, before it has a thread.
 * Errors name the setting or the limit and what to do about it.
 */
#ifndef WF_CORE_CALLS_CHOICES_H
#define WF_CORE_CALLS_CHOICES_H

#include "base/config.h"
#include "base/status.h"

struct weft_context;
struct wf_tuning;

/* The numbers, in the units that the core works with. */
void wf_choose_tuning(const struct wf_config *config, struct wf_tuning *tuning);

/* How many workers there are, and whether one serves all rails. With the rails found. */
void wf_choose_workers(struct weft_context *context, const struct wf_config *config);

/* -EINVAL or the system's error: it is no congestion control that this process may use. */
int wf_choose_congestion(struct weft_context *context, const struct wf_config *config, struct wf_status *status);

/* The most bytes in one call, with rails and engine chosen. -EINVAL: too few. */
int wf_choose_call(struct weft_context *context, struct wf_status *status);

/* Channels, listeners, engines: what a session will need, against what the process may open. -EMFILE: too few. */
int wf_check_descriptors(const struct weft_context *context, struct wf_status *status);

#endif
