#include "plugins/nccl/handle.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

static const char magic[8] = {'W', 'e', 'f', 't', 'N', 'C', 'C', 'L'};

/* Writes the address of a rail, "10.0.0.1" or "fe80::1%eth0". Bytes written; 0: it does not fit. */
static size_t put_address(const char *text, uint8_t *to, size_t room)
{
    char plain[64];
    snprintf(plain, sizeof plain, "%.*s", (int)strcspn(text, "%"), text);
    uint8_t bytes[16];
    int family = strchr(plain, ':') ? 6 : 4;
    size_t length = family == 4 ? 4 : 16;
    if (length + 1 > room || inet_pton(family == 4 ? AF_INET : AF_INET6, plain, bytes) != 1)
        return 0;
    to[0] = (uint8_t)family;
    memcpy(to + 1, bytes, length);
    return length + 1;
}

void plugin_handle_fill(struct plugin_handle *handle, const struct plugin_device *device, uint32_t endpoint, int port)
{
    *handle = (struct plugin_handle){
        .version = HANDLE_VERSION,
        .port = (uint16_t)port,
        .endpoint = endpoint,
        .process = plugin_process(),
        .device = (uint32_t)device->index,
    };
    memcpy(handle->magic, magic, sizeof magic);
    size_t used = 0;
    for (int i = 0; i < device->rail_count; i++) {
        size_t wrote = put_address(device->rails[i].address, handle->addresses + used, sizeof handle->addresses - used);
        if (wrote == 0)
            break;
        used += wrote;
        handle->address_count++;
    }
}

const char *plugin_handle_fault(const struct plugin_handle *handle)
{
    if (memcmp(handle->magic, magic, sizeof magic) != 0)
        return "it is not of this plugin: every process must have the same NCCL_NET_PLUGIN";
    if (handle->version != HANDLE_VERSION)
        return "it is of another version of this plugin: install the same one on every machine";
    if (handle->address_count == 0 || handle->port == 0)
        return "it names no address";
    return NULL;
}

bool plugin_handle_address(const struct plugin_handle *handle, const struct plugin_device *device, int index,
                           char text[HANDLE_TEXT_BYTES])
{
    const uint8_t *at = handle->addresses, *end = at + sizeof handle->addresses;
    for (int i = 0; i < index && at < end; i++)
        at += *at == 4 ? 5 : 17;
    if (index >= handle->address_count || at >= end || at + (*at == 4 ? 5 : 17) > end)
        return false;
    char plain[INET6_ADDRSTRLEN];
    if (!inet_ntop(*at == 4 ? AF_INET : AF_INET6, at + 1, plain, sizeof plain))
        return false;
    bool link_local = *at == 6 && at[1] == 0xfe && (at[2] & 0xc0) == 0x80;
    const char *interface = link_local ? device->rails[index % device->rail_count].interface : "";
    snprintf(text, HANDLE_TEXT_BYTES, *at == 4 ? "%s%s%s:%u" : "[%s%s%s]:%u", plain, link_local ? "%" : "", interface,
             handle->port);
    return true;
}
