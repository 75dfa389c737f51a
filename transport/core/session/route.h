/*
 * route.h: what a session knows of a channel besides its stream: whether it is alive, what DOWN tells the peer when it
 * is lost, and when it is dialled again. Owner: session lock.
 */
#ifndef WF_CORE_SESSION_ROUTE_H
#define WF_CORE_SESSION_ROUTE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "core/channel/channel.h"

/* Is the channel alive? As seen at the last look (silence.c). */
struct wf_pulse {
    uint64_t heard, acknowledged; /* bytes received from the peer; bytes sent that have reached the peer's kernel */
    uint32_t still;               /* looks in a row at which neither grew although sent bytes, or a PING, wait */
    uint32_t silent;              /* the same; does not count looks at which no sent byte was on its way */
    uint32_t stuck;               /* as `still`, of looks at which sent bytes were on their way and the rail answered */
    bool asked;                   /* PING sent, no byte since: on the rail of an express channel, on a bulk channel */
    uint32_t quiet;               /* looks in a row at which no byte had come on this channel */
};

/* The DOWN frame for the incarnation that was lost last. */
struct wf_down {
    bool due;
    uint32_t incarnation;
    uint64_t disposed;
    int reason;
    int64_t lost_ns; /* when it was lost */
};

/* Dialling a lost channel again. */
struct wf_redial {
    int64_t joined_ns;    /* when the channel was joined last */
    int64_t at_ns;        /* no attempt before this time */
    int64_t pause_ns;     /* between attempts; grows while they fail */
    uint32_t incarnation; /* of the last attempt */
    bool talking;         /* an attempt is under way */
    uint32_t refused;     /* last attempts in a row at which no process listened at the peer's address */
};

/* A channel and what the session knows of it. Every channel of a session lies in a wf_route. */
struct wf_route {
    struct wf_channel channel;
    int lane; /* where it is in wf_spread.lanes, if it is there */
    struct wf_pulse pulse;
    struct wf_down down;
    struct wf_redial redial;
    uint64_t progress;   /* tx.acknowledged as of `progress_ns` */
    int64_t progress_ns; /* when tx.acknowledged was last seen to grow */
    bool waited;         /* a frame was unacknowledged at the last look */
};

/* The next attempt begins; returns its incarnation, which is newer than every one before. Session lock. */
static inline uint32_t wf_route_dial(struct wf_route *route)
{
    struct wf_redial *redial = &route->redial;
    uint32_t last = redial->incarnation > route->channel.incarnation ? redial->incarnation : route->channel.incarnation;
    redial->incarnation = last + 1;
    redial->talking = true;
    return redial->incarnation;
}

/* No attempt is of any use. Session lock. */
static inline void wf_route_given_up(struct wf_route *route)
{
    route->redial.at_ns = WF_NEVER;
}

/* The attempt is over, whatever came of it. Session lock. */
static inline void wf_route_dialled(struct wf_route *route)
{
    route->redial.talking = false;
}

static inline struct wf_route *wf_route_of(const struct wf_channel *channel)
{
    return WF_CONTAINER(channel, struct wf_route, channel);
}

#endif
