/*
 * inbound_parts.h: what the other files of the room ask of an incoming message. All with the session's lock held.
 */
#ifndef WF_CORE_MESSAGE_INBOUND_PARTS_H
#define WF_CORE_MESSAGE_INBOUND_PARTS_H

#include "core/message/inbound.h"

/* Does the sender wait until it is told that all bytes have landed? */
static inline bool wf_inbound_confirms(const struct wf_inbound *inbound)
{
    return inbound->kind == WF_INBOUND_WRITE ||
           (inbound->kind == WF_INBOUND_MESSAGE && inbound->base == WF_BASE_LANDED);
}

/* READING: the number of its READ. */
void wf_inbound_expect(struct wf_inbound *inbound, uint64_t number);

/* SERVED: its reply has ended. `inbound` is gone afterwards. */
void wf_inbound_served(struct wf_inbound *inbound);

/* Refuses the notification of a refused operation, also if that notification has not come yet. */
void wf_inbound_refuse_note(struct wf_inbound *inbound, int status);

/* Gives the blocks back to the pool and their credit to the sender, once the burst is in its place. */
void wf_inbound_settle(struct wf_inbound *inbound);

/* Copies all of it, which lies in the pool, and frees it. Its number is to be finished. */
void wf_inbound_take_whole(struct wf_inbound *inbound, void *to);

/* Lands a matched message in its receive: copies what the pool holds. May drop the session lock while copying. */
void wf_inbound_land(struct wf_inbound *inbound);

#endif
