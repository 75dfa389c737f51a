/*
 * next.h: which outgoing operation goes next, on which channel.
 */
#ifndef WF_CORE_SESSION_NEXT_H
#define WF_CORE_SESSION_NEXT_H

#include <stdbool.h>

#include "wire/frame.h"

struct wf_channel;
struct wf_outbound;

/* The next frame that a channel may send, in the order of the queues. Fills `frame` and updates the message's counts;
 * returns the message whose payload the frame carries, or NULL. For a frame without payload (OFFER, READ, REFUSE):
 * NULL, with `*bare` set. Session lock held. */
struct wf_outbound *wf_next_bulk(struct wf_channel *channel, struct wf_frame *frame);
struct wf_outbound *wf_next_express(struct wf_channel *channel, struct wf_frame *frame, bool *bare);

#endif
