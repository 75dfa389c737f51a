/*
 * match.h: only the receiver matches, in the order of the dense message numbers of a connection. A receive takes the
 * first message whose tag agrees with its own in the bits of its mask (all, none, or some); a message takes the first
 * receive posted that would take it. A receive that is too small for its message ends, and the message stays where it
 * is.
 * All with the session's lock held; calls that land a message may drop it while copying.
 */
#ifndef WF_CORE_MESSAGE_MATCH_H
#define WF_CORE_MESSAGE_MATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "core/request/request.h"
#include "weft.h"

struct weft_connection;
struct weft_request;
struct wf_frame;
struct wf_inbound;
struct wf_desk;

#define WF_MASK_EXACT UINT64_MAX
#define WF_MASK_ANY 0

/* The bits of the tag in which a message must agree with a receive that has these flags. */
static inline uint64_t wf_match_mask(uint32_t flags, uint64_t tag_mask)
{
    if (flags & WEFT_ANY_TAG)
        return WF_MASK_ANY;
    return flags & WEFT_TAG_MASK ? tag_mask : WF_MASK_EXACT;
}

/* The operations of RECV and NOTE requests. */
extern const struct wf_request_ops wf_receive_ops;

/* Has every byte for the receive come? Then it only waits for copies to a device, or for its turn in a stream. */
bool wf_match_is_here(const struct weft_request *request);

/* A receive was posted: matches it, or keeps it. */
void wf_match_receive(struct weft_request *request);

/* A message was introduced, or finished without that: matches every message of the connection that is in order now. */
void wf_match_advance(struct weft_connection *connection);

/* The next message to be matched has come whole. It is new, and no receive of its connection is posted for it: it waits
 * in the pool, or goes to a receive of its endpoint, and those behind it follow. The caller has a pin. False: no
 * memory; nothing has changed. */
bool wf_match_keep_whole(struct weft_connection *connection, const struct wf_frame *frame, const uint8_t *payload);

/* Message `number` has ended: its notifications may go to the user now. */
void wf_match_release_notes(struct weft_connection *connection, uint64_t number);

/* The receive of a parked message may be written to now. The message may be gone afterwards. */
void wf_match_unpark(struct wf_inbound *inbound);

/* Hands out notifications that have become due, and ends what waits for one where none can come any more. May drop the
 * lock. */
void wf_match_notes(struct wf_desk *desk);

/* Is there one that no receive has got so far, or whose operation has not ended? CLOSE may overtake that. */
bool wf_match_notes_to_come(const struct weft_connection *connection);

/* Is the receive for messages with this tag? */
bool wf_match_takes(const struct weft_request *request, uint64_t tag);

/* The message waits: it goes to the first receive of its endpoint that is for it. True: it went. May drop the lock. */
bool wf_match_offer(struct wf_inbound *inbound);
/* The same for every message that waits on the connection: the user has got it, and its endpoint may have receives. */
void wf_match_offer_all(struct weft_connection *connection);

/* The message that a receive for `tag` under `mask` takes: the first unmatched one that agrees. NULL: none is here. */
struct wf_inbound *wf_match_waiting(struct weft_connection *connection, uint64_t tag, uint64_t mask);

/* Can all of the message come? Not once the peer has closed the session or is lost, unless it is here. */
bool wf_match_can_come(const struct wf_inbound *inbound);

/* 0, or why no message will come on the connection that is not here now. */
int wf_match_over(const struct weft_connection *connection);

/* The receive that a message with `tag` belongs to: the one posted first. NULL: none is. */
struct weft_request *wf_match_posted(struct weft_connection *connection, uint64_t tag);

/* Takes a receive that is not matched off its lists. */
void wf_match_withdraw(struct weft_request *request);

/* Takes a message off the unmatched lists. */
void wf_match_remove(struct wf_inbound *inbound);

#endif
