/* The door's listening sockets for payload streams, for cards that lead no single stream to a GPU, but all that come to
 * an address and port: those must have a port where nothing else comes. */
#include <errno.h>

#include "core/join/door_parts.h"
#include "core/rail/address.h"

static struct wf_listener *find(struct wf_door *door, int rail, int device)
{
    for (int i = 0; i < door->listeners_attached; i++)
        if (door->listeners[i].to_rail == rail && door->listeners[i].to_device == device)
            return &door->listeners[i];
    return NULL;
}

/* At the rail's address; `port` 0: the kernel chooses one. */
static int open_at(struct wf_door *door, int rail, int port, struct wf_status *status)
{
    struct wf_rail the;
    wf_rails_read(door->sessions->rails, rail, &the);
    struct sockaddr_storage place = the.address;
    wf_address_set_port(&place, port);
    return wf_door_listen_on(door, &place, the.crowded ? rail : -1, false, status);
}

/* The port next to the door's own, by the GPU's number, so that a firewall can be told beforehand. */
static int wanted_port(const struct wf_door *door, int device)
{
    int port = door->port + 1 + device;
    return door->sessions->world->tuning.port > 0 && port <= UINT16_MAX ? port : 0;
}

int wf_door_payload_port(struct wf_door *door, int rail, int device, struct wf_status *status)
{
    struct wf_world *world = door->sessions->world;
    struct wf_listener *listener = find(door, rail, device);
    if (listener)
        return wf_address_port(&listener->options.local);
    if (door->listener_count == WF_LISTENERS_MAX || door->listeners_attached < door->listener_count)
        return wf_fail(status, -ENOSPC, "no more ports for payload than %d", WF_PAYLOAD_LISTENERS_MAX);
    int wanted = wanted_port(door, device), result = open_at(door, rail, wanted, status);
    if (result < 0 && wanted > 0) /* taken, or not for this user */
        result = open_at(door, rail, 0, status);
    if (result < 0)
        return result;
    struct sockaddr_storage bound;
    listener = &door->listeners[door->listener_count - 1];
    listener->to_rail = rail;
    listener->to_device = device;
    result = world->engine_ops->address(world->engine_host, listener->fd, false, &bound);
    if (result == 0)
        result = wf_door_attach_new(door);
    if (result < 0) {
        world->engine_ops->close_fd(world->engine_host, listener->fd);
        door->listener_count -= 1;
        return wf_fail(status, result, "no port for payload: %s", wf_strerror(result));
    }
    int port = wf_address_port(&bound);
    wf_address_set_port(&listener->options.local, port);
    wf_world_fallback(world,
                      "devmem: payload for GPU %d comes to port %d of %s: the card there takes rules for a port only; "
                      "let it through the firewall",
                      device, port, door->sessions->rails->each[rail].name);
    return port;
}
