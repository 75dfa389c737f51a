/*
 * route.h: what a session knows of each of its channels beside the stream: is it alive, what is the peer to be told of
 * its end, when is it dialled again. Owner: session lock.
 */
#ifndef WF_CORE_SESSION_ROUTE_H
#define WF_CORE_SESSION_ROUTE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "core/channel/channel.h"

/* Is it alive? As last looked at. */
struct wf_pulse {
    uint64_t heard, acknowledged; /* bytes of the peer, and of ours that have reached its kernel */
    uint32_t still;               /* looks since one of these moved although bytes of ours, or a PING, wait */
    uint32_t silent;              /* the same, with bytes on their way to its kernel all the while */
    bool asked;                   /* a PING is out, and nothing has come since: on an express channel's rail, or here */
    uint32_t quiet;               /* looks since anything has come on this channel */
};

/* What the peer is to be told of the incarnation that was lost last. */
struct wf_down {
    bool due;
    uint32_t incarnation;
    uint64_t disposed;
    int reason;
    int64_t lost_ns; /* when */
};

/* Dialling a lost channel again. */
struct wf_redial {
    int64_t joined_ns;    /* when the channel was joined last */
    int64_t at_ns;        /* not before */
    int64_t pause_ns;     /* between attempts; grows while they fail */
    uint32_t incarnation; /* of the last attempt */
    bool talking;         /* one is under way */
    bool refused;         /* the last one found nobody listening */
};

/* A channel and what belongs to it. Every channel of a session is one of these. */
struct wf_route {
    struct wf_channel channel;
    struct wf_pulse pulse;
    struct wf_down down;
    struct wf_redial redial;
    uint64_t progress;   /* `acknowledged` when it was last seen to move, */
    int64_t progress_ns; /* and when */
    bool waited;         /* something was unacknowledged at the last look */
};

static inline struct wf_route *wf_route_of(const struct wf_channel *channel)
{
    return WF_CONTAINER(channel, struct wf_route, channel);
}

#endif
