/*
 * direct.h: messages between two GPUs of one context that has connected to itself: one copy from memory to memory
 * instead of the way over channels. Everything but the bytes goes over the channels all the same: introduction, match,
 * refusal, the end of either side.
 *
 * The receiver's session asks for the copy where it would have granted; it holds the message's claim, and the sender's
 * session its outbound, until the device has ended. The two sessions' locks are never held together.
 */
#ifndef WF_CORE_MESSAGE_DIRECT_H
#define WF_CORE_MESSAGE_DIRECT_H

#include <stdbool.h>

struct wf_inbound;
struct wf_transit;

/* Asks for the copy of a matched message instead of its bytes; false: it is not one for this, or there is no memory to
 * ask with. The receiver's session lock held. */
bool wf_direct_ask(struct wf_inbound *inbound);

#endif
