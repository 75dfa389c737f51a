/*
 * connection.h: one pair of endpoints. It owns no socket; it shares its session's channels. Both directions number
 * their messages densely from 1.
 */
#ifndef WF_CORE_MESSAGE_CONNECTION_H
#define WF_CORE_MESSAGE_CONNECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "core/message/desk.h"
#include "core/message/endpoint.h"
#include "core/request/request.h"
#include "weft.h"
#include "wire/finished.h"
#include "wire/frame.h"

#define WF_LISTS_AT_ONCE 2 /* operations with a list under way, of a connection: the next is described meanwhile */

enum wf_connection_state {
    WF_CONNECTION_OPENING, /* this side sends OPEN; DATA or OPENED of the peer makes it OPEN */
    WF_CONNECTION_WAITING, /* the peer's OPEN names an endpoint that does not exist yet */
    WF_CONNECTION_OPEN,
    WF_CONNECTION_CLOSING, /* closed by this side; own sends are finished, then CLOSE is sent */
    WF_CONNECTION_DEAD,    /* CLOSED both sent and received: the number stays known as closed */
};

/* Owner: session lock. */
struct weft_connection {
    struct wf_link hash_link;    /* wf_desk.connections, by number */
    struct wf_link ready_link;   /* wf_ring.connections */
    struct wf_link express_link; /* wf_desk.express_ready */
    struct wf_link todo_link;    /* wf_desk.todo_connections: OPEN, OPENED, CLOSE, CLOSED, CREDIT to be sent */
    struct wf_link accept_link;  /* wf_desk.backlog or wf_desk.orphans */
    struct wf_desk *desk;
    struct weft_endpoint *endpoint; /* NULL while WAITING */
    uint32_t number, local_endpoint, remote_endpoint;
    unsigned traffic;     /* its traffic class, of both directions; set before anything is sent */
    struct wf_ring *ring; /* its rails carry the connection's large messages as long as one of them works */
    enum wf_connection_state state;
    bool opener;   /* this side sent OPEN */
    bool held;     /* the user has the handle */
    uint32_t pins; /* functions that still use the connection: wf_connection_check() must not free it */
    bool known;    /* the peer has taken OPEN: CLOSE cannot overtake it on another channel */
    bool open_due, opened_due, close_due, closed_due, credit_due;
    bool close_sent, closed_seen; /* our CLOSE, and its answer */
    bool close_seen, closed_sent; /* the peer's CLOSE, and our answer */
    bool close_waits;             /* what follows from it waits until its messages are matched */
    uint32_t advancing;           /* threads that match its messages in turn, and may have dropped the lock */
    struct weft_request *waiting; /* OPEN or CLOSE request */

    /* sending */
    struct wf_list pending;  /* not introduced, in posting order */
    struct wf_list writes;   /* large writes, not introduced */
    struct wf_list sending;  /* introduced, with bytes that may be sent */
    struct wf_list behind;   /* introduced behind other bytes of a bulk channel: the peer may not have heard of them */
    struct wf_list unlisted; /* lists that wait until fewer operations with a list are under way */
    uint32_t lists;          /* operations with a list that are under way */
    uint32_t small_pending;  /* messages of `pending` for the express channel */
    bool passed;             /* an express channel has left the first one to a bulk channel */
    uint64_t next_order;     /* of posting */
    uint32_t outbounds;      /* messages that exist */
    uint64_t next_number;    /* of the next message introduced; 1 at first */
    uint64_t introduced_limit; /* the peer takes introductions with numbers below or equal */
    bool own_turn;   /* the last chunk answered a READ: one of our own messages goes next, or it would starve */
    int64_t deficit; /* bytes it may still send in this turn */

    /* receiving */
    struct wf_list posted_masked; /* receives for more than one tag, in posting order */
    struct wf_list unexpected;    /* unmatched messages in number order */
    struct wf_link line_link;     /* weft_endpoint.line; the lobby's lock */
    bool in_line;                 /* it stands there */
    struct wf_list posted_notes;  /* receives for a notification */
    struct wf_list notes;         /* notifications whose operation has ended, with no receive yet */
    struct wf_list early_notes;   /* notifications whose operation has not ended */
    struct wf_link notes_link;    /* wf_desk.notes_due */
    struct wf_list uploads;       /* lists that the peer has sent and not used yet */
    uint32_t upload_count;
    uint32_t inbounds;       /* messages that exist */
    uint64_t next_match;     /* the number to be matched next; 1 at first */
    uint64_t highest;        /* of the numbers that have come, in any order */
    uint64_t finished_count; /* messages ended */
    uint64_t confirming;     /* ended writes whose GRANT is not sent: their introductions are not given back */
    uint32_t introductions;  /* messages that the peer may introduce before one has ended; never gets smaller */
    uint64_t limit_sent;     /* introduction limit as last told */
    struct wf_finished finished;
};

/* The operations of OPEN and CLOSE requests. */
extern const struct wf_request_ops wf_connection_ops;

/* Walks all connections of a desk; the body may free the current one. */
#define WF_DESK_EACH_CONNECTION(connection, desk)                                                                      \
    for (uint32_t list_##connection = 0; list_##connection < (desk)->connections.size; list_##connection++)            \
        WF_LIST_EACH (link_##connection, next_##connection, &(desk)->connections.lists[list_##connection])             \
            for (struct weft_connection *connection =                                                                  \
                     WF_CONTAINER(link_##connection, struct weft_connection, hash_link);                               \
                 connection; connection = NULL)

/* --- all with the session's lock held --- */

struct weft_connection *wf_connection_create(struct wf_desk *desk, uint32_t number, bool opener, uint32_t local,
                                             uint32_t remote);
/* Sets the traffic class, which is in use (wf_lines_use): before anything is posted. */
void wf_connection_set_class(struct weft_connection *connection, unsigned traffic);
struct weft_connection *wf_connection_find(struct wf_desk *desk, uint32_t number);
/* Did the connection exist, and was it closed by both sides? */
bool wf_connection_was_closed(const struct wf_desk *desk, uint32_t number);

/* Gives the opener its OPENED, and a waiting accept its connection. */
void wf_connection_admit(struct weft_connection *connection, struct weft_endpoint *endpoint);

/* The connection that the peer opened first and that nobody has taken: from now on the user has it. `endpoint` NULL: of
 * any endpoint of this side; `remote_id`: of this one of the peer's, or WEFT_ANY_ENDPOINT. NULL: there is none. */
struct weft_connection *wf_connection_from_backlog(struct wf_desk *desk, const struct weft_endpoint *endpoint,
                                                   uint32_t remote_id);

/* Frames OPEN, OPENED. 0, or negative: the peer broke the protocol. */
int wf_connection_take_open(struct wf_desk *desk, const struct wf_frame *frame);
int wf_connection_take_opened(struct wf_desk *desk, const struct wf_frame *frame);

/* DATA or OPENED has come: an opening connection is open. */
void wf_connection_opened(struct weft_connection *connection);

/* The OPEN frame was acknowledged. */
void wf_connection_acknowledged(struct weft_connection *connection);

/* Sets the endpoint that counts the connection (NULL: none). */
void wf_connection_attach(struct weft_connection *connection, struct weft_endpoint *endpoint);

/* An operation with a list has ended: the next one may begin. */
void wf_connection_list_ended(struct weft_connection *connection);

/* A message of the peer has ended: gives its introduction back, unless it counts as `confirming`. */
void wf_connection_finish_number(struct weft_connection *connection, uint64_t number);

/* The GRANT of a write that has landed is sent: gives the write's introduction back. */
void wf_connection_confirmed(struct weft_connection *connection);

/* The number up to which the peer may introduce. */
uint64_t wf_connection_limit(const struct weft_connection *connection);

/* Puts the connection on wf_desk.todo_connections: a frame about it is to be sent on an express channel. */
void wf_connection_todo(struct weft_connection *connection);

/* Frees the connection at once, without frames: the session has ended, or both sides have closed. */
void wf_connection_free(struct weft_connection *connection);

#endif
