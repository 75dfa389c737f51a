/*
 * leave.h: how a channel lets go of its descriptor, after an orderly end or a loss.
 */
#ifndef WF_CORE_SESSION_LEAVE_H
#define WF_CORE_SESSION_LEAVE_H

struct wf_channel;
struct wf_worker;

/* Lets go of the halves that `worker` drives: cancels their operations; once none is under way, detaches the halves.
 * Is called again until both halves are detached. Token of `worker` held; no lock. */
void wf_channel_let_go(struct wf_channel *channel, struct wf_worker *worker);

#endif
