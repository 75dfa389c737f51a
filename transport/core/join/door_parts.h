/*
 * door_parts.h: functions shared by door_listen.c (the listening sockets), door_payload.c (those for payload streams)
 * and door.c (everything else behind door.h).
 * No other source includes it.
 */
#ifndef WF_CORE_JOIN_DOOR_PARTS_H
#define WF_CORE_JOIN_DOOR_PARTS_H

#include "core/join/door.h"

#define WF_DOOR_RETRY_NS (100 * WF_NS_PER_MS) /* pause after a failure that an immediate retry would only repeat */

/* Opens one more listening socket; `index`: -1, or the rail to whose interface it is bound. `shared`: other listeners
 * have the port, too. */
int wf_door_listen_on(struct wf_door *door, const struct sockaddr_storage *address, int index, bool shared,
                      struct wf_status *status);
/* Takes over the sockets that were opened since the last call. 0 or a negative errno, which is in the log. */
int wf_door_attach_new(struct wf_door *door);
/* Takes over the sockets that wf_door_listen() has opened. */
void wf_door_attach_listeners(struct wf_door *door);
/* An ACCEPT has ended: takes the visitor, and posts the next ACCEPT. */
void wf_door_accepted(struct wf_door *door, const struct wf_op *op);
/* If accepting has paused: goes on when the pause is over. Returns the time of the next call. */
int64_t wf_door_resume_accept(struct wf_door *door, int64_t now_ns);
/* Opens the listeners again whose interface has been made anew. */
void wf_door_follow_rails(struct wf_door *door);
/* Closes all listeners; no operation on them is posted. */
void wf_door_close_listeners(struct wf_door *door);

#endif
