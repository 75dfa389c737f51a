/*
 * lobby.h: the requests of a context that belong to no session: what waits for a peer has none yet. They are in a book
 * of their own, with a guard of its own, so weft_test(), weft_wait(), queues, deadlines and weft_cancel() serve them as
 * they serve those of a session.
 */
#ifndef WF_CORE_REQUEST_LOBBY_H
#define WF_CORE_REQUEST_LOBBY_H

#include "base/list.h"
#include "core/ground/guard.h"
#include "core/ground/terms.h"
#include "core/request/request.h"

/* Owner: the context. The guard's state is always UP, and its visit is one of the door's. */
struct wf_lobby {
    struct wf_guard guard;
    struct wf_terms terms; /* all zero: none of these requests moves bytes */
    struct wf_book book;
    struct wf_list acceptors; /* PEER_ACCEPT requests in the order of the calls, by match_link */
    struct wf_list details;   /* what requests have as `detail`, by a link that stands first in it; from malloc() */
};

void wf_lobby_init(struct wf_lobby *lobby, struct wf_waiting *waiting);
/* The requests get deadlines: before an engine listens to the alarm. 0 or -ENOMEM. */
int wf_lobby_open(struct wf_lobby *lobby);
/* Frees all requests, whatever their state: no thread uses them any more. */
void wf_lobby_fini(struct wf_lobby *lobby);

static inline void wf_lobby_lock(struct wf_lobby *lobby)
{
    wf_guard_lock(&lobby->guard);
}

/* Releases the lock, and has every waiting thread look that may have to. */
void wf_lobby_unlock(struct wf_lobby *lobby);

/* --- without the lobby's lock --- */

/* Gives the peer to the caller that has waited longest. False: nobody waits. */
bool wf_lobby_welcome(struct wf_lobby *lobby, struct weft_peer *peer);

/* Ends what is late; returns the time of the next deadline, or WF_NEVER. */
int64_t wf_lobby_tick(struct wf_lobby *lobby, int64_t now_ns);

/* Asks every request to end early. */
void wf_lobby_cancel(struct wf_lobby *lobby, int status);

#endif
