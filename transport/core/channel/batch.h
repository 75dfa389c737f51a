/*
 * batch.h: the send half's work: frames are gathered under the session's lock and posted without it.
 */
#ifndef WF_CORE_CHANNEL_BATCH_H
#define WF_CORE_CHANNEL_BATCH_H

#include "core/channel/channel.h"

/* --- the batch, token held --- */

/* Frames are gathered into the next operation between begin and end; all with the session's lock held. */
void wf_batch_begin(struct wf_channel *channel);
/* Is there room for one more, whatever its payload? */
static inline bool wf_batch_has_room(const struct wf_channel *channel)
{
    return channel->tx.frame_count < WF_BATCH_FRAMES && channel->tx.iov_count + WF_TX_SEGMENTS_LEFT <= WF_TX_SEGMENTS;
}
/* Adds a header, and the payload of `outbound` if there is one. */
void wf_batch_add(struct wf_channel *channel, struct wf_frame *frame, const struct wf_outbound *outbound);
/* The same of a frame that is counted, and kept until the peer has disposed of it; the window is open. */
void wf_batch_add_sequenced(struct wf_channel *channel, struct wf_frame *frame, struct wf_outbound *outbound);
/* Adds the pattern that the payload stream begins with, and the frame that says so. */
void wf_batch_add_pattern(struct wf_channel *channel);
/* Fills STATE: the frames that this side has disposed of, and the window that it grants. */
void wf_batch_state_frame(struct wf_channel *channel, struct wf_frame *frame);
/* The messages of the last batch are no longer referred to by the kernel. Session lock held. */
void wf_channel_release_batch(struct wf_channel *channel);
/* Posts the batch. Sums its payloads before (setting crc), without a lock: that takes long. No lock. */
void wf_channel_post_send(struct wf_channel *channel);

/* --- acknowledgements, session lock held --- */

/* The next sequenced frame that a total of `disposed` covers, which is kept no longer. False: there is none. */
bool wf_tx_next_retired(struct wf_channel *channel, uint64_t disposed, struct wf_retained *retained);
/* Adds payload that was acknowledged since the total was `before` to the rate. */
void wf_tx_note_rate(struct wf_channel *channel, uint64_t before);

#endif
