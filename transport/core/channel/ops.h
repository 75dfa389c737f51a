/*
 * ops.h: the calls of a channel into the rooms above it.
 */
#ifndef WF_CORE_CHANNEL_OPS_H
#define WF_CORE_CHANNEL_OPS_H

#include "core/channel/channel.h"

struct wf_card_loan;

/* One table, given when the channel is made. Called with the session's lock held; a call drops the lock and takes it
 * again only where its comment says so. */
struct wf_channel_ops {
    /* Where the payload [offset, offset + length) of a message on its way out is; as wf_pieces_places(). */
    int (*out_places)(const struct wf_outbound *outbound, uint64_t offset, uint64_t length, struct iovec *iov, int max,
                      uint64_t *covered);
    /* How the card of the channel's rail knows the message's memory; NULL: it does not. */
    const struct wf_card_loan *(*loan)(const struct wf_channel *channel, const struct wf_outbound *outbound);
    /* As out_places; with a loan, the addresses are offsets for the card. */
    int (*detached_places)(const struct wf_channel *channel, const struct wf_outbound *outbound, uint64_t offset,
                           uint64_t length, struct iovec *iov, int max, uint64_t *covered);
    /* The same of one on its way in, or in the unexpected pool. */
    int (*in_places)(const struct wf_inbound *inbound, bool pooled, uint64_t offset, uint64_t length, struct iovec *iov,
                     int max, uint64_t *covered);
    /* Does it land in the pieces of a list? They may overlap. */
    bool (*is_scattered)(const struct wf_inbound *inbound);
    /* A small message that has come with its header, all of it in `payload`. False: it goes the general way. */
    bool (*land_small)(struct wf_channel *channel, const struct wf_frame *frame, const uint8_t *payload);
    /* A header has arrived. 0; negative: the peer broke the protocol. */
    int (*take_frame)(struct wf_channel *channel, const struct wf_frame *frame);
    /* Finds the place of the DATA frame whose header has arrived. As take_frame(); may set rx.held. */
    int (*place_payload)(struct wf_channel *channel);
    /* The payload of the frame in progress is complete. May drop the lock. */
    void (*finish_payload)(struct wf_channel *channel);
    /* What has come of the payload as fragments begins to be copied, and more of it is to come. 0 or -ENOMEM. */
    int (*land_part)(struct wf_channel *channel);
    /* The same of the pattern that the payload stream begins with; `all`: nothing more of it is to come. May set
     * rx.held, as long as it is not known to be right. 0; negative: it is not, or -ENOMEM. */
    int (*take_pattern)(struct wf_channel *channel, bool all);
    /* The half lets go of its claim and of its slot: the rest of the payload goes to the sink. */
    void (*drop_claim)(struct wf_channel *channel);
    /* A receive has been worked through. May drop the lock. */
    void (*worked_through)(struct wf_channel *channel);
    /* The endpoints that the connection of this number joins, ours and the peer's; UINT32_MAX: there is none. For the
     * trace. */
    void (*endpoints)(const struct wf_channel *channel, uint32_t connection, uint32_t *local, uint32_t *remote);
    /* A batch with chunks that users watch is let go of. */
    void (*watched)(struct wf_channel *channel);
    /* The kernel refers to the message's memory no longer. */
    void (*released)(struct wf_outbound *outbound);
    /* The channel is lost: `doing` says how it showed. */
    void (*lost)(struct wf_channel *channel, int code, const char *doing);
};

#endif
