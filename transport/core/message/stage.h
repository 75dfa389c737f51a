/*
 * stage.h: the way of a message's bytes between device memory and the channels, by slots of host memory.
 *
 *     user's device memory  --copy-->  slot  --channel-->  wire  --channel-->  slot  --copy-->  user's device memory
 *
 * Sender: slots are filled ahead of the channels, in the order of the bytes, and only with bytes that may be sent
 * (granted, or in need of no grant). So every filled slot becomes free again, and no message waits for ever for a slot
 * that another one holds. A slot is given back when the peer has acknowledged its bytes; a re-send needs no second
 * copy. Small messages have slots of their own, where they may also wait for a grant.
 *
 * Receiver: a channel takes a slot with the header of a chunk and receives into it; with the last byte the chunk counts
 * as arrived and is acknowledged, the slot's copy takes over the channel's claim on the message, and the channel goes
 * on. Without a slot the channel waits (rx.held): for copies, which end by themselves, never for a peer or a user.
 *
 * All with the session's lock held, but for wf_stage_start().
 */
#ifndef WF_CORE_MESSAGE_STAGE_H
#define WF_CORE_MESSAGE_STAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

struct wf_channel;
struct wf_inbound;
struct wf_outbound;
struct wf_desk;
struct wf_transit;

/* --- sender --- */

/* Takes free slots for the bytes that may be staged now, if a slot is worth it, and queues the copies. */
void wf_stage_out_more(struct wf_outbound *outbound);
/* The message needs no slot any more. */
void wf_stage_out_withdraw(struct wf_outbound *outbound);
/* Messages that found no slot try again. */
void wf_stage_out_retry(struct wf_desk *desk);
/* The session is over: no message waits for a slot any more. */
void wf_stage_out_forget(struct wf_desk *desk);
/* Is a small message on its way to a slot, from which it is about to go? Then it needs no OFFER. */
bool wf_stage_out_soon(const struct wf_outbound *outbound);
/* As wf_outbound_places(); `iov` may be NULL: they are only counted. */
int wf_stage_out_places(const struct wf_outbound *outbound, uint64_t offset, uint64_t length, struct iovec *iov,
                        int max, uint64_t *covered);
/* How many of `length` bytes from `offset` on have `max` places. */
uint64_t wf_stage_out_fit(const struct wf_outbound *outbound, uint64_t offset, uint64_t length, int max);
/* These bytes were acknowledged. */
void wf_stage_out_retire(struct wf_outbound *outbound, uint64_t offset, uint32_t length);
/* Are these bytes, which were sent once and are to be sent again, in slots? If not, takes slots for them and queues the
 * copies, as far as slots are free now; ask again when one has ended, or a slot came back. */
bool wf_stage_out_again(struct wf_outbound *outbound, uint64_t offset, uint32_t length);
/* The message ends: gives back what is left. No copy is under way. */
void wf_stage_out_drop(struct wf_outbound *outbound);

/* --- receiver --- */

/*
 * Up to where the peer may send a message for device memory: as far ahead of its copies as there are slots for, shared
 * with the other messages of the session for that device. So a device that is slow fills slots with a little of each
 * message, and not the channels, which others need. (A write asks for no grant: it can.)
 */
uint64_t wf_stage_in_limit(struct wf_inbound *inbound);
/* May bytes up to `end` come? */
bool wf_stage_in_promised(const struct wf_inbound *inbound, uint64_t end);
/* The message begins to land, and ends. */
void wf_stage_in_begin(struct wf_inbound *inbound);
void wf_stage_in_end(struct wf_inbound *inbound);

/* A slot for the payload whose header has arrived and that is claimed; false: none now, and the channel will be told.
 */
bool wf_stage_in_take(struct wf_channel *channel);
/* The channel lets go of a slot that was not filled, if it has one. */
void wf_stage_in_drop(struct wf_channel *channel);
/* The payload has come, in a slot or as fragments: copies it to the claimed message's place, and ends the channel's
 * claim once the copies have theirs. Without memory for a copy the message is refused, and a session with a device
 * channel fails. */
void wf_stage_in_start(struct wf_channel *channel);
/* Of a device channel: what has come of the claimed payload as fragments is copied, and more is to come. 0 or -ENOMEM.
 */
int wf_stage_in_land(struct wf_channel *channel);
/* Copies [start, end) from the unexpected pool to the message's place, with a claim of its own. Without memory for it
 * the message is refused. */
void wf_stage_in_pooled(struct wf_inbound *inbound, uint64_t start, uint64_t end);

/* --- no lock; the token of the device's worker --- */

/* Starts the queued copy. 0, or as ops->copy_start(). */
int wf_stage_start(struct wf_transit *transit);

#endif
