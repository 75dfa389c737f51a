/*
 * connection_close.h: how a connection closes: what ends with it on this side, and the steps to its end. Each side
 * finishes its own sends, then tells CLOSE, which the other answers with CLOSED.
 *
 * All with the session's lock held.
 */
#ifndef WF_CORE_MESSAGE_CONNECTION_CLOSE_H
#define WF_CORE_MESSAGE_CONNECTION_CLOSE_H

#include "core/message/connection.h"

/* Frames CLOSE, CLOSED. 0, or negative: the peer broke the protocol. */
int wf_connection_take_close(struct wf_desk *desk, const struct wf_frame *frame);
int wf_connection_take_closed(struct wf_desk *desk, const struct wf_frame *frame);
/* The peer has closed it, and its messages that are here are matched, or have no receive. The caller has a pin. */
void wf_connection_peer_closed(struct weft_connection *connection);

/* Cancels the sends of this side, which would delay the close, and closes. `connection` may be gone afterwards. */
void wf_connection_abort_and_close(struct weft_connection *connection);

/* Starts closing this side. */
void wf_connection_start_close(struct weft_connection *connection);

/* Takes the next step of closing: CLOSE or CLOSED becomes due, or the object ends. `connection` may be gone then. */
void wf_connection_step(struct weft_connection *connection);

/* The same, if nobody uses the connection and either side closes it. */
static inline void wf_connection_check(struct weft_connection *connection)
{
    if (connection->pins == 0 && (connection->state == WF_CONNECTION_CLOSING || connection->close_seen))
        wf_connection_step(connection);
}

/* Both sides have closed: remembers its number as closed, and frees it. */
void wf_connection_over(struct weft_connection *connection);

#endif
