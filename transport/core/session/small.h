/*
 * small.h: the short way of a small message whose receive is posted. It comes in one frame, whole, in its turn, and
 * lies in the read-ahead buffer: then it needs no landing, no claim and no place in the unexpected pool, which the
 * general way (arrive.c) would give it for a moment. What peer and user see is the same.
 */
#ifndef WF_CORE_SESSION_SMALL_H
#define WF_CORE_SESSION_SMALL_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/frame.h"

struct wf_channel;

/* Lands the message of `frame`, whose payload is at `payload`, and completes its receive. False: it does not go this
 * way, and nothing has changed that the general way would not do the same. Session lock held. */
bool wf_small_land(struct wf_channel *channel, const struct wf_frame *frame, const uint8_t *payload);

#endif
