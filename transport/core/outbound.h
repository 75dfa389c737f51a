/*
 * outbound.h: a message on its way out. It exists until every chunk handed to a channel is acknowledged (or, when
 * refused, no longer matters); the user's request may have completed long before, if the payload was copied.
 */
#ifndef WF_CORE_OUTBOUND_H
#define WF_CORE_OUTBOUND_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "wire/frame.h"

struct wf_session;
struct wf_channel;
struct weft_connection;
struct weft_request;

/* A landing never has more than WF_RANGE_MAX ranges because of this. */
#define WF_CHUNKS_UNACKNOWLEDGED 255

/* Owner: session lock. */
struct wf_outbound {
    struct wf_link queue_link; /* connection.pending, then connection.sending while it has bytes to send */
    struct wf_link hash_link;  /* session.outbound_hash, once it has a number */
    struct wf_link todo_link;  /* session.todo while REFUSE is to be sent */
    struct weft_connection *connection;
    struct weft_request *request; /* NULL once completed */
    const uint8_t *data;
    uint8_t *slot;   /* the copy of a small message, or NULL */
    uint64_t number; /* 0: not introduced */
    uint64_t tag, total;
    uint64_t next;           /* first byte not handed to a channel */
    uint64_t burst;          /* bytes [0, burst) go unsolicited; 0 when it was offered */
    uint64_t sendable;       /* bytes that may be handed over: the burst, or what was granted */
    uint64_t retired;        /* bytes acknowledged */
    uint64_t charge;         /* unsolicited credit it has spent */
    uint32_t unacknowledged; /* DATA frames retained */
    uint32_t in_engine;      /* DATA frames in an operation under way: its memory is referred to */
    bool refused;            /* ends early with `status`; nothing more of it is sent */
    bool refuse_due, refuse_sent, refuse_seen;
    int status;
};

/* --- all with the session's lock held --- */

/* Queues a message of `request`; copies it and completes the request at once when it is small and there is a slot. */
int wf_outbound_post(struct weft_connection *connection, struct weft_request *request);

struct wf_outbound *wf_outbound_find(struct weft_connection *connection, uint64_t number);

/* What a channel may send next, in the order of the queues. Fills `frame` (and accounts for it); returns the message
 * whose payload the frame carries, or NULL. `*frame` of type OFFER comes with NULL and `*offer` set. */
struct wf_outbound *wf_outbound_pull_bulk(struct wf_channel *channel, struct wf_frame *frame);
struct wf_outbound *wf_outbound_pull_express(struct wf_channel *channel, struct wf_frame *frame, bool *offer);

/* There is more unsolicited credit: what would have been offered may go to the bulk channels now. */
void wf_outbound_credit_came(struct wf_session *session);

/* The peer takes bytes up to `sendable`. -EPROTO when that makes no sense. */
int wf_outbound_grant(struct wf_outbound *outbound, uint64_t sendable);

/* One retained DATA frame of `length` bytes was acknowledged. `outbound` may be gone afterwards. */
void wf_outbound_retire(struct wf_outbound *outbound, uint32_t length);

/* An operation that referred to its memory has ended. `outbound` may be gone afterwards. */
void wf_outbound_released(struct wf_outbound *outbound);

/* Ends it early: by its user (cancel, deadline, close) or because the receiver refused. May be gone afterwards. */
void wf_outbound_refuse(struct wf_outbound *outbound, int status);
void wf_outbound_refused_by_peer(struct wf_outbound *outbound, int status);
/* Its REFUSE frame has been encoded. May be gone afterwards. */
void wf_outbound_refuse_sent(struct wf_outbound *outbound);

/* Puts the connection on, or takes it off, the session's ready rings. */
void wf_connection_ready(struct weft_connection *connection);

#endif
