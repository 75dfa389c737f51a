/*
 * lines.h: the channels of a session, and the pairs of rails that they run on.
 */
#ifndef WF_CORE_CHANNEL_LINES_H
#define WF_CORE_CHANNEL_LINES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "core/channel/channel.h"

#define WF_CHANNELS_MAX (WF_RAILS_MAX * 65) /* an express and up to 64 bulk channels for each pair of rails */

/* A pair of rails, ours and the peer's. Counters: relaxed, written by the halves. */
struct wf_session_rail {
    int local; /* index of context.rails; -1: an address that is no rail */
    char name[64];
    struct sockaddr_storage from, to; /* `from` with port 0 */
    bool device_bound;
    _Atomic uint64_t sent_bytes, received_bytes, resent_bytes, stalls, failures, damaged, retransmits;
    bool retired;  /* session lock: it has damaged too much */
    int last_code; /* session lock: why a channel of it was lost last; 0: none was */
};

/* Owner: the session; what follows is its lock's, where nothing else is said. */
struct wf_lines {
    int rail_count;
    struct wf_session_rail rails[WF_RAILS_MAX];
    int channel_count, joined;
    int missed;                   /* acceptor: channels that were never joined, and the dialer has lost */
    int up_count;                 /* channels that are up */
    int bulk_count;               /* bulk channels: with more than one the work is spread by rate */
    struct wf_channel **channels; /* by id; entries NULL until joined, or missed by the dialer */
    uint32_t *told;               /* by id: the highest incarnation that the peer has told us it has lost */
    _Atomic int64_t heard_ns;     /* last byte from the peer */
    _Atomic uint64_t moved;       /* payload bytes, both directions: the progress an error text tells of */
};

#endif
