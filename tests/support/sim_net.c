/* Sockets: addresses, listening, connecting, closing. */
#include "sim_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* When a connect that a full backlog dropped is sent again, and how often: Linux's numbers, after which ETIMEDOUT. */
#define SYN_RETRY_NS WF_NS_PER_S
#define SYN_TRIES 7

/* --- addresses --- */

static struct sockaddr_in *v4(struct sockaddr_storage *address)
{
    return (struct sockaddr_in *)address;
}

static struct sockaddr_in6 *v6(struct sockaddr_storage *address)
{
    return (struct sockaddr_in6 *)address;
}

static uint16_t port_of(const struct sockaddr_storage *address)
{
    return ntohs(((const struct sockaddr_in *)address)->sin_port); /* the same place in both families */
}

/* An IPv4 address in IPv6 clothes, as a listener on :: sees it, and back. */
static struct sockaddr_storage to_mapped(struct sockaddr_storage from)
{
    struct sockaddr_storage to = {.ss_family = AF_INET6};
    v6(&to)->sin6_port = v4(&from)->sin_port;
    v6(&to)->sin6_addr.s6_addr[10] = v6(&to)->sin6_addr.s6_addr[11] = 0xff;
    memcpy(&v6(&to)->sin6_addr.s6_addr[12], &v4(&from)->sin_addr, 4);
    return to;
}

static struct sockaddr_storage from_mapped(struct sockaddr_storage from)
{
    if (from.ss_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&v6(&from)->sin6_addr))
        return from;
    struct sockaddr_storage to = {.ss_family = AF_INET};
    v4(&to)->sin_port = v6(&from)->sin6_port;
    memcpy(&v4(&to)->sin_addr, &v6(&from)->sin6_addr.s6_addr[12], 4);
    return to;
}

static bool same_host(const struct sockaddr_storage *left, const struct sockaddr_storage *right)
{
    struct sockaddr_storage a = from_mapped(*left), b = from_mapped(*right);
    if (a.ss_family != b.ss_family)
        return false;
    return a.ss_family == AF_INET ? v4(&a)->sin_addr.s_addr == v4(&b)->sin_addr.s_addr
                                  : IN6_ARE_ADDR_EQUAL(&v6(&a)->sin6_addr, &v6(&b)->sin6_addr);
}

static bool is_any(const struct sockaddr_storage *address)
{
    return address->ss_family == AF_INET ? !((const struct sockaddr_in *)address)->sin_addr.s_addr
                                         : IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)address)->sin6_addr);
}

static void choose_port(struct wf_sim *sim, struct sockaddr_storage *address)
{
    if (port_of(address))
        return;
    v4(address)->sin_port = htons(sim->next_port++);
    if (!sim->next_port)
        sim->next_port = 32768;
}

struct sim_rail *sim_rail_of(struct wf_sim *sim, const struct sockaddr_storage *local)
{
    for (int i = 0; i < sim->rail_count; i++)
        if (same_host(&sim->rails[i].local, local))
            return &sim->rails[i];
    if (sim->rail_count == SIM_RAILS)
        sim_violation("more than %d local addresses", SIM_RAILS);
    struct sim_rail *rail = &sim->rails[sim->rail_count++];
    *rail = (struct sim_rail){.local = *local};
    return rail;
}

/* --- the table of descriptors --- */

/* The lowest free place, as the kernel does: a descriptor used after its close soon meets somebody else's. */
static int free_place(struct wf_sim *sim)
{
    int at = 0;
    while (at < sim->socket_end && sim->sockets[at])
        at++;
    if (at == sim->socket_room) {
        int room = sim->socket_room ? 2 * sim->socket_room : 32;
        struct sim_socket **sockets = realloc(sim->sockets, (size_t)room * sizeof(*sockets));
        if (!sockets)
            return -ENOMEM;
        sim->sockets = sockets;
        sim->socket_room = room;
    }
    return at;
}

static struct sim_socket *new_socket(struct wf_sim *sim, bool accepted)
{
    int at = free_place(sim);
    struct sim_socket *socket = at < 0 ? NULL : calloc(1, sizeof(*socket));
    if (!socket)
        return NULL;
    socket->sim = sim;
    socket->fd = SIM_FIRST_FD + at;
    socket->accepted = accepted;
    socket->in.end_ns = socket->in.reset_ns = WF_NEVER;
    socket->syn_ns = socket->answer_ns = WF_NEVER;
    wf_list_init(&socket->pending);
    wf_link_init(&socket->pending_link);
    for (int side = 0; side < 2; side++) {
        wf_link_init(&socket->posts[side].link);
        socket->posts[side].socket = socket;
    }
    sim->sockets[at] = socket;
    if (at == sim->socket_end)
        sim->socket_end++;
    sim->open_sockets += accepted;
    return socket;
}

static void free_socket(struct sim_socket *socket)
{
    struct wf_sim *sim = socket->sim;
    sim->sockets[socket->fd - SIM_FIRST_FD] = NULL;
    while (sim->socket_end && !sim->sockets[sim->socket_end - 1])
        sim->socket_end--;
    sim->open_sockets -= socket->accepted;
    wf_link_remove(&socket->pending_link);
    free(socket->in.ring);
    free(socket);
}

int sim_socket_new(struct wf_sim *sim, const struct sockaddr_storage *local)
{
    struct sim_socket *socket = new_socket(sim, true);
    if (!socket)
        return -ENOMEM;
    socket->local = *local;
    return socket->fd;
}

/* --- listening --- */

/* A listener that would take a connection to this address; NULL: none. */
static struct sim_socket *find_listener(struct wf_sim *sim, const struct sockaddr_storage *address)
{
    for (int i = 0; i < sim->socket_end; i++) {
        struct sim_socket *socket = sim->sockets[i];
        if (!socket || socket->state != SIM_LISTENING || port_of(&socket->local) != port_of(address))
            continue;
        bool any = is_any(&socket->local) &&
                   (socket->local.ss_family == AF_INET6 || from_mapped(*address).ss_family == AF_INET);
        if (any || same_host(&socket->local, address))
            return socket;
    }
    return NULL;
}

static bool port_taken(const struct wf_sim *sim, const struct sockaddr_storage *address)
{
    for (int i = 0; i < sim->socket_end; i++) {
        const struct sim_socket *socket = sim->sockets[i];
        if (socket && socket->state == SIM_LISTENING && port_of(&socket->local) == port_of(address) &&
            (is_any(address) || is_any(&socket->local) || same_host(&socket->local, address)))
            return true;
    }
    return false;
}

int sim_listen(struct wf_sim *sim, const struct sockaddr_storage *local, int backlog)
{
    struct sockaddr_storage address = *local;
    if (!address.ss_family)
        address.ss_family = AF_INET6;
    choose_port(sim, &address);
    if (port_taken(sim, &address))
        return -EADDRINUSE;
    struct sim_socket *socket = new_socket(sim, true);
    if (!socket)
        return -ENOMEM;
    socket->local = address;
    socket->state = SIM_LISTENING;
    socket->backlog = backlog > 0 ? backlog : 1;
    return socket->fd;
}

int sim_accept(struct sim_socket *listener)
{
    struct wf_link *link = wf_list_pop_front(&listener->pending);
    if (!link)
        return -EAGAIN;
    struct sim_socket *socket = WF_CONTAINER(link, struct sim_socket, pending_link);
    listener->pending_count--;
    socket->accepted = true;
    socket->sim->open_sockets++;
    return socket->fd;
}

/* --- connecting --- */

int sim_connect(struct sim_socket *socket, const struct sockaddr_storage *remote)
{
    struct wf_sim *sim = socket->sim;
    if (socket->state != SIM_FRESH)
        return socket->state == SIM_CONNECTING ? -EALREADY : -EISCONN;
    if (remote->ss_family != AF_INET && remote->ss_family != AF_INET6)
        return -EAFNOSUPPORT;
    if (socket->local.ss_family && socket->local.ss_family != remote->ss_family)
        return -EINVAL;
    free(socket->in.ring); /* of an attempt before */
    int rc = sim_stream_open(socket);
    if (rc)
        return rc;
    if (!socket->local.ss_family) { /* nearest to any address is that address itself */
        socket->local = *remote;
        v4(&socket->local)->sin_port = 0;
    }
    choose_port(sim, &socket->local);
    socket->remote = *remote;
    socket->rail = sim_rail_of(sim, &socket->local);
    socket->far_rail = sim_rail_of(sim, remote);
    socket->state = SIM_CONNECTING;
    socket->syn_ns = sim->now_ns + sim_path_ns(socket, socket);
    socket->answer_ns = WF_NEVER;
    socket->tries = 0;
    return 0;
}

static bool path_down(const struct sim_socket *socket)
{
    const struct wf_sim_rail *near = &socket->rail->settings, *far = &socket->far_rail->settings;
    return socket->in.frozen || near->down || near->mute || far->down || far->mute;
}

int64_t sim_setup_next(const struct sim_socket *socket)
{
    if (socket->state != SIM_CONNECTING || path_down(socket))
        return WF_NEVER;
    return socket->syn_ns < socket->answer_ns ? socket->syn_ns : socket->answer_ns;
}

/* The other end of `client`, in the queue of `listener`. */
static int new_pending(struct sim_socket *client, struct sim_socket *listener)
{
    struct sim_socket *server = new_socket(client->sim, false);
    if (!server || sim_stream_open(server)) {
        if (server)
            free_socket(server);
        return ENOMEM;
    }
    bool mapped = listener->local.ss_family == AF_INET6 && client->remote.ss_family == AF_INET;
    server->local = mapped ? to_mapped(client->remote) : client->remote;
    server->remote = mapped ? to_mapped(client->local) : client->local;
    server->rail = client->far_rail;
    server->far_rail = client->rail;
    server->state = SIM_CONNECTED;
    server->dscp = listener->dscp;
    server->peer = client;
    client->peer = server;
    wf_list_push_back(&listener->pending, &server->pending_link);
    listener->pending_count++;
    return 0;
}

static void syn_arrives(struct sim_socket *client)
{
    struct wf_sim *sim = client->sim;
    struct sim_socket *listener = find_listener(sim, &client->remote);
    if (listener && listener->pending_count >= listener->backlog) {
        int64_t wait_ns = SYN_RETRY_NS << client->tries++;
        if (client->tries < SYN_TRIES) {
            client->syn_ns = sim->now_ns + wait_ns;
            return;
        }
    }
    client->syn_ns = WF_NEVER;
    client->answer = client->tries == SYN_TRIES ? ETIMEDOUT : listener ? new_pending(client, listener) : ECONNREFUSED;
    client->answer_ns = sim->now_ns + sim_path_ns(client, client);
    client->in.last_ns = client->answer_ns; /* no byte before the answer */
}

void sim_setup_settle(struct sim_socket *socket)
{
    if (socket->state != SIM_CONNECTING || path_down(socket))
        return;
    if (socket->syn_ns <= socket->sim->now_ns)
        syn_arrives(socket);
    if (socket->answer_ns <= socket->sim->now_ns) {
        socket->answer_ns = WF_NEVER;
        socket->state = socket->answer ? SIM_FRESH : SIM_CONNECTED;
    }
}

/* --- the end --- */

static void leave_peer(struct sim_socket *socket, bool reset)
{
    struct sim_socket *peer = socket->peer;
    if (!peer)
        return;
    if (reset)
        sim_send_reset(peer, sim_path_ns(socket, peer));
    else if (!socket->end_sent && !socket->swallows)
        sim_send_end(peer, sim_path_ns(socket, peer));
    peer->left = sim_progress(&socket->in);
    peer->peer = NULL;
    socket->peer = NULL;
}

static void drop_pending(struct sim_socket *listener)
{
    struct wf_link *link;
    while ((link = wf_list_pop_front(&listener->pending))) {
        struct sim_socket *socket = WF_CONTAINER(link, struct sim_socket, pending_link);
        leave_peer(socket, true);
        free_socket(socket);
    }
    listener->pending_count = 0;
}

void sim_kill(struct sim_socket *socket)
{
    drop_pending(socket);
    leave_peer(socket, true);
    if (socket->state == SIM_CONNECTED)
        socket->error = ECONNRESET; /* as Linux: the next call is told */
    if (socket->state == SIM_CONNECTING)
        socket->answer = ECONNABORTED;
    socket->state = SIM_KILLED;
}

void sim_close(struct sim_socket *socket)
{
    drop_pending(socket);
    /* Bytes that nobody will read are answered with a reset, as TCP does. */
    leave_peer(socket, socket->in.written > socket->in.read || socket->state == SIM_CONNECTING);
    free_socket(socket);
}
