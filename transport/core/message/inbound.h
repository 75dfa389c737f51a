/*
 * inbound.h: a message on its way in: its place, the bytes that have arrived, and the claims of channels and copies
 * that may still write to it.
 *
 * Invariant: while `claims` > 0 a channel or a copy may write to the message's place. The message is complete when it
 * is matched, arrived.covered == total and claims == 0. Before the match its unsolicited bytes lie in blocks of the
 * session's unexpected pool, which are reserved when the message is introduced.
 */
#ifndef WF_CORE_MESSAGE_INBOUND_H
#define WF_CORE_MESSAGE_INBOUND_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/list.h"
#include "core/message/blocks.h"
#include "wire/frame.h"
#include "wire/range.h"

struct weft_connection;
struct weft_request;
struct weft_registration;
struct wf_outbound;
struct wf_pieces;
struct wf_device;

#define WF_ANSWERS_MAX                                                                                                 \
    16384 /* of a session at a time; messages that are given up late are a few windows of its channels at most */
#define WF_TOTAL_UNKNOWN UINT64_MAX /* of a message that its sender gave up before it was introduced here */

enum wf_inbound_kind {
    WF_INBOUND_MESSAGE, /* tagged: waits for a receive */
    WF_INBOUND_NOTE,   /* a notification: waits for the end of operation `after` (0: of none), then for a receive of its
                        * own */
    WF_INBOUND_WRITE,  /* lands in a registration */
    WF_INBOUND_LIST,   /* lands in an upload (served.h) */
    WF_INBOUND_SERVED, /* the peer's READ: nothing lands, a reply goes out */
    WF_INBOUND_READING, /* the reply to a READ of this side, with the number of that READ */
};

enum wf_inbound_state {
    WF_INBOUND_EARLY,      /* introduced, but a message with a lower number is not */
    WF_INBOUND_UNMATCHED,  /* in order, no receive for it yet */
    WF_INBOUND_MATCHED,    /* its place is known: a receive's memory, a registration, an upload */
    WF_INBOUND_CONFIRMING, /* landed, and its sender waits for the word: only the GRANT is still to be sent */
    WF_INBOUND_DRAINING,   /* refused: bytes that still come go to the sink */
};

/* Owner: session lock. */
struct wf_inbound {
    struct wf_link hash_link;   /* in wf_desk.inbound_hash, by (connection, number) */
    struct wf_link tag_link;    /* unmatched: in wf_desk.unexpected, by (connection, tag) */
    struct wf_link order_link;  /* in connection.unexpected, by number, while unmatched */
    struct wf_link todo_link;   /* in wf_desk.todo_inbounds while GRANT or REFUSE is to be sent */
    struct wf_link region_link; /* in wf_desk.regions_used while it holds `region` */
    struct weft_connection *connection;
    uint64_t number, tag, total;
    enum wf_inbound_kind kind;
    enum wf_inbound_state state;
    bool finished;                    /* CONFIRMING, an answer: its number has ended already */
    bool answer;                      /* DRAINING: only the answer to a refusal; in wf_desk.answers */
    bool noted;                       /* WRITE, SERVED: the next number is its notification's */
    uint64_t after;                   /* NOTE: the number it waits for */
    uint8_t flags;                    /* of the frame that introduced it, */
    uint64_t base;                    /* and `base` of that frame */
    struct wf_device *device;         /* MATCHED: whose memory its place is; NULL: host memory */
    uint8_t *place;                   /* MATCHED: where the message starts, */
    struct wf_pieces *pieces;         /* or its pieces, if not NULL */
    uint64_t list_bytes;              /* WRITE, SERVED: of a list that it uses, in wf_desk.list_bytes */
    struct weft_registration *region; /* WRITE, SERVED: held, or NULL */
    struct wf_outbound *partner;      /* SERVED: the reply; READING: the READ of this side */
    bool offered;                     /* introduced without payload: nothing of it is unsolicited */
    bool parked;                      /* MATCHED: its receive waits for work in a stream (turn.h), under a claim */
    bool settled;                     /* its unsolicited bytes have been given back to the sender's credit */
    bool grant_due, refuse_due, refuse_sent, refuse_seen;
    int refuse_status;
    uint64_t granted;   /* device memory: bytes that may come, as last told the peer; host memory: all may */
    uint64_t in_device; /* bytes that are in device memory */
    bool detached;      /* its sender was told that all of it may come on device channels */
    bool counted;       /* in `landings` of its device */
    uint64_t burst;     /* unsolicited bytes [0, burst) */
    uint32_t block;     /* first block of the pool, or WF_NO_BLOCK */
    bool watched;       /* `request` has a watcher: the chunks are told */
    bool resent;        /* a chunk of it was sent again: an older copy may still be coming on another channel */
    uint32_t claims;
    struct weft_request *request; /* the receive, once matched */
    struct wf_range_set arrived;
};

/* Is there room in the pool for what comes of it unasked? */
bool wf_inbound_fits(const struct weft_connection *connection, uint64_t total, bool offered);
/* A new message of the peer. NULL: it does not fit, or memory is out. */
struct wf_inbound *wf_inbound_create(struct weft_connection *connection, uint64_t number, uint64_t tag, uint64_t total,
                                     bool offered);
/* The same, of a message that has come whole; no byte of it goes elsewhere than to the pool. */
struct wf_inbound *wf_inbound_create_whole(struct weft_connection *connection, const struct wf_frame *frame,
                                           const uint8_t *payload);
/* The size of a message that was refused before it came: gives its credit back. */
void wf_inbound_name(struct wf_inbound *inbound, uint64_t total, bool offered);

/* By the number that the peer gave; for the reply to a READ of this side, by the number of the READ. */
struct wf_inbound *wf_inbound_find(struct weft_connection *connection, uint64_t number);
struct wf_inbound *wf_inbound_find_reading(struct weft_connection *connection, uint64_t number);

/* A READING message for the reply to a READ; it has no number until wf_inbound_expect(). NULL: no memory. */
struct wf_inbound *wf_inbound_create_reading(struct weft_connection *connection, uint64_t total);
/* Frees a READING message that never got a number. */
void wf_inbound_forget(struct wf_inbound *inbound);

/* Answers the REFUSE of a message that has ended here: the sender may not know of the end, if acknowledgements were
 * lost with a channel. 0; -ENOMEM; -EPROTO: too many answers are due, because the peer leaves no window for them. */
int wf_inbound_answer(struct weft_connection *connection, uint64_t number, int status);

/* Queues the message to send its GRANT or REFUSE. */
void wf_inbound_todo(struct wf_inbound *inbound);

/* Marks bytes as present: as wf_range_add, with a larger set lent when needed. Also -EPROTO: messages have more holes
 * than chunks may be under way. */
int wf_inbound_mark(struct wf_inbound *inbound, uint64_t start, uint64_t end);

/* Fills `iov` with the places of [offset, offset + length) in user memory or the pool; returns the number of pieces,
 * and how many bytes they cover in `*covered`. */
int wf_inbound_places(const struct wf_inbound *inbound, uint64_t offset, uint64_t length, struct iovec *iov, int max,
                      uint64_t *covered);

/* The same, in the pool whatever the state. */
int wf_inbound_pool_places(const struct wf_inbound *inbound, uint64_t offset, uint64_t length, struct iovec *iov,
                           int max, uint64_t *covered);

/* Does the message land in the pieces of a list? Pieces may overlap. */
bool wf_inbound_is_scattered(const struct wf_inbound *inbound);

/* Copies [start, end) from the pool to the receive's memory. The caller has a claim. Host memory: drops the lock while
 * copying. Device memory: the copy runs later, with a claim of its own. */
void wf_inbound_copy_out(struct wf_inbound *inbound, uint64_t start, uint64_t end);

/* Refuses the message towards its sender; later bytes are drained. Its receive, if any, is completed by the caller, or
 * when the last claim ends. */
void wf_inbound_refuse(struct wf_inbound *inbound, int status);

/* Ends the message if it waits for nothing more: completes the receive, finishes the number, frees the message.
 * Call after every change of claims, ranges or state. `inbound` may be gone afterwards. */
void wf_inbound_check(struct wf_inbound *inbound);

#endif
