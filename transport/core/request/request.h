/*
 * request.h: an operation under way. A request ends in exactly one completion. From then on the library does not touch
 * the operation's memory, and once the user has tested the request, not the request either.
 */
#ifndef WF_CORE_REQUEST_REQUEST_H
#define WF_CORE_REQUEST_REQUEST_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "core/device/device.h"
#include "core/device/transit.h"
#include "core/request/wait.h"
#include "weft.h"

struct wf_book;
struct wf_inbound;
struct wf_outbound;
struct wf_pieces;

enum wf_request_kind {
    WF_REQUEST_SEND,
    WF_REQUEST_RECV,
    WF_REQUEST_WRITE,
    WF_REQUEST_READ,
    WF_REQUEST_NOTIFY,      /* a notification without a write or read */
    WF_REQUEST_NOTE,        /* a receive for a notification */
    WF_REQUEST_OPEN,        /* a connection waits for OPENED */
    WF_REQUEST_ACCEPT,      /* a caller waits for OPEN */
    WF_REQUEST_CLOSE,       /* a connection waits for CLOSED */
    WF_REQUEST_PEER_CLOSE,  /* a session waits for its channels to go */
    WF_REQUEST_CONNECT,     /* a dial is under way; of the lobby, as the next */
    WF_REQUEST_PEER_ACCEPT, /* a caller waits for a peer */
};

/* Functions of the room that makes a request. */
struct wf_request_ops {
    /* Ends the request early with `status`: at once, or when its memory is free. Session lock held; the request has not
     * completed, and is out of wf_book.deadlines. */
    void (*cancel)(struct weft_request *request, int status);
    /* The next three may be NULL. Says in one line why the request ended with an error. Lock held. */
    void (*describe)(const struct weft_request *request, char *text, size_t room);
    /* The user is about to take the completion: what it hands over is the user's from now on. No lock held. */
    void (*collected)(struct weft_request *request);
    /* The request is given back: frees `detail`. Lock held. */
    void (*gone)(struct weft_request *request);
};

/* Owner: the session's lock, except `done` (any thread) and `waiter` (wf_waiting.lock). */
struct weft_request {
    struct wf_link link;          /* in wf_book.requests until it completes; then in queue.ended, if it has a queue */
    struct wf_link match_link;    /* RECV: in the list where it waits for a message; ACCEPT: in wf_desk.acceptors */
    struct wf_link deadline_link; /* in wf_book.deadlines while the request has a deadline */
    struct wf_book *book;
    const struct wf_request_ops *ops;
    struct weft_connection *connection;
    enum wf_request_kind kind;
    uint32_t flags;           /* enum weft_flags */
    uint32_t remote_endpoint; /* for messages; ACCEPT: the one that the caller accepts */
    struct weft_endpoint *endpoint;
    struct weft_peer *peer; /* CONNECT, PEER_ACCEPT: the new one, once it has ended well */
    void *detail;           /* of the lobby: CONNECT the dial; else why it failed, once it has */
    void *buffer;
    struct wf_pieces *pieces; /* SEND, RECV: NULL, or where the bytes are instead of `buffer`; held */
    uint64_t length;          /* SEND: the message; RECV: the capacity */
    uint64_t tag;
    uint64_t key, offset; /* WRITE, READ: the peer's memory, for messages; a list has an offset for each piece */
    uint32_t listed;      /* WRITE, READ: pieces of its list; 0: it has none */
    uint64_t tag_mask;    /* RECV with WEFT_TAG_MASK: the bits of the tag that must be equal */
    uint64_t order;       /* RECV: posting order within the session */
    int64_t deadline_ns;
    struct weft_registration *registration;
    struct wf_device *device;     /* the device that has `buffer`; NULL: host memory */
    struct wf_turn *turn;         /* its place in a stream, or NULL */
    struct wf_mishap mishap;      /* the copy that failed; device WF_NO_DEVICE: none did */
    struct wf_inbound *inbound;   /* RECV, NOTE: once matched; READ: where the reply lands */
    struct wf_outbound *outbound; /* SEND, WRITE, READ: until it completes */
    struct wf_outbound *note;     /* WRITE, READ: the notification, until it completes */
    bool large;                   /* the request is counted in wf_crew.large_out */
    bool done_early;              /* SEND: the message was copied when it was posted */
    int parts;                    /* WRITE, READ: how many of operation and notification have not ended */
    int part_status;              /* the error of the first of the two that failed, or 0 */
    struct wf_waiter *_Atomic waiter;
    struct weft_queue *queue;   /* takes the ended request; NULL: the user tests it or waits */
    struct weft_request *inner; /* of the lobby: that of the session that carries it out, or NULL */
    struct weft_request *outer; /* of a session: that of the lobby which it carries out, or NULL */
    void *user_data;

    /* The completion: written before `done`. */
    int status;
    uint64_t bytes;
    int64_t completed_ns; /* 0: the time of collecting, for a copied message that took no time */
    _Atomic uint32_t done;

    const struct weft_watcher *watcher; /* SEND, RECV: is told of chunks; NULL: nobody is */
};

/* --- all with the session's lock held --- */

/* For ACCEPT: no other object refers to the request, so cancelling completes it at once. */
extern const struct wf_request_ops wf_request_plain_ops;

/* A copy of the request's bytes failed: the text of its completion will say so. */
void wf_request_note_mishap(struct weft_request *request, const struct wf_transit *transit);

/* Gives back a request that was never handed to the user. */
void wf_request_drop(struct weft_request *request);

/* Call once, when the length is known: a large request counts in wf_crew.large_out until it completes. */
void wf_request_count_large(struct weft_request *request);

/* Takes over queue, user_data and deadline of the options. NULL: there are none. */
void wf_request_adopt(struct weft_request *request, const struct weft_options *options);

/* Sets the deadline; `timeout_ms` <= 0: none. */
void wf_request_arm(struct weft_request *request, int timeout_ms);

/* Is it a write or a read? */
static inline bool wf_request_one_sided(const struct weft_request *request)
{
    return request->kind == WF_REQUEST_WRITE || request->kind == WF_REQUEST_READ;
}

/* The operation, or its notification, has ended; the second of the two completes the request. */
void wf_request_part_done(struct weft_request *request, int status, uint64_t bytes);

/* Completes the request: called once. */
void wf_request_complete(struct weft_request *request, int status, uint64_t bytes);
/* Completes a small SEND or NOTIFY whose bytes were copied when it was posted. Its user does not have it yet, so nobody
 * waits for it. */
void wf_request_complete_early(struct weft_request *request);

/* One line about a request that has failed. Lock held. */
void wf_request_describe(const struct weft_request *request, char *text, size_t room);

/* Asks for an early end with `status`; see weft_cancel(). */
void wf_request_cancel(struct weft_request *request, int status);

/* --- without the session's lock --- */

/* If `request` has ended: copies the completion (NULL allowed), gives the request back and returns true. */
bool wf_request_collect(struct weft_request *request, struct weft_completion *completion);

/* Waits and collects: the request's status. After the timeout it cancels the request and waits for its end. */
int wf_request_finish(struct weft_request *request, int timeout_ms, struct weft_completion *completion);

#endif
