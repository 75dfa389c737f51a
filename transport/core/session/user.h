/*
 * user.h: what the user has been told of a session, and handed of it.
 *
 * An accepted session that comes up is announced once: it goes to a call that waits for a peer, or is offered on
 * wf_sessions.accepted until a call or an event hands it over, or until it ends there. From the handing over on the
 * user may be told what happens to it (news.h).
 */
#ifndef WF_CORE_SESSION_USER_H
#define WF_CORE_SESSION_USER_H

#include <stdbool.h>

#include "base/list.h"

struct wf_tray;

/* Owner: session lock, where nothing else is said. */
struct wf_user {
    struct wf_link accept_link; /* wf_sessions.accepted; world.lock */
    struct wf_link news_link;   /* wf_sessions.news; its lock */
    bool announced;             /* the user has been told of the session (connect, accept); world.lock */
    bool has_it;                /* the user asked for the session, or has its handle */
    bool offered;               /* in wf_sessions.accepted */
    bool handed_over;           /* the user has the handle, or had it */
    bool lost_told;             /* LOST was told */
};

/* `asked`: the user has asked for the session. fini: world.lock held; `news`: wf_sessions.news. */
void wf_user_init(struct wf_user *user, bool asked);
void wf_user_fini(struct wf_user *user, struct wf_tray *news);

/* The user is told of the session from now on. world.lock held. */
static inline void wf_user_announce(struct wf_user *user)
{
    user->announced = true;
}

/* Does the session wait on wf_sessions.accepted? world.lock held. */
static inline bool wf_user_is_awaited(const struct wf_user *user)
{
    return wf_link_in_list(&user->accept_link);
}

/* --- with the session's lock held --- */

/* The session is on wf_sessions.accepted (true), or no more. */
static inline void wf_user_offer(struct wf_user *user, bool offered)
{
    user->offered = offered;
}

/* Takes it off wf_sessions.accepted. world.lock held, too. */
static inline void wf_user_withdraw(struct wf_user *user)
{
    wf_link_remove(&user->accept_link);
    user->offered = false;
}

/* The user has the handle. */
static inline void wf_user_hand_over(struct wf_user *user)
{
    user->has_it = user->handed_over = true;
}

/* LOST was told. */
static inline void wf_user_told_lost(struct wf_user *user)
{
    user->lost_told = true;
}

#endif
