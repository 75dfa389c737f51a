#include "core/request/lobby.h"

#include <stdlib.h>

#include "core/request/book.h"

/*
 * Ends the inner requests of those that are to leave. The locks are a session's first, then the lobby's; so each round
 * finds the session, takes both locks, and looks again. world.lock held: a session is not freed meanwhile.
 */
static void end_leaving(struct wf_lobby *lobby)
{
    for (;;) {
        wf_lobby_lock(lobby);
        struct wf_link *link = wf_list_first(&lobby->leaving);
        struct wf_guard *guard = link ? WF_CONTAINER(link, struct weft_request, match_link)->inner->book->guard : NULL;
        wf_guard_unlock(&lobby->guard);
        if (!guard)
            return;
        wf_guard_lock(guard);
        wf_lobby_lock(lobby);
        link = wf_list_first(&lobby->leaving);
        struct weft_request *outer = link ? WF_CONTAINER(link, struct weft_request, match_link) : NULL;
        struct weft_request *inner = outer && outer->inner->book->guard == guard ? outer->inner : NULL;
        int status = inner ? outer->part_status : 0;
        if (inner)
            wf_link_remove(link);
        wf_guard_unlock_within(&lobby->guard, guard);
        if (inner) {
            wf_request_cancel(inner, status);
            guard->ops->kick(guard, NULL);
        }
        wf_guard_unlock(guard);
    }
}

/* A request was cancelled. */
static void push(struct wf_guard *guard)
{
    struct wf_lobby *lobby = WF_CONTAINER(guard, struct wf_lobby, guard);
    wf_lobby_lock(lobby);
    bool leaving = !wf_list_empty(&lobby->leaving);
    wf_guard_unlock(guard);
    if (leaving) {
        pthread_mutex_lock(&guard->world->lock);
        end_leaving(lobby);
        pthread_mutex_unlock(&guard->world->lock);
    }
    wf_wait_ring(lobby->book.waiting); /* a thread of the user may sleep in the engine */
}

static const struct wf_guard_ops guard_ops = {.push = push};

void wf_lobby_init(struct wf_lobby *lobby, struct wf_waiting *waiting)
{
    wf_guard_init(&lobby->guard, waiting->world, &guard_ops, "no peer yet");
    wf_guard_enter(&lobby->guard, WF_SESSION_UP);
    wf_book_init(&lobby->book, &lobby->guard, &lobby->terms, waiting);
    wf_list_init(&lobby->acceptors);
    wf_list_init(&lobby->leaving);
    wf_list_init(&lobby->details);
    lobby->next_order = 1; /* 0: no receive of an endpoint */
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

void wf_lobby_leave(struct weft_request *request, int status)
{
    request->part_status = status;
    wf_link_remove(&request->match_link);
    wf_list_push_back(&wf_lobby_of(request)->leaving, &request->match_link);
}

struct detail {
    struct wf_link link; /* wf_lobby.details */
    char text[WEFT_TEXT_BYTES];
};

void wf_lobby_detail(struct wf_lobby *lobby, struct weft_request *outer, const struct weft_request *inner)
{
    struct detail *detail = malloc(sizeof *detail);
    if (!detail) /* the status says enough */
        return;
    wf_request_describe(inner, detail->text, sizeof detail->text);
    wf_list_push_back(&lobby->details, &detail->link);
    outer->detail = detail;
}

const char *wf_lobby_text(const struct weft_request *request)
{
    const struct detail *detail = request->detail;
    return detail ? detail->text : NULL;
}

void wf_lobby_forget(struct weft_request *request)
{
    struct detail *detail = request->detail;
    if (!detail)
        return;
    wf_link_remove(&detail->link);
    free(detail);
    request->detail = NULL;
}

int64_t wf_lobby_tick(struct wf_lobby *lobby, int64_t now_ns)
{
    bool expired;
    wf_lobby_lock(lobby);
    int64_t next = wf_requests_expire(&lobby->book, now_ns, &expired);
    wf_guard_unlock(&lobby->guard);
    if (!expired)
        return next;
    end_leaving(lobby);
    wf_wait_ring(lobby->book.waiting);
    return next;
}

void wf_lobby_cancel(struct wf_lobby *lobby, int status)
{
    wf_lobby_lock(lobby);
    WF_LIST_EACH (link, following, &lobby->book.requests) {
        wf_request_cancel(WF_CONTAINER(link, struct weft_request, link), status);
    }
    wf_guard_unlock(&lobby->guard);
    push(&lobby->guard);
}
