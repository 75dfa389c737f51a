/* Descriptors as the engine that injects faults sees them, and what it answers about them. */
#include <stdlib.h>

#include "io/fault_parts.h"

/* --- what is known of them --- */

/* Lock held. */
static struct wf_fault_socket *find_fault_socket(struct wf_fault *fault, int fd)
{
    WF_LIST_EACH (link, following, &fault->sockets[(unsigned)fd % WF_FAULT_BUCKETS]) {
        struct wf_fault_socket *socket = WF_CONTAINER(link, struct wf_fault_socket, link);
        if (socket->fd == fd)
            return socket;
    }
    return NULL;
}

struct wf_fault_socket *wf_fault_socket_of(struct wf_fault *fault, int fd)
{
    pthread_mutex_lock(&fault->lock);
    struct wf_fault_socket *socket = find_fault_socket(fault, fd);
    if (!socket && (socket = calloc(1, sizeof *socket))) {
        socket->fd = fd;
        atomic_init(&socket->rail, -1);
        wf_list_push_back(&fault->sockets[(unsigned)fd % WF_FAULT_BUCKETS], &socket->link);
    }
    pthread_mutex_unlock(&fault->lock);
    if (socket)
        wf_fault_find_rail(fault, socket);
    return socket;
}

static void forget_fault_socket(struct wf_fault *fault, int fd)
{
    pthread_mutex_lock(&fault->lock);
    struct wf_fault_socket *socket = find_fault_socket(fault, fd);
    if (socket)
        wf_link_remove(&socket->link);
    pthread_mutex_unlock(&fault->lock);
    free(socket);
}

void wf_fault_find_rail(struct wf_fault *fault, struct wf_fault_socket *socket)
{
    struct sockaddr_storage local;
    if (atomic_load(&socket->rail) >= 0 || wf_around_address(fault, socket->fd, false, &local))
        return;
    atomic_store(&socket->rail, wf_fault_rail_of(fault->rails, fault->rail_count, &local));
}

/* --- progress --- */

void wf_fault_freeze(struct wf_fault *fault, struct wf_fault_socket *socket)
{
    struct wf_progress progress;
    int64_t now = wf_clock_now(fault->clock), since = now - fault->start_ns;
    int64_t until = fault->start_ns + wf_fault_stall_end(&fault->plan, atomic_load(&socket->rail), since);
    pthread_mutex_lock(&fault->lock);
    if (until > now && now >= socket->frozen_until_ns && wf_around_progress(fault, socket->fd, &progress) == 0) {
        socket->frozen = progress;
        socket->frozen_until_ns = until;
    }
    pthread_mutex_unlock(&fault->lock);
}

int wf_fault_op_progress(void *host, int fd, struct wf_progress *out)
{
    struct wf_fault *fault = host;
    struct wf_fault_socket *socket = fault->plan.spec.window_count ? wf_fault_socket_of(fault, fd) : NULL;
    if (!socket)
        return wf_around_progress(fault, fd, out);
    wf_fault_freeze(fault, socket);
    int64_t now = wf_clock_now(fault->clock);
    pthread_mutex_lock(&fault->lock);
    struct wf_progress frozen = socket->frozen;
    bool is_frozen = now < socket->frozen_until_ns;
    pthread_mutex_unlock(&fault->lock);
    if (!is_frozen)
        return wf_around_progress(fault, fd, out);
    /* Without the stall the kernel would have taken the held bytes, and the peer would not have acknowledged them. */
    frozen.pending += atomic_load(&socket->held);
    *out = frozen;
    return 0;
}

void wf_fault_op_close_fd(void *host, int fd)
{
    struct wf_fault *fault = host;
    forget_fault_socket(fault, fd); /* before: as soon as it is closed, the number may be another's */
    wf_around_close_fd(fault, fd);
}
