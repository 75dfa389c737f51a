/*
 * small.h: the short way of a small message. The message is the next to be matched, and its one frame lies whole in the
 * read-ahead buffer. If its receive is posted it needs no struct wf_inbound and no blocks of the unexpected pool, which
 * the general way (arrive.c) would give it for a moment. If none is, it is put there whole. In neither case does the
 * channel need a claim. Peer and user see no difference.
 */
#ifndef WF_CORE_SESSION_SMALL_H
#define WF_CORE_SESSION_SMALL_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/frame.h"

struct wf_channel;

/* Copies the message of `frame`, whose payload is at `payload`, into its receive and completes it, or into the pool.
 * False: the message must take the general way; the acknowledgement in `frame` may have been taken. Session lock held,
 * which may be dropped. */
bool wf_small_land(struct wf_channel *channel, const struct wf_frame *frame, const uint8_t *payload);

#endif
