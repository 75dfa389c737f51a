/*
 * outbound.h: a message on its way out, or another operation that takes a number of this side. It exists until every
 * chunk handed to a channel is acknowledged or, if it was refused, no longer matters. If the payload was copied, the
 * user's request may have completed long before.
 *
 * The notification of a write or read has the number after the operation's: a peer that refuses the operation knows
 * which notification to refuse. This side refuses the notification first and the operation after it, so that the peer
 * never hands out the notification of an operation that was given up.
 *
 * A read to device memory may fail after the peer has done its part. So its notification gets a number, and goes to the
 * peer, only when the read has landed.
 */
#ifndef WF_CORE_MESSAGE_OUTBOUND_H
#define WF_CORE_MESSAGE_OUTBOUND_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/list.h"
#include "core/request/request.h"
#include "wire/frame.h"

struct weft_connection;
struct weft_request;
struct wf_pieces;
struct wf_inbound;
struct wf_device;

#define WF_CHUNKS_UNACKNOWLEDGED 255 /* so an inbound message never has more than WF_RANGE_MAX ranges */

enum wf_outbound_kind {
    WF_OUTBOUND_MESSAGE, /* tagged, for the peer's matcher */
    WF_OUTBOUND_WRITE,   /* to memory that the peer has registered; done when the peer says so by GRANT */
    WF_OUTBOUND_READ,    /* asks for bytes of such memory: one READ frame; lives until the reply has landed */
    WF_OUTBOUND_REPLY,   /* the answer to the peer's READ, with the number of that READ */
    WF_OUTBOUND_NOTE,    /* a notification of the write or read `subject`, or of nothing but itself */
    WF_OUTBOUND_LIST,    /* the list of remote pieces that the operation `waiter` is about */
};

/* Owner: session lock. What a copied message touches when it is sent and acknowledged stands first: some hundred of
 * them wait for their acknowledgement, more than the first cache has room for. */
struct wf_outbound {
    struct wf_link queue_link;  /* connection.pending, then connection.sending while it has bytes to send, or
                                 * wf_desk.detached */
    struct wf_link hash_link;   /* wf_desk.outbound_hash, once it has a number */
    struct wf_link behind_link; /* connection.behind: introduced from within a bulk stream, behind other bytes */
    struct weft_connection *connection;
    struct weft_request *request; /* NULL once completed */
    struct wf_pieces *pieces;     /* NULL, or where the bytes are instead of `data` */
    struct wf_device *device;     /* the device with the memory of `data` or `pieces`; NULL: host memory */
    uint8_t *slot;                /* the copy of a small message, or NULL */
    uint64_t total;
    enum wf_outbound_kind kind;
    uint32_t unacknowledged; /* DATA frames retained */
    uint32_t in_engine;      /* operations under way that refer to its memory: DATA frames, copies to slots */
    bool introduced;         /* the peer has heard, or is about to hear, of it; in wf_desk.outbounds */
    bool in_line;            /* in connection.pending */
    bool refused;            /* ends early with `status`; nothing more of it is sent */
    bool torn;               /* a stray of it was dropped: those bytes may not have arrived */
    bool stopped;            /* nothing more of it is handed to a channel */
    bool confirms;           /* WRITE, MESSAGE with WEFT_SYNC: done only when the peer says that it has landed */
    bool confirmed;          /* the peer has said so */
    bool noted;              /* the next number is that of its notification */
    bool listed;             /* `key` is the number of an uploaded list */
    bool watched;            /* `request` has a watcher: the chunks are told */
    uint64_t number;         /* 0: none yet */
    const uint8_t *data;
    uint64_t tag, base;       /* WRITE, READ: `base` is where in the region; NOTE: what it names */
    uint64_t next;            /* first byte not handed to a channel */
    struct wf_outbound *note; /* WRITE, READ: its notification while that exists */
    uint64_t charge;          /* unsolicited credit it has spent */
    uint64_t burst;           /* bytes [0, burst) go unsolicited; 0 when it was offered */
    uint64_t sendable;        /* bytes that may be handed over: the burst, or what was granted */
    uint64_t order;           /* of posting, within the connection */
    uint64_t retired;         /* bytes acknowledged */
    uint32_t detached;        /* in wf_desk.detached, of this domain + 1; 0: its chunks go on other channels */

    struct wf_link todo_link;  /* wf_desk.todo_outbounds while REFUSE is to be sent */
    struct wf_link stage_link; /* wf_desk.stage_waiting while it needs a slot and none is free */
    bool stage_known;     /* which counter of share.waiting holds it: [1] if it was introduced when it began to wait */
    bool waits;           /* for work in a stream: nothing of it may be copied yet (turn.h) */
    bool lent;            /* detached, and a card reads its memory: it is not staged */
    struct wf_list slots; /* of `device`: copies of its bytes in host memory, done or under way; by offset */
    uint64_t claimed;     /* bytes from the start for which a slot was taken */
    uint64_t staged;      /* bytes from the start that are in their slots */
    int doomed;           /* refused before the peer heard of it, while copies were under way: the status */
    uint64_t key;         /* WRITE, READ: the region, or the list */
    struct wf_outbound *subject;    /* NOTE: its write or read while that exists */
    bool late;                      /* NOTE: it waits for the end of `subject`, in no line */
    struct wf_outbound *list;       /* WRITE, READ: its list while that is under way */
    struct wf_outbound *waiter;     /* LIST: the operation that waits for it */
    struct wf_inbound *counterpart; /* READ: the inbound message of the reply; REPLY: the READ it serves */
    bool counted;                   /* one of the operations with a list that its connection allows at a time */
    int deferred;                   /* status of a refusal that waits until the notification is out of the way */
    uint64_t granted;               /* the largest grant */
    bool refuse_due, refuse_sent, refuse_seen;
    int status;
};

extern const struct wf_request_ops wf_outgoing_ops; /* SEND, WRITE and READ */

/* --- all with the session's lock held --- */

/* The message of `request`, in no queue. If it is small and a slot is free, its bytes are copied and the request
 * completes here: the user's memory is needed no more. NULL: no memory. */
struct wf_outbound *wf_outbound_begin(struct weft_connection *connection, struct weft_request *request);

/* A new message, in no queue. NULL: no memory. */
struct wf_outbound *wf_outbound_create(struct weft_connection *connection, enum wf_outbound_kind kind, uint64_t total);
/* Puts it at the end of the line of messages to be introduced. */
void wf_outbound_queue(struct wf_outbound *outbound);
/* Frees a message that is in no queue and not known to the peer. */
void wf_outbound_drop(struct wf_outbound *outbound);

/* Where the payload [offset, offset + length) is; as wf_pieces_places(). */
int wf_outbound_places(const struct wf_outbound *outbound, uint64_t offset, uint64_t length, struct iovec *iov, int max,
                       uint64_t *covered);

/* By the number that this side gave; `reply`: by the number of the peer's READ. */
struct wf_outbound *wf_outbound_find(struct weft_connection *connection, uint64_t number, bool reply);

/* GRANT: the peer takes bytes up to `sendable`, and on device channels of `domain` - 1 all (0: of none); for a write:
 * has them all. -EPROTO if that cannot be. `outbound` may be gone afterwards. */
int wf_outbound_grant(struct wf_outbound *outbound, uint64_t sendable, uint64_t domain);
/* GRANT: all bytes, `total` of them, are where they belong. As above. */
int wf_outbound_landed(struct wf_outbound *outbound, uint64_t total);

/* A retained DATA frame was acknowledged. `outbound` may be gone afterwards. */
void wf_outbound_retire(struct wf_outbound *outbound, uint64_t offset, uint32_t length);

/* A stray DATA frame of it is not sent again, because the message has been refused. `outbound` may be gone afterwards.
 */
void wf_outbound_abandon(struct wf_outbound *outbound);

/* An operation that referred to its memory has ended. `outbound` may be gone afterwards. */
void wf_outbound_released(struct wf_outbound *outbound);

/* Ends it early: by its user (cancel, deadline, close), or because the receiver refused. May be gone afterwards. */
void wf_outbound_refuse(struct wf_outbound *outbound, int status);
void wf_outbound_refused_by_peer(struct wf_outbound *outbound, int status);
/* Its REFUSE frame; the message may be gone afterwards. */
void wf_outbound_refuse_frame(struct wf_outbound *outbound, struct wf_frame *frame);

#endif
