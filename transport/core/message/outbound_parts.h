/*
 * outbound_parts.h: what outbound.c (how an outgoing operation lives and ends), outbound_refuse.c (how it ends early)
 * and ready.c (what of it may go) share. All with the session's lock held.
 */
#ifndef WF_CORE_MESSAGE_OUTBOUND_PARTS_H
#define WF_CORE_MESSAGE_OUTBOUND_PARTS_H

#include "core/message/connection.h"
#include "core/message/desk.h"
#include "core/message/outbound.h"
#include "core/message/ready.h"

/* Its bytes are in many places. */
static inline bool wf_outbound_is_scattered(const struct wf_outbound *outbound)
{
    return outbound->pieces && outbound->kind != WF_OUTBOUND_LIST; /* whose bytes tell of pieces */
}

/* Bytes from the start that channels may take. */
static inline uint64_t wf_outbound_ready(const struct wf_outbound *outbound)
{
    return outbound->device && outbound->staged < outbound->sendable ? outbound->staged : outbound->sendable;
}

/* Small enough for one frame on the express channel. */
static inline bool wf_outbound_is_small(const struct wf_outbound *outbound)
{
    return outbound->total <= outbound->connection->desk->terms->eager && !wf_outbound_is_scattered(outbound);
}

/* Goes by the express channels, or not at all: without payload, or with little. */
static inline bool wf_outbound_is_express(const struct wf_outbound *outbound)
{
    return outbound->refused || outbound->kind == WF_OUTBOUND_READ || wf_outbound_is_small(outbound);
}

/* One DATA frame of it more, or less, that the peer has not acknowledged. */
static inline void wf_outbound_count(struct wf_outbound *outbound, int by)
{
    bool bulk = outbound->kind == WF_OUTBOUND_REPLY || !wf_outbound_is_small(outbound);
    outbound->unacknowledged += (uint32_t)by;
    if (bulk)
        outbound->connection->desk->bulk_frames += (uint32_t)by;
}

/* A frame that speaks of it. */
void wf_outbound_frame(const struct wf_outbound *outbound, enum wf_frame_type type, struct wf_frame *frame);

/* Bytes up to `sendable` may go: they wait for a channel. */
void wf_outbound_allow(struct wf_outbound *outbound, uint64_t sendable);

/* The line of those that wait to be introduced. */
void wf_outbound_join_line(struct wf_outbound *outbound, bool first);
void wf_outbound_leave_line(struct wf_outbound *outbound);

/* Its request, if it has one left, ends with `status`. */
void wf_outbound_complete(struct wf_outbound *outbound, int status);

/* Ends what has nothing to wait for any more. `outbound` may be gone afterwards. */
void wf_outbound_check(struct wf_outbound *outbound);

/* Frees it, and lets go what waited for its end. */
void wf_outbound_destroy(struct wf_outbound *outbound);

/* Ends one that the peer has not heard of. What was announced for it must be taken back, in its turn. It may be gone
 * afterwards. */
void wf_outbound_refuse_unheard(struct wf_outbound *outbound, int status);

#endif
