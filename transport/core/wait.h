/*
 * wait.h: how a caller waits. With a shared worker it takes the drive token and makes the progress itself: spinning for
 * `spin_us` after the last event, then asleep in the engine. When another thread drives it sleeps until one of its
 * requests ends or the token is free.
 */
#ifndef WF_CORE_WAIT_H
#define WF_CORE_WAIT_H

#include <stdbool.h>

struct weft_context;
struct weft_request;

/* A request has just ended: wakes the thread that sleeps for it. `request` is compared, not read. */
void wf_wait_completed(struct weft_context *context, struct weft_request *request);

/* The drive token is free: wakes a sleeping caller, who may want it. True if there was one. */
bool wf_wait_token_free(struct weft_context *context);

#endif
