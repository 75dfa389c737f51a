/*
 * endpoint.h: the steps behind the public calls on connections, for tests that must not wait. They take the lock
 * themselves.
 */
#ifndef WF_CORE_CALLS_ENDPOINT_H
#define WF_CORE_CALLS_ENDPOINT_H

#include "weft.h"

/* Starts closing this side; NULL when there is nothing to wait for and the handle is gone already. */
struct weft_request *wf_connection_close_start(struct weft_connection *connection);

/* The user has no handle any more: what is left closes on its own. */
void wf_connection_let_go(struct weft_connection *connection);

/* Sends OPEN; the request ends when the peer has answered. The connection is the caller's whatever becomes of it. */
int wf_connection_open_start(struct weft_endpoint *endpoint, struct weft_peer *peer, uint32_t remote_id,
                             struct weft_connection **connection, struct weft_request **request,
                             struct weft_error *err);

#endif
