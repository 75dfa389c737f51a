/*
 * sessions.h: the sessions of a context, and the parts of the context that every session uses.
 */
#ifndef WF_CORE_SESSION_SESSIONS_H
#define WF_CORE_SESSION_SESSIONS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/list.h"
#include "base/log.h"
#include "base/status.h"
#include "core/request/lobby.h"
#include "wire/hello.h"

struct wf_cards;
struct wf_crew;
struct wf_devices;
struct wf_endpoints;
struct wf_rails;
struct wf_registry;
struct wf_session;
struct wf_tray;
struct wf_waiting;
struct wf_world;

/* The handle the user has. */
struct weft_peer {
    struct wf_session *session;
    char name[WF_NAME_BYTES + 72]; /* "host (addr:port)" */
    uint8_t *greeting; /* as told to this side, with a zero byte behind it; NULL: none has come. Written once,
                        * before the session has a channel */
    uint16_t greeting_length;
};

/* The sessions of a context. Owner: the context. */
struct wf_sessions {
    struct wf_world *world;
    struct wf_rails *rails;
    struct wf_crew *crew;
    struct wf_devices *devices;
    struct wf_cards *cards;
    struct wf_registry *registry;
    struct wf_waiting *waiting;
    struct wf_endpoints *endpoints;
    struct wf_lobby lobby;   /* requests that have no session */
    struct wf_tray *news;    /* sessions about which the user may be told something (news.h) */
    struct wf_list all;      /* every session that exists; world.lock, as the next two */
    struct wf_list accepted; /* sessions that came up and that nobody has asked for yet */
    int count;
    _Atomic bool ending;         /* the context is being destroyed: no peer is taken any more */
    struct wf_greeting greeting; /* for peers met from now on; world.lock */
    pthread_mutex_t log_lock;    /* taken after any other lock */
    struct wf_log_limit unknown_log;
};

/* The caller has set the pointers before init. open: before an engine listens to the alarm; 0,
 * -ENOMEM, or the errno of making a descriptor. */
void wf_sessions_init(struct wf_sessions *sessions);
int wf_sessions_open(struct wf_sessions *sessions, struct wf_status *status);
void wf_sessions_fini(struct wf_sessions *sessions);

/* What this side tells peers from now on: up to WF_GREETING_MAX bytes. No lock held. */
void wf_sessions_set_greeting(struct wf_sessions *sessions, const void *bytes, uint32_t length);

/* offer: gives a session to the caller that waits for a peer, or puts it on the list and tells of it. take: the session
 * that has waited longest there, or NULL. world.lock held. */
void wf_sessions_offer(struct wf_sessions *sessions, struct wf_session *session);
struct wf_session *wf_sessions_take(struct wf_sessions *sessions);

#endif
