/*
 * endpoint.h: the endpoints of a context: numbers that peers connect to.
 */
#ifndef WF_CORE_MESSAGE_ENDPOINT_H
#define WF_CORE_MESSAGE_ENDPOINT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/list.h"
#include "weft.h"

struct wf_lobby;

/* The endpoints of a context. Owner: the context. */
struct wf_endpoints {
    pthread_mutex_t lock;
    struct wf_list list;
};

struct weft_endpoint {
    struct wf_link link; /* wf_endpoints.list */
    struct weft_context *context;
    uint32_t id;
    uint32_t connections; /* wf_endpoints.lock */
    unsigned traffic;     /* traffic class of connections that are opened from now on; wf_endpoints.lock */
    uint64_t rails;       /* rails of the context, as bits: they carry its large messages; wf_endpoints.lock */

    /* receives from any connection (any.h) */
    struct wf_lobby *lobby;
    _Atomic bool lined;      /* somebody has asked for them: connections join `line` */
    _Atomic bool complete;   /* every connection with messages that wait has joined it */
    struct wf_list receives; /* posted, in their order; the lobby's lock, as the next */
    struct wf_list line;     /* connections with messages that wait: the one whose turn it is first */
};

void wf_endpoints_init(struct wf_endpoints *endpoints);
void wf_endpoints_fini(struct wf_endpoints *endpoints);

#endif
