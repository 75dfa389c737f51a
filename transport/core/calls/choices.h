/*
 * choices.h: what a context chooses from its settings and its machine while it is created, before it has a thread.
 * Errors name the setting or the limit, and what to do about it.
 */
#ifndef WF_CORE_CALLS_CHOICES_H
#define WF_CORE_CALLS_CHOICES_H

#include "base/config.h"
#include "base/status.h"
#include "wire/hello.h"

struct weft_context;
struct wf_tuning;

/* Reads the settings that are numbers, in the units that the core uses. */
void wf_choose_tuning(const struct wf_config *config, struct wf_tuning *tuning);

/* The family of the rails' addresses: AF_INET, AF_INET6, or AF_UNSPEC for both. */
int wf_chosen_family(const struct wf_config *config);

/* How many workers there are, and whether one serves all rails. Call it once the rails are found. */
void wf_choose_workers(struct weft_context *context, const struct wf_config *config);

/* Sets the congestion control. -EINVAL or the system's error: this process may not use it. */
int wf_choose_congestion(struct weft_context *context, const struct wf_config *config, struct wf_status *status);

/* Reads the marks of the traffic classes. -EINVAL: the list, or a value in it, makes no sense. */
int wf_choose_dscp(const struct wf_config *config, int dscp[WF_CLASSES], struct wf_status *status);

/* The most bytes in one call; rails and engine are chosen before. -EINVAL: the setting `call` is too small. */
int wf_choose_call(struct weft_context *context, struct wf_status *status);

/* Compares the descriptors that a session needs for channels, listeners and engines with the limit of the process.
 * -EMFILE: the limit is too low. */
int wf_check_descriptors(const struct weft_context *context, struct wf_status *status);

#endif
