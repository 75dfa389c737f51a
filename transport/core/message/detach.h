/*
 * detach.h: messages whose payload goes on device channels (core/channel/payload.h): those for GPU memory whose
 * receiver has said so with its GRANT, as long as such a channel is up.
 *
 * Sender: the message leaves the line of its connection for that of its strand, where device channels take its chunks.
 * If it lies in memory that the card knows, its bytes go from there; else they are staged as ever. With the last
 * channel of the strand it goes back to its connection, and what is not sent yet is staged, and bound to the receiver's
 * grants again.
 *
 * All with the session's lock held.
 */
#ifndef WF_CORE_MESSAGE_DETACH_H
#define WF_CORE_MESSAGE_DETACH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "wire/frame.h"

struct wf_channel;
struct wf_desk;
struct wf_card_loan;
struct wf_outbound;

/* The peer takes all of the message on channels of its domain; nothing changes if none is up. */
void wf_detach(struct wf_outbound *outbound, uint64_t domain);

/* The next chunk for a device channel, as wf_next_bulk(); NULL: there is none that it may carry now. */
struct wf_outbound *wf_detached_next(struct wf_desk *desk, struct wf_channel *channel, struct wf_frame *frame);
/* An idle channel looks at the message. False: none that might take it is idle. */
bool wf_detached_offer(struct wf_outbound *outbound);
/* The channel has its operation full: idle ones look at what is left for the strand. */
void wf_detached_pass_on(struct wf_desk *desk, const struct wf_channel *channel);
/* Has the channel's strand anything to send? */
bool wf_detached_any(const struct wf_desk *desk, const struct wf_channel *channel);

/* Does it go on as it has? True: no channel of its strand is up, and it has gone back to its connection. Also ends a
 * loan that no card with such a channel has. A message that waits for slots or acknowledgements is in no line, so it
 * asks when it comes back to one. */
bool wf_detached_revise(struct wf_outbound *outbound);
/* A channel of the strand is up no more. */
void wf_detached_review(struct wf_desk *desk, int strand);

/* Calls of a channel (wf_channel_ops). */
const struct wf_card_loan *wf_detached_loan(const struct wf_channel *channel, const struct wf_outbound *outbound);
int wf_detached_places(const struct wf_channel *channel, const struct wf_outbound *outbound, uint64_t offset,
                       uint64_t length, struct iovec *iov, int max, uint64_t *covered);

/* The message's bytes [offset, offset + length) are in host memory, where any channel can take them: 1. 0: copies to
 * slots are under way, or wait for a slot. For a chunk that is sent again. */
bool wf_detached_is_staged(struct wf_outbound *outbound, uint64_t offset, uint32_t length);

#endif
