/*
 * desk.h: what of a session's messages, connections and receives there is.
 */
#ifndef WF_CORE_MESSAGE_DESK_H
#define WF_CORE_MESSAGE_DESK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/pool.h"
#include "core/message/inbound.h"
#include "wire/finished.h"

#define WF_HASH_SIZE 1024
#define WF_CONNECTIONS_MAX 65536           /* of one session at a time */
#define WF_INTRODUCTIONS_SHARED (1u << 20) /* that its connections have been promised, beside */
#define WF_INTRODUCTIONS_FEW 16            /* that each of them has: two are enough for all that waits to end */

/* Owner: session lock. */
struct wf_desk {
    struct wf_list bulk_ready, express_ready; /* connections that have something for such a channel */
    struct wf_list todo_connections, todo_inbounds, todo_outbounds;
    struct wf_list backlog;   /* opened by the peer, not accepted by the user */
    struct wf_list orphans;   /* opened by the peer, no such endpoint yet */
    struct wf_list acceptors; /* ACCEPT requests */
    struct wf_list connection_hash[WF_HASH_SIZE], inbound_hash[WF_HASH_SIZE], outbound_hash[WF_HASH_SIZE];
    struct wf_list notes_due;     /* connections with notifications to hand out */
    struct wf_list stage_waiting; /* messages in device memory that no slot is free for */
    struct wf_list regions_used;  /* what the peer is doing with our registrations */
    struct wf_list pieces;        /* blocks of pieces that exist */
    uint32_t answers;             /* to refusals of what has ended, not sent yet */
    uint64_t upload_bytes;        /* of lists that the peer is sending, or has sent and not used */
    uint64_t list_bytes;          /* of these, and of those that its operations use */
    struct wf_list posted_hash[WF_HASH_SIZE], unexpected_hash[WF_HASH_SIZE];
    struct wf_finished closed_numbers[2]; /* closed connections: opened by the acceptor, by the dialer */
    uint32_t next_connection;             /* index of the next one we open */
    uint32_t connection_count;
    uint32_t introductions_taken; /* by connections, of WF_INTRODUCTIONS_SHARED */
    uint64_t next_order;          /* of posted receives */
    struct wf_pool inbound_pool, outbound_pool, slot_pool;
    struct wf_pool range_pool; /* limited to as many as frames may be under way, of all channels */
    struct wf_blocks blocks;

    /* unsolicited credit, in charged bytes: absolute totals */
    uint64_t unsolicited_spent, unsolicited_limit;  /* ours, as sender */
    uint64_t unsolicited_settled, unsolicited_told; /* the peer's: given back; limit as last told */
    bool credit_due;
    uint64_t waiting;     /* bytes that may be sent and that no channel has taken */
    uint32_t bulk_frames; /* DATA frames for bulk channels that the peer has not acknowledged */
    uint32_t choosy;      /* connections that do not take every rail */
    uint64_t denied;      /* writes and reads of the peer that were refused for what they name */
};

/* The bucket for (connection, value). Values that follow one another, as numbers do, have neighbouring buckets, which
 * share cache lines; the upper bits, where some keep what is theirs of a tag, count too. */
static inline unsigned wf_hash(uint32_t connection, uint64_t value)
{
    uint64_t upper = (value >> 10 ^ (uint64_t)connection << 32) * 0x9E3779B97F4A7C15ull;
    return (unsigned)(value + (upper >> 54)) % WF_HASH_SIZE;
}

#endif
