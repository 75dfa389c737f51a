/*
 * desk.h: a session's connections, messages and posted receives, and the pools and credit that they share.
 *
 * All with the session's lock held. Fields that other rooms may read: bulk_ready, express_ready, the todo lists,
 * `credit_due`, `bulk_frames`, `blocks.free`, `denied`. Arrays of WF_CLASSES are by traffic class.
 */
#ifndef WF_CORE_MESSAGE_DESK_H
#define WF_CORE_MESSAGE_DESK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/pool.h"
#include "base/table.h"
#include "core/ground/guard.h"
#include "core/ground/terms.h"
#include "core/message/inbound.h"
#include "core/message/ring.h"
#include "wire/finished.h"

struct weft_connection;
struct weft_request;
struct wf_book;
struct wf_endpoints;
struct wf_frame;
struct wf_kicks;
struct wf_lines;
struct wf_outbound;
struct wf_pieces;
struct wf_registry;
struct wf_shares;

#define WF_CONNECTIONS_MAX 65536           /* of one session at a time, as the side counts that opens one */
#define WF_INTRODUCTIONS_SHARED (1u << 20) /* introductions of all connections of a session, beside the next ones */
#define WF_INTRODUCTIONS_FEW 16            /* that each connection has of its own; two would do for progress */

/* The parts of the session and of its context that the desk uses. */
struct wf_desk_neighbours {
    struct wf_guard *guard;
    const struct wf_terms *terms;
    struct wf_book *book;
    struct wf_shares *shares;
    struct wf_lines *lines;
    struct wf_kicks *kicks;
    struct wf_registry *registry;
    struct wf_endpoints *endpoints;
    /* The desk of the peer's session, if this context has connected to itself; referred to and held. NULL: that session
     * is not UP. Called without session locks; takes them itself. */
    struct wf_desk *(*hold_twin)(struct wf_desk *desk);
};

/* Owner: session lock. */
struct wf_desk {
    struct wf_guard *guard;
    const struct wf_terms *terms;
    struct wf_book *book;
    struct wf_shares *shares;
    struct wf_lines *lines;
    struct wf_kicks *kicks;
    struct wf_registry *registry;
    struct wf_endpoints *endpoints;
    struct wf_desk *(*hold_twin)(struct wf_desk *desk);

    struct wf_ring any_ring[WF_CLASSES];      /* of connections that take every rail */
    struct wf_list rings;                     /* the others: as many as there are sets of rails and classes */
    struct wf_list bulk_ready[WF_CLASSES];    /* rings with connections that have something for a bulk channel */
    struct wf_list express_ready[WF_CLASSES]; /* connections with something to send on an express channel */
    struct wf_list detached[WF_DOMAINS_MAX];  /* messages with something for device channels, by domain of the peer */
    struct wf_list todo_connections;
    struct wf_list todo_inbounds[WF_CLASSES], todo_outbounds[WF_CLASSES];
    struct wf_list backlog;                           /* opened by the peer, not accepted by the user */
    struct wf_list orphans;                           /* opened by the peer, no such endpoint yet */
    struct wf_list acceptors;                         /* ACCEPT requests */
    struct wf_table connections, inbounds, outbounds; /* by number */
    struct wf_list notes_due;                         /* connections with notifications to hand out */
    struct wf_list stage_waiting;                     /* messages in device memory for which no slot is free */
    struct wf_list regions_used;          /* inbound messages of the peer that use a registration of this side */
    struct wf_list pieces;                /* every struct wf_pieces of the session */
    uint32_t answers;                     /* answers to the REFUSE of an ended message that are not sent yet */
    uint64_t upload_bytes;                /* of lists that the peer is sending, or has sent and not used */
    uint64_t list_bytes;                  /* `upload_bytes`, and the bytes of lists that the peer's operations use */
    struct wf_table posted, unexpected;   /* receives, and messages without one, by tag */
    struct wf_finished closed_numbers[2]; /* closed connections: opened by the acceptor, by the dialer */
    uint32_t next_connection;             /* index of the next one that this side opens */
    uint32_t connection_count, closes;    /* `closes`: this side closes them, and the peer's CLOSED has not come */
    uint32_t peers_connections;           /* of these, opened by the peer */
    uint32_t introductions_taken;         /* by connections, of WF_INTRODUCTIONS_SHARED */
    uint64_t next_order;                  /* of posted receives */
    struct wf_pool inbound_pool, outbound_pool, slot_pool;
    struct wf_pool range_pool; /* limit: the frames that may be under way on all channels */
    struct wf_blocks blocks;

    /* unsolicited credit, in charged bytes: absolute totals */
    uint64_t unsolicited_spent, unsolicited_limit;  /* of this side as sender */
    uint64_t unsolicited_settled, unsolicited_told; /* of the peer as sender: given back; limit as last told */
    bool credit_due;
    uint64_t waiting[WF_CLASSES];     /* bytes that may be sent and that no channel has taken */
    uint64_t in_line[WF_CLASSES];     /* bytes of messages that may go whole and unasked, and are not introduced */
    uint32_t bulk_frames[WF_CLASSES]; /* DATA frames for bulk channels that the peer has not acknowledged */
    uint64_t denied;                  /* writes and reads of the peer that were refused for the memory that they name */
};

/* Consecutive values, such as message numbers, have neighbouring lists, which share cache lines. The upper bits count
 * too: some users put their own data into the upper bits of a tag. */
static inline uint64_t wf_hash(uint32_t connection, uint64_t value)
{
    uint64_t upper = (value >> 10 ^ (uint64_t)connection << 32) * 0x9E3779B97F4A7C15ull;
    return value + (upper >> 32);
}

/* 0 or -ENOMEM. fini also accepts a desk whose init has failed; it frees connections and pieces. */
int wf_desk_init(struct wf_desk *desk, const struct wf_desk_neighbours *neighbours);
void wf_desk_fini(struct wf_desk *desk);

/* Gives `charge` bytes of unsolicited credit back to the peer. */
void wf_desk_settle(struct wf_desk *desk, uint64_t charge);
/* The peer has given unsolicited credit back: the total is `limit` now. */
void wf_desk_credit(struct wf_desk *desk, uint64_t limit);
/* The CREDIT frame with the peer's total; it is not due any more. */
void wf_desk_credit_frame(struct wf_desk *desk, struct wf_frame *frame);

/* CREDIT is due again: it may have been lost with a channel. */
void wf_desk_repeat_credit(struct wf_desk *desk);

/* Takes the next message of the class from todo_inbounds or todo_outbounds; NULL: the list is empty. */
struct wf_inbound *wf_desk_next_inbound(struct wf_desk *desk, unsigned traffic);
struct wf_outbound *wf_desk_next_outbound(struct wf_desk *desk, unsigned traffic);

/* The number of the next connection that this side opens; `take` uses it up. */
uint32_t wf_desk_next_number(const struct wf_desk *desk);
void wf_desk_take_number(struct wf_desk *desk);

/* A request waits for a connection that the peer opens. */
void wf_desk_accept(struct wf_desk *desk, struct weft_request *request);
/* Puts pieces of an operation of this side on the desk's list: they are freed with the desk at the latest. */
void wf_desk_keep(struct wf_desk *desk, struct wf_pieces *pieces);
/* A channel has joined: `frames` more may be under way. */
void wf_desk_expect_frames(struct wf_desk *desk, uint32_t frames);

/* Bytes of the class that may be sent, or will be without a question while credit lasts, and that no channel has taken.
 */
uint64_t wf_desk_waiting(const struct wf_desk *desk, unsigned traffic);

/* Adds to the class's `waiting`. Positive: bytes became strays and wait for a channel. Negative: a channel has taken
 * them, or they need not go any more. */
void wf_desk_wait(struct wf_desk *desk, unsigned traffic, int64_t bytes);

#endif
