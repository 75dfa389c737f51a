/*
 * endpoint.h: the endpoints of a context: numbers that peers connect to.
 */
#ifndef WF_CORE_MESSAGE_ENDPOINT_H
#define WF_CORE_MESSAGE_ENDPOINT_H

#include <pthread.h>
#include <stdint.h>

#include "base/list.h"
#include "weft.h"

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
};

void wf_endpoints_init(struct wf_endpoints *endpoints);
void wf_endpoints_fini(struct wf_endpoints *endpoints);

#endif
