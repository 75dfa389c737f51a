/*
 * ring.h: the connections of a class that are kept to the same rails and have something for bulk channels. What a
 * channel may take of one it may take of any; so a channel asks each ring, not each connection.
 *
 * All with the session's lock held.
 */
#ifndef WF_CORE_MESSAGE_RING_H
#define WF_CORE_MESSAGE_RING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

struct weft_connection;
struct wf_desk;

#define WF_RAILS_ANY UINT64_MAX

/* Owner: session lock. */
struct wf_ring {
    struct wf_link all_link;    /* wf_desk.rings */
    struct wf_link ready_link;  /* wf_desk.bulk_ready, while it has connections */
    struct wf_list connections; /* the one whose turn it is first */
    uint64_t rails;             /* of the context, as bits; WF_RAILS_ANY: all */
    unsigned traffic;           /* traffic class */
};

/* The ring of the connections of the class that are kept to these rails. NULL: no memory. */
struct wf_ring *wf_desk_ring(struct wf_desk *desk, uint64_t rails, unsigned traffic);
/* The connection has something to send on a bulk channel, or has nothing any more. */
void wf_desk_set_ready(struct wf_desk *desk, struct weft_connection *connection, bool ready);
/* The connection's turn is over: it goes to the end of its ring, and the ring behind the others. */
void wf_desk_turn_over(struct wf_desk *desk, struct weft_connection *connection);

#endif
