/*
 * lobby.h: the requests of a context that belong to no session: what waits for a peer or a message of any session. They
 * are in a book of their own, with a guard of its own, so weft_test(), weft_wait(), queues, deadlines and weft_cancel()
 * serve them as they serve those of a session.
 *
 * A session that carries such a request out has a request of its own for it: `inner` of the lobby's, whose `outer` is
 * the lobby's. When the inner request ends, it hands its end over to the outer one, and is gone.
 */
#ifndef WF_CORE_REQUEST_LOBBY_H
#define WF_CORE_REQUEST_LOBBY_H

#include "base/list.h"
#include "core/ground/guard.h"
#include "core/ground/terms.h"
#include "core/request/book.h"
#include "core/request/request.h"

/* Owner: the context. The guard's state is always UP, and its visit is one of the door's. Its lock is taken inside a
 * session's. */
struct wf_lobby {
    struct wf_guard guard;
    struct wf_terms terms; /* all zero: none of these requests moves bytes */
    struct wf_book book;
    struct wf_list acceptors; /* PEER_ACCEPT requests in the order of the calls, by match_link */
    struct wf_list leaving;   /* requests that a session carries out and that are to end early, by match_link */
    struct wf_list details;   /* what requests have as `detail`, by a link that stands first in it; from malloc() */
    uint64_t next_order;      /* of posting */
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

/* Releases the lock with no session's lock held, and has every waiting thread look that may have to. */
void wf_lobby_unlock(struct wf_lobby *lobby);

/* The lobby whose request this is. */
static inline struct wf_lobby *wf_lobby_of(const struct weft_request *request)
{
    return WF_CONTAINER(request->book, struct wf_lobby, book);
}

/* The request is to end with `status`, once the session that carries it out has let go of its memory. Lock held. */
void wf_lobby_leave(struct weft_request *request, int status);

/* Keeps the text that says why `inner` failed, for `outer`. Lock held. */
void wf_lobby_detail(struct wf_lobby *lobby, struct weft_request *outer, const struct weft_request *inner);
/* The text, or NULL: there is none. */
const char *wf_lobby_text(const struct weft_request *request);
/* Frees it: for `gone` of struct wf_request_ops. */
void wf_lobby_forget(struct weft_request *request);

/* Gives the peer to the caller that has waited longest. False: nobody waits. Without the lobby's lock. */
bool wf_lobby_welcome(struct wf_lobby *lobby, struct weft_peer *peer);
/* Asks every request to end early. Without the lobby's lock. */
void wf_lobby_cancel(struct wf_lobby *lobby, int status);

/* Ends what is late; returns the time of the next deadline, or WF_NEVER. world.lock held. */
int64_t wf_lobby_tick(struct wf_lobby *lobby, int64_t now_ns);

#endif
