/*
 * outbound_parts.h: functions shared by outbound.c (how an outgoing operation lives and ends), outbound_refuse.c (how
 * it ends early) and ready.c (which of its bytes may go), and what the room's other files tell of it. All with the
 * session's lock held.
 */
#ifndef WF_CORE_MESSAGE_OUTBOUND_PARTS_H
#define WF_CORE_MESSAGE_OUTBOUND_PARTS_H

#include "core/message/connection.h"
#include "core/message/desk.h"
#include "core/message/outbound.h"
#include "core/message/ready.h"

struct wf_transit;

/* Are its bytes in many places? */
static inline bool wf_outbound_is_scattered(const struct wf_outbound *outbound)
{
    return outbound->pieces && outbound->kind != WF_OUTBOUND_LIST; /* a LIST's bytes are in one place: `upload` */
}

/* Bytes from the start that channels may take. */
static inline uint64_t wf_outbound_ready(const struct wf_outbound *outbound)
{
    if (outbound->lent && outbound->waits) /* the card would read what the stream has not written yet */
        return 0;
    bool staged = outbound->device && !outbound->lent;
    return staged && outbound->staged < outbound->sendable ? outbound->staged : outbound->sendable;
}

/* So many bytes more, or less, of it wait for a bulk channel. */
static inline void wf_outbound_wait(struct wf_outbound *outbound, int64_t bytes)
{
    if (outbound->detached == 0)
        wf_desk_wait(outbound->connection->desk, outbound->connection->traffic, bytes);
}

/* Is it small enough for one frame on the express channel? */
static inline bool wf_outbound_is_small(const struct wf_outbound *outbound)
{
    return outbound->total <= outbound->connection->desk->terms->eager && !wf_outbound_is_scattered(outbound);
}

/* Does it go on express channels only? It has little payload or none. */
static inline bool wf_outbound_is_express(const struct wf_outbound *outbound)
{
    return outbound->refused || outbound->kind == WF_OUTBOUND_READ || wf_outbound_is_small(outbound);
}

/* One DATA frame more (1) or less (-1) that the peer has not acknowledged. */
static inline void wf_outbound_count(struct wf_outbound *outbound, int by)
{
    bool bulk = outbound->kind == WF_OUTBOUND_REPLY || !wf_outbound_is_small(outbound);
    outbound->unacknowledged += (uint32_t)by;
    if (bulk)
        outbound->connection->desk->bulk_frames[outbound->connection->traffic] += (uint32_t)by;
}

/* Fills a frame of this type about the message. */
void wf_outbound_frame(const struct wf_outbound *outbound, enum wf_frame_type type, struct wf_frame *frame);

/* Bytes up to `sendable` may go: adds the new ones to wf_desk.waiting. */
void wf_outbound_allow(struct wf_outbound *outbound, uint64_t sendable);

/* Joins or leaves connection.pending, the line of messages that are to be introduced. */
void wf_outbound_join_line(struct wf_outbound *outbound, bool first);
void wf_outbound_leave_line(struct wf_outbound *outbound);

/* Completes its request, if that has not ended, with `status`. */
void wf_outbound_complete(struct wf_outbound *outbound, int status);

/* Ends the message if it waits for nothing more. `outbound` may be gone afterwards. */
void wf_outbound_check(struct wf_outbound *outbound);

/* Frees it, and lets the operations go on that waited for its end. */
void wf_outbound_destroy(struct wf_outbound *outbound);

/* Ends a message that is not introduced. A number or a list that the peer knows of it is taken back by REFUSE, in its
 * turn. `outbound` may be gone afterwards. */
void wf_outbound_refuse_unheard(struct wf_outbound *outbound, int status);

/* --- what served.c, direct.c and the stage tell of it --- */

/* Starts sending the answer to the peer's READ `number`. */
void wf_outbound_reply(struct wf_outbound *outbound, uint64_t number);

/* READ: its reply has landed, or will not. `outbound` may be gone afterwards. */
void wf_outbound_answered(struct wf_outbound *outbound);

/* The direct copy of the whole message has ended or failed (direct.h): returns whether the message was delivered.
 * `outbound` may be gone afterwards. */
bool wf_outbound_direct_ended(struct wf_outbound *outbound, const struct wf_transit *transit);

/* A copy to one of its slots has ended, or failed. `outbound` may be gone afterwards. */
void wf_outbound_staged(struct wf_outbound *outbound, const struct wf_transit *transit);

/* Nothing more of it is handed to a channel. */
void wf_outbound_stop(struct wf_outbound *outbound);

#endif
