/*
 * leave.h: how a channel lets go of its descriptor: after an orderly end, or because it is lost.
 */
#ifndef WF_CORE_SESSION_LEAVE_H
#define WF_CORE_SESSION_LEAVE_H

struct wf_channel;
struct wf_worker;

/* Lets go as far as `worker` is concerned: cancels its operations, and once none is under way detaches its halves.
 * Comes back until nothing is left. Token of `worker` held; no lock. */
void wf_channel_let_go(struct wf_channel *channel, struct wf_worker *worker);

#endif
