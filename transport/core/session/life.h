/*
 * life.h: the times by which a session judges whether its peer lives, and when to look again.
 */
#ifndef WF_CORE_SESSION_LIFE_H
#define WF_CORE_SESSION_LIFE_H

#include <stdbool.h>
#include <stdint.h>

struct weft_request;

/* When the peer last showed life, and when the next look at deadlines is due. Owner: session lock. */
struct wf_life {
    int64_t due_ns;                   /* when the next look at deadlines is due; 0: before the first look */
    int64_t answers_ns;               /* the user closes it: until then the peer's answers to CLOSE are awaited */
    int64_t closing_ns;               /* when the session became CLOSING */
    int64_t join_by_ns;               /* JOINING, acceptor: fails if channels are still missing at this time */
    int64_t alone_ns;                 /* when the last channel was lost; valid while up_count is 0 */
    uint64_t retired, retired_before; /* frames that the peer has acknowledged: now, and at `progress_ns` */
    int64_t progress_ns;              /* when `retired` was last seen to grow */
    bool waited;                      /* a frame was unacknowledged at the last look */
    int64_t greeted_ns;               /* when `progress_ns` was last set anew because a channel came up after none */
    int64_t goodbye_ns;               /* when the last BYE came; 0: none has come */
    int64_t called_ns;                /* when the peer last proved itself for a channel: its process lives */
    int64_t survey_ns;                /* when the next look at the rails is due */
    uint64_t heard_before;            /* rails on which bytes had come at the last look, as bits */
    int64_t ping_ns;                  /* when the PING under way became due; 0: no PING is under way */
    uint64_t ping_number;
    struct weft_request *closing; /* PEER_CLOSE request */
    bool dismissed;               /* the user, or the end of the context, closes the session */
};

#endif
