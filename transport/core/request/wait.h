/*
 * wait.h: how a caller waits. With a shared worker it takes the drive token and makes the progress itself: spinning for
 * `spin_us` after the last event, then asleep in the engine. When another thread drives it sleeps until one of its
 * requests ends or the token is free.
 */
#ifndef WF_CORE_REQUEST_WAIT_H
#define WF_CORE_REQUEST_WAIT_H

#include <stdbool.h>

struct weft_context;
struct weft_request;

/* A request has just ended, session lock held. True if a thread sleeps for it: wf_wait_wake() is to be called once the
 * lock is released. */
bool wf_wait_completed(struct weft_context *context, struct weft_request *request);

/* Wakes the threads, and brings the descriptors of the queues up to date, that ended requests ask for. No session lock
 * held: it costs system calls. */
void wf_wait_wake(struct weft_context *context);

/* The drive token is free: wakes a sleeping caller, who may want it. True if there was one. */
bool wf_wait_token_free(struct weft_context *context);

#endif
