/* The door's listening sockets: opens them, accepts visitors, and opens them again after a change of a rail. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/join/door_parts.h"
#include "core/join/talk.h"
#include "core/rail/address.h"

#define BACKLOG 512
#define PORTS_TRIED 16
#define CROWDED_NS (2 * WF_NS_PER_MS) /* how long callers wait in the kernel's queue before the next look for room */

void wf_door_close_listeners(struct wf_door *door)
{
    const struct wf_engine_ops *ops = door->sessions->world->engine_ops;
    for (int i = 0; i < door->listener_count; i++) {
        if (i < door->listeners_attached)
            ops->detach(door->engine, door->listeners[i].fd);
        ops->close_fd(door->sessions->world->engine_host, door->listeners[i].fd);
        if (door->listeners[i].next_fd >= 0)
            ops->close_fd(door->sessions->world->engine_host, door->listeners[i].next_fd);
    }
    door->listener_count = 0;
    if (door->listeners_attached > 0) /* if it is 0 a user's thread may call, and the door's thread may read it */
        door->listeners_attached = 0;
}

/* The rail to whose interface a link-local address belongs; -1: to none of them, or it is not link-local. */
static int rail_on_link(struct wf_sessions *sessions, const struct sockaddr_storage *address)
{
    for (int i = 0; i < sessions->rails->count && wf_address_is_link_local(address); i++) {
        struct wf_rail rail;
        struct sockaddr_storage there = *address;
        wf_rails_read(sessions->rails, i, &rail);
        wf_address_set_scope(&there, rail.index);
        if (wf_address_same_host(&there, address))
            return i;
    }
    return -1;
}

int wf_door_listen_on(struct wf_door *door, const struct sockaddr_storage *address, int index, bool shared,
                      struct wf_status *status)
{
    struct wf_sessions *sessions = door->sessions;
    struct wf_socket_options options = {.local = *address,
                                        .buffer_bytes = sessions->world->tuning.socket_buffer,
                                        .shared_port = shared,
                                        .dscp = sessions->world->tuning.dscp[0]};
    snprintf(options.congestion, sizeof options.congestion, "%s",
             wf_world_congestion(sessions->world, wf_address_is_loopback(address)));
    int bound = index >= 0 ? index : rail_on_link(sessions, address);
    struct wf_rail rail = {0};
    char text[80];
    if (bound >= 0)
        wf_rails_read(sessions->rails, bound, &rail);
    if (index >= 0)
        snprintf(options.device, sizeof options.device, "%s", rail.device);
    wf_address_text(address, true, text, sizeof text);
    int fd = sessions->world->engine_ops->listen(sessions->world->engine_host, &options, BACKLOG);
    if (fd == -EADDRINUSE)
        return wf_fail(status, fd, "cannot listen on %s: the port is in use; choose another with --port or WEFT_PORT",
                       text);
    if (fd == -EADDRNOTAVAIL)
        return wf_fail(status, fd, "cannot listen on %s: no interface of this machine has that address", text);
    if (fd == -EACCES)
        return wf_fail(status, fd, "cannot listen on %s: only root may take so low a port; name one from 1024 up",
                       text);
    if (fd < 0)
        return wf_fail(status, fd, "cannot listen on %s: %s", text, wf_strerror(fd));
    door->listeners[door->listener_count++] = (struct wf_listener){.fd = fd,
                                                                   .next_fd = -1,
                                                                   .options = options,
                                                                   .to_rail = -1,
                                                                   .to_device = -1,
                                                                   .rail = bound,
                                                                   .interface = rail.index};
    return 0;
}

static bool covered(const struct sockaddr_storage *listening, const struct sockaddr_storage *rail)
{
    if (wf_address_is_any(listening)) /* the IPv4 wildcard takes no IPv6, the IPv6 wildcard takes both */
        return listening->ss_family != AF_INET || rail->ss_family == AF_INET;
    return wf_address_same_host(listening, rail);
}

static bool any_crowded(const struct wf_sessions *sessions)
{
    for (int i = 0; i < sessions->rails->count; i++)
        if (sessions->rails->each[i].crowded)
            return true;
    return false;
}

/*
 * If two interfaces are in one subnet, the kernel answers a SYN through the first that leads to the dialer, also when
 * the SYN came in through the second. A dialer's socket that is bound to an interface gets nothing that comes in
 * through another. A listener that is bound to the second interface answers through the second.
 */
static int listen_on_rail(struct wf_door *door, const struct sockaddr_storage *address, int index, int port,
                          bool shared, struct wf_status *status)
{
    struct wf_rail rail;
    wf_rails_read(door->sessions->rails, index, &rail);
    struct sockaddr_storage place = rail.address;
    wf_address_set_port(&place, port);
    int result = covered(address, &place) ? 0 : wf_door_listen_on(door, &place, -1, shared, status);
    return rail.crowded && result == 0 ? wf_door_listen_on(door, &place, index, true, status) : result;
}

/* Listens at `address` and at the rails' addresses, with one port. `bound`: becomes the address with that port. */
static int listen_everywhere(struct wf_door *door, const struct sockaddr_storage *address,
                             struct sockaddr_storage *bound, struct wf_status *status)
{
    struct wf_sessions *sessions = door->sessions;
    bool shared = any_crowded(sessions);
    int result = wf_door_listen_on(door, address, -1, shared, status);
    if (result == 0)
        result =
            sessions->world->engine_ops->address(sessions->world->engine_host, door->listeners[0].fd, false, bound);
    int port = result < 0 ? 0 : wf_address_port(bound);
    if (result == 0)
        wf_address_set_port(&door->listeners[0].options.local, port);
    for (int i = 0; i < sessions->rails->count && result == 0; i++)
        result = listen_on_rail(door, address, i, port, shared, status);
    return result;
}

/* Has the kernel chosen a port that is free at `address`, but in use at the address of a rail? */
static bool chosen_in_vain(const struct wf_door *door, const struct sockaddr_storage *address, int result)
{
    return result == -EADDRINUSE && wf_address_port(address) == 0 && door->listener_count > 0;
}

/* The one that does opens the listeners. False: another caller does, or has. */
static bool begin_to_listen(struct wf_door *door)
{
    pthread_mutex_lock(&door->mail_lock);
    bool first = !door->listening;
    door->listening = true;
    pthread_mutex_unlock(&door->mail_lock);
    return first;
}

int wf_door_listen(struct wf_door *door, const struct sockaddr_storage *address, struct wf_status *status)
{
    struct wf_sessions *sessions = door->sessions;
    if (!begin_to_listen(door)) {
        int port = door->port; /* 0: the other call has not come so far, and may fail */
        return port ? wf_fail(status, -EALREADY, "this context listens on port %d already", port)
                    : wf_fail(status, -EALREADY,
                              "another thread is making this context listen: call weft_listen() once per context");
    }
    struct sockaddr_storage bound = *address;
    int vain[PORTS_TRIED], tried = 0; /* listeners that keep the kernel from choosing their port again */
    int result = listen_everywhere(door, address, &bound, status);
    while (chosen_in_vain(door, address, result) && tried < PORTS_TRIED) {
        vain[tried++] = door->listeners[0].fd;
        door->listeners[0] = door->listeners[--door->listener_count];
        wf_door_close_listeners(door);
        if (status)
            *status = (struct wf_status){0};
        result = listen_everywhere(door, address, &bound, status);
    }
    while (tried > 0)
        sessions->world->engine_ops->close_fd(sessions->world->engine_host, vain[--tried]);
    if (result < 0)
        wf_door_close_listeners(door);
    pthread_mutex_lock(&door->mail_lock);
    if (result < 0) {
        door->listening = false;
    } else {
        door->listen_address = bound;
        door->port = wf_address_port(&bound);
        door->listeners_changed = true;
    }
    pthread_mutex_unlock(&door->mail_lock);
    if (result < 0)
        return result;
    door->engine->ops->wake(door->engine);
    return 0;
}

static void post_accept(struct wf_door *door, struct wf_listener *listener)
{
    listener->op.kind = WF_OP_ACCEPT;
    listener->op.fd = listener->fd;
    listener->op.context = NULL;
    door->engine->ops->post(door->engine, &listener->op);
}

int wf_door_attach_new(struct wf_door *door)
{
    for (; door->listeners_attached < door->listener_count; door->listeners_attached++) {
        struct wf_listener *listener = &door->listeners[door->listeners_attached];
        int result = door->engine->ops->attach(door->engine, listener->fd);
        if (result < 0) {
            wf_log_limited(&door->sessions->world->log, &door->stranger_log, wf_world_now(door->sessions->world),
                           WF_LOG_ERROR, "cannot wait for peers: %s", wf_strerror(result));
            return result;
        }
        post_accept(door, listener);
    }
    return 0;
}

static void pause_accept(struct wf_door *door, int64_t until_ns)
{
    door->accept_paused = true;
    door->accept_again_ns = until_ns;
}

void wf_door_attach_listeners(struct wf_door *door)
{
    pthread_mutex_lock(&door->mail_lock);
    bool changed = door->listeners_changed;
    door->listeners_changed = false;
    pthread_mutex_unlock(&door->mail_lock);
    if (changed && wf_door_attach_new(door) < 0)
        pause_accept(door, wf_world_now(door->sessions->world) + WF_DOOR_RETRY_NS);
}

static struct wf_listener *listener_of(struct wf_door *door, const struct wf_op *op)
{
    for (int i = 0; i < door->listener_count; i++)
        if (&door->listeners[i].op == op)
            return &door->listeners[i];
    return NULL;
}

static void change_over(struct wf_door *door, struct wf_listener *listener)
{
    const struct wf_engine_ops *ops = door->sessions->world->engine_ops;
    int fd = listener->next_fd, unused = listener->fd;
    int result = ops->attach(door->engine, fd);
    listener->next_fd = -1;
    if (result == 0) {
        ops->detach(door->engine, unused);
        listener->fd = fd;
        wf_log(&door->sessions->world->log, WF_LOG_INFO, "listening on rail %s again",
               door->sessions->rails->each[listener->rail].name);
    } else {
        wf_log(&door->sessions->world->log, WF_LOG_ERROR, "cannot wait for peers: %s", wf_strerror(result));
        unused = fd;
    }
    ops->close_fd(door->sessions->world->engine_host, unused);
}

void wf_door_accepted(struct wf_door *door, const struct wf_op *op)
{
    struct wf_listener *listener = listener_of(door, op);
    int64_t now = wf_world_now(door->sessions->world);
    if (listener->next_fd >= 0)
        change_over(door, listener);
    if (listener->op.result >= 0 && listener->to_device >= 0)
        wf_talk_visit_mute(door, (int)listener->op.result, listener->to_rail, listener->to_device);
    else if (listener->op.result >= 0)
        wf_talk_visit(door, (int)listener->op.result);
    bool good = listener->op.result >= 0 || listener->op.result == -ECANCELED;
    if (good && wf_talk_has_room(door, now)) {
        post_accept(door, listener);
        return;
    }
    pause_accept(door, now + (good ? CROWDED_NS : WF_DOOR_RETRY_NS)); /* at once it would fail again */
    if (good)
        return;
    wf_log_limited(&door->sessions->world->log, &door->stranger_log, now, WF_LOG_WARN,
                   "cannot accept a connection: %s%s", wf_strerror((int)listener->op.result),
                   listener->op.result == -EMFILE ? "; raise the limit of open files (ulimit -n)" : "");
}

int64_t wf_door_resume_accept(struct wf_door *door, int64_t now)
{
    if (!door->accept_paused)
        return WF_NEVER;
    if (now >= door->accept_again_ns && !wf_talk_has_room(door, now))
        door->accept_again_ns = now + CROWDED_NS;
    if (now < door->accept_again_ns)
        return door->accept_again_ns;
    door->accept_paused = false;
    for (int i = 0; i < door->listeners_attached; i++)
        if (!door->listeners[i].op.posted)
            post_accept(door, &door->listeners[i]);
    if (wf_door_attach_new(door) == 0)
        return WF_NEVER;
    pause_accept(door, now + WF_DOOR_RETRY_NS);
    return door->accept_again_ns;
}

static void open_again(struct wf_door *door, struct wf_listener *listener, const struct wf_rail *rail)
{
    const struct wf_engine_ops *ops = door->sessions->world->engine_ops;
    struct wf_socket_options options = listener->options;
    wf_address_set_scope(&options.local, rail->index);
    if (options.device[0])
        snprintf(options.device, sizeof options.device, "%s", rail->device);
    int fd = ops->listen(door->sessions->world->engine_host, &options, BACKLOG);
    if (fd < 0) {
        wf_log(&door->sessions->world->log, WF_LOG_WARN, "cannot listen on rail %s again: %s", rail->name,
               wf_strerror(fd));
        return;
    }
    if (listener->next_fd >= 0)
        ops->close_fd(door->sessions->world->engine_host, listener->next_fd);
    listener->next_fd = fd;
    if (listener->op.posted)
        ops->cancel(door->engine, &listener->op);
    else
        change_over(door, listener);
}

void wf_door_follow_rails(struct wf_door *door)
{
    for (int i = 0; i < door->listeners_attached; i++) {
        struct wf_listener *listener = &door->listeners[i];
        const struct wf_rail *rail = listener->rail < 0 ? NULL : &door->sessions->rails->each[listener->rail];
        if (!rail || rail->index == listener->interface || atomic_load(&rail->down))
            continue;
        listener->interface = rail->index; /* before the attempt: if it fails, it is not repeated */
        open_again(door, listener, rail);
    }
}
