#include "core/ground/guard.h"

void wf_guard_init(struct wf_guard *guard, struct wf_world *world, const char *peer_name)
{
    guard->world = world;
    guard->peer_name = peer_name;
    guard->references = 1;
    pthread_mutex_init(&guard->lock, NULL);
}

void wf_guard_fini(struct wf_guard *guard)
{
    pthread_mutex_destroy(&guard->lock);
}
