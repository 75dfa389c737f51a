#include "core/ground/guard.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "core/ground/holders.h"

void wf_guard_init(struct wf_guard *guard, struct wf_world *world, const struct wf_guard_ops *ops,
                   const char *peer_name)
{
    guard->world = world;
    guard->ops = ops;
    guard->peer_name = peer_name;
    guard->references = 1;
    pthread_mutex_init(&guard->lock, NULL);
    wf_link_init(&guard->visit.link);
    atomic_init(&guard->visit.by_ns, WF_NEVER);
}

void wf_guard_fini(struct wf_guard *guard)
{
    pthread_mutex_destroy(&guard->lock);
}

void wf_guard_drop(struct wf_guard *guard)
{
    guard->references -= 1;
    /* The door frees the session: its thread can wait until no worker looks at it. It comes for the lock first. */
    if (guard->references == 0 && guard->state == WF_SESSION_DEAD)
        wf_guard_visit(guard, 0);
}

void wf_guard_unlock_and_release(struct wf_guard *guard)
{
    wf_guard_drop(guard);
    wf_guard_unlock(guard);
}

void wf_guard_let_go(struct wf_guard *guard)
{
    guard->holders -= 1;
    bool ending = guard->state == WF_SESSION_FAILED || guard->state == WF_SESSION_CLOSING;
    if (guard->holders == 0 && ending)
        guard->ops->unheld(guard);
}

int wf_guard_over(const struct wf_guard *guard)
{
    if (guard->state == WF_SESSION_FAILED || guard->state == WF_SESSION_DEAD)
        return guard->error.code;
    return guard->peer_closing ? -ESHUTDOWN : 0;
}

void wf_guard_fail(struct wf_guard *guard, int code, const char *format, ...)
{
    if (guard->state == WF_SESSION_FAILED || guard->state == WF_SESSION_DEAD)
        return;
    va_list arguments;
    va_start(arguments, format);
    guard->error.code = code;
    vsnprintf(guard->error.text, sizeof guard->error.text, format, arguments);
    va_end(arguments);
    guard->ops->failed(guard);
}
