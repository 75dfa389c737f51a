/*
 * endpoint.h: the steps behind the public calls on connections, for tests that must not wait. Each step takes the
 * session's lock itself.
 */
#ifndef WF_CORE_CALLS_ENDPOINT_H
#define WF_CORE_CALLS_ENDPOINT_H

#include "weft.h"

/* Starts closing this side: the user's handle is gone. NULL: no memory for a request, it closes all the same. */
struct weft_request *wf_connection_close_start(struct weft_connection *connection);

/* Sends OPEN; the request ends when the peer has answered. If it fails, the connection is gone with it. */
int wf_connection_open_start(struct weft_endpoint *endpoint, struct weft_peer *peer, uint32_t remote_id,
                             struct weft_connection **connection, struct weft_request **request,
                             struct weft_error *err);

#endif
