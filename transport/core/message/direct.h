/*
 * direct.h: messages between two GPUs of a context that has connected to itself: one copy from memory to memory, not
 * over channels. Only the bytes go this way: introduction, match, refusal and the end still go over channels.
 *
 * The receiver's session asks for the copy instead of sending GRANT. Until the device has ended the copy, it has a
 * claim on the inbound message and counts in `in_engine` of the outbound one. The locks of both sessions are never held
 * together.
 */
#ifndef WF_CORE_MESSAGE_DIRECT_H
#define WF_CORE_MESSAGE_DIRECT_H

#include <stdbool.h>

struct wf_inbound;

/* Asks for the direct copy of a matched message. False: the message is no candidate, or there is no memory to ask with.
 * The receiver's session lock held. */
bool wf_direct_ask(struct wf_inbound *inbound);

#endif
