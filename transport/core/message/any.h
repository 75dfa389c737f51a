/*
 * any.h: receives from any connection of an endpoint. They are requests of the context's lobby, in the order of
 * posting; a session that has a message for one carries it out as a request of its own (lobby.h).
 *
 *     a message in its turn, no receive of its connection for it:   the first receive of the endpoint takes it, unless
 *                                                                   an older one that waits there is for that receive
 *     a receive is posted, and messages wait:                       it takes one of the connection whose turn it is
 *
 * The connections with messages that wait stand in a line of the endpoint. A connection joins it at its end when it
 * gets a message that no receive takes, leaves it when it has none left, and goes to its end when one was taken from
 * there.
 *
 * An endpoint of which nobody has asked for this has no line, and its messages cost nothing more. Only connections that
 * the user has take part: the completion names the connection.
 */
#ifndef WF_CORE_MESSAGE_ANY_H
#define WF_CORE_MESSAGE_ANY_H

#include <stdbool.h>
#include <stdint.h>

#include "core/message/endpoint.h"
#include "core/request/request.h"

struct weft_connection;
struct wf_inbound;

/* The operations of the lobby's requests. */
extern const struct wf_request_ops wf_any_ops;

/* --- with the lock of the connection's session held --- */

/* A message that no receive of its connection is for: the first receive of the endpoint that is, now as a request of
 * the session. NULL: none is posted, and the connection stands in the line. */
struct weft_request *wf_any_take(const struct wf_inbound *inbound);

/* No message waits on the connection any more, or it ends. */
void wf_any_leave_line(struct weft_connection *connection);
/* A message was taken from those that wait. */
void wf_any_turn_over(struct weft_connection *connection);

/* The endpoint has a line from now on: the connection joins it if messages wait on it. */
void wf_any_join_line(struct weft_connection *connection);

/* --- no session's lock held --- */

/* What a receive, or a probe, is for. */
struct wf_any_wish {
    uint64_t tag, mask;
    const struct weft_request *receive; /* NULL: a probe */
    uint64_t order;                     /* of `receive` */
};

/* The first connection in line with a message for the wish: its session's lock is held, `*inbound` is the message.
 * NULL: there is none, or the receive has ended meanwhile. */
struct weft_connection *wf_any_find(struct weft_endpoint *endpoint, const struct wf_any_wish *wish,
                                    struct wf_inbound **inbound);

/* Puts a request of the lobby behind the receives of the endpoint. The lobby's lock held. True: messages may wait. */
bool wf_any_post(struct weft_endpoint *endpoint, struct weft_request *request);

/* The endpoint ends: so do its receives, in -ECANCELED. It has no connection. */
void wf_any_end(struct weft_endpoint *endpoint);

#endif
