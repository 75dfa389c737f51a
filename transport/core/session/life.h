/*
 * life.h: patience: what was seen last of a session, and when the next look is due.
 */
#ifndef WF_CORE_SESSION_LIFE_H
#define WF_CORE_SESSION_LIFE_H

#include <stdbool.h>
#include <stdint.h>

struct weft_request;

/* Patience: what was seen last, and when the next look is due. Owner: session lock. */
struct wf_life {
    int64_t due_ns;                   /* when the next look at deadlines should be; 0: there was none yet */
    int64_t closing_ns;               /* CLOSING: since when */
    int64_t join_by_ns;               /* JOINING: the acceptor's patience */
    int64_t alone_ns;                 /* when the last channel was lost; means something while up_count is 0 */
    uint64_t retired, retired_before; /* frames that the peer has acknowledged; when progress was last seen, */
    int64_t progress_ns;              /* and when that was */
    bool waited;                      /* something was unacknowledged at the last look */
    int64_t greeted_ns;               /* when it was given time after it had been gone */
    int64_t goodbye_ns;               /* the last BYE, or end of a stream after ours; 0: none */
    int64_t called_ns;                /* when the peer last proved itself for a channel: its process lives */
    int64_t survey_ns;                /* the next look at the rails */
    uint32_t heard_before;            /* rails that had been heard at the last one, as bits */
    int64_t ping_ns;                  /* 0: none under way */
    uint64_t ping_number;
    struct weft_request *closing; /* PEER_CLOSE request */
    bool dismissed;               /* closing has been asked for: by the user, or by the end of the context */
};

#endif
