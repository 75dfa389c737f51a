/*
 * terms.h: what HELLO has agreed for a session. Written once, before the session has a channel; any thread and any room
 * may read all of it.
 */
#ifndef WF_CORE_GROUND_TERMS_H
#define WF_CORE_GROUND_TERMS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/ground/world.h"
#include "wire/hello.h"

struct wf_terms {
    bool dialer;             /* this side dialled, the peer answered */
    bool greets;             /* each side sends a GREETING after HELLO */
    uint64_t peer_boot;      /* the peer's wf_hello.boot_nonce */
    uint64_t features;       /* the peer's, WF_FEATURE_ bits; DEVICE only if this side has it, too */
    struct wf_limits limits; /* the peer's; `eager` reduced to `chunk` */
    uint32_t chunk;          /* most payload of a frame that we send: the smaller setting of both sides */
    uint32_t eager, first_burst;
    uint32_t brief; /* up to so many bytes a message may go whole on an express channel, uncopied; 0: none may */
};

void wf_terms_init(struct wf_terms *terms, const struct wf_world *world, bool dialer, const struct wf_hello *peer);

#endif
