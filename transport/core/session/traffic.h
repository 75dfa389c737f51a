/*
 * traffic.h: the traffic classes of a session. A class above 0 has channels of its own from its first use on; then the
 * dialer dials them as it redials lost ones. While a class has no channel of a kind up, the lowest class that has one
 * carries its messages too, so no message waits for a class.
 */
#ifndef WF_CORE_SESSION_TRAFFIC_H
#define WF_CORE_SESSION_TRAFFIC_H

#include <stdint.h>

#include "core/channel/carry.h"
#include "core/session/session.h"

/* The class is in use from now on. 0; -ENOTSUP: the peer knows no classes above 0; -ENOMEM. Session lock held. */
int wf_session_use_class(struct wf_session *session, unsigned traffic);

/* The strand is in use from now on: the dialer dials its channels. Session lock held. */
void wf_session_use_strand(struct wf_session *session, uint32_t strand);
/* Can device channels bring payload to this GPU? Then its strand is in use from now on. Session lock held. */
bool wf_session_reach(struct wf_session *session, int device);

/* Dialer: plans the channels of classes and strands that have come into use. Returns when to call again; WF_NEVER
 * unless memory is short. The door's thread, no lock held. */
int64_t wf_session_plan_classes(struct wf_session *session, int64_t now_ns);

/* The sum of wf_desk_waiting() over the classes that the bulk channel carries. Session lock held. */
static inline uint64_t wf_session_waiting(const struct wf_channel *channel)
{
    const struct wf_desk *desk = &wf_session_of(channel)->desk;
    uint64_t waiting = 0;
    WF_CLASSES_EACH (traffic, channel->lines->carried[channel->group]) {
        waiting += wf_desk_waiting(desk, traffic);
    }
    return waiting;
}

/* The least rate of a class but 0: at a lower one a chunk, or a message of up to `eager` bytes on an express channel,
 * could take so long that its channel counts as dead. Session lock held. */
uint64_t wf_session_least_rate(const struct wf_session *session);

/* The class's rate was set: its channels get their parts of it. Session lock held. */
void wf_session_set_rate(struct wf_session *session, unsigned traffic, uint64_t bytes_per_second);

/* A channel of the class has come up, or is up no more: divides the class's rate anew. Session lock held. */
void wf_session_pace(struct wf_session *session, unsigned traffic);

#endif
