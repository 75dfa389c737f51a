#include "core/request/lobby.h"

#include <stdlib.h>

static struct wf_waiting *waiting_of(const struct wf_guard *guard)
{
    return WF_CONTAINER(guard, struct wf_lobby, guard)->book.waiting;
}

/* A request was cancelled: a thread of the user may sleep in the engine. */
static void push(struct wf_guard *guard)
{
    wf_wait_ring(waiting_of(guard));
}

static const struct wf_guard_ops guard_ops = {.push = push};

void wf_lobby_init(struct wf_lobby *lobby, struct wf_waiting *waiting)
{
    wf_guard_init(&lobby->guard, waiting->world, &guard_ops, "no peer yet");
    wf_guard_enter(&lobby->guard, WF_SESSION_UP);
    wf_book_init(&lobby->book, &lobby->guard, &lobby->terms, waiting);
    wf_list_init(&lobby->acceptors);
    wf_list_init(&lobby->details);
}

int wf_lobby_open(struct wf_lobby *lobby)
{
    return wf_alarm_enter(&lobby->guard.world->alarm, &lobby->guard.visit);
}

void wf_lobby_fini(struct wf_lobby *lobby)
{
    wf_alarm_leave(&lobby->guard.world->alarm, &lobby->guard.visit);
    struct wf_link *detail;
    while ((detail = wf_list_pop_front(&lobby->details)))
        free(detail);
    wf_book_fini(&lobby->book);
    wf_guard_fini(&lobby->guard);
}

void wf_lobby_unlock(struct wf_lobby *lobby)
{
    struct wf_waiting *waiting = lobby->book.waiting;
    wf_guard_unlock(&lobby->guard);
    wf_wait_ring(waiting);
}

bool wf_lobby_welcome(struct wf_lobby *lobby, struct weft_peer *peer)
{
    wf_lobby_lock(lobby);
    struct wf_link *link = wf_list_first(&lobby->acceptors);
    if (!link) {
        wf_guard_unlock(&lobby->guard);
        return false;
    }
    struct weft_request *request = WF_CONTAINER(link, struct weft_request, match_link);
    request->peer = peer;
    wf_request_complete(request, 0, 0);
    wf_lobby_unlock(lobby);
    return true;
}

int64_t wf_lobby_tick(struct wf_lobby *lobby, int64_t now_ns)
{
    bool expired;
    wf_lobby_lock(lobby);
    int64_t next = wf_requests_expire(&lobby->book, now_ns, &expired);
    if (expired)
        wf_lobby_unlock(lobby);
    else
        wf_guard_unlock(&lobby->guard);
    return next;
}

void wf_lobby_cancel(struct wf_lobby *lobby, int status)
{
    wf_lobby_lock(lobby);
    WF_LIST_EACH (link, following, &lobby->book.requests) {
        wf_request_cancel(WF_CONTAINER(link, struct weft_request, link), status);
    }
    wf_lobby_unlock(lobby);
}
