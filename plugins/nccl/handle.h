/*
 * handle.h: what NCCL carries from a listener to the process that connects. One layout, little-endian, never larger
 * than NCCL_NET_HANDLE_MAXSIZE. What another plugin or another version has written is refused.
 */
#ifndef WEFT_NCCL_HANDLE_H
#define WEFT_NCCL_HANDLE_H

#include <stddef.h>
#include <stdint.h>

#include "plugins/nccl/plugin.h"

#define HANDLE_VERSION 1
#define HANDLE_TEXT_BYTES 96 /* of an address with its port */
#define HANDLE_ADDRESS_BYTES 88

struct plugin_handle {
    char magic[8];
    uint8_t version;
    uint8_t address_count;
    uint16_t port;
    uint32_t endpoint;                       /* of the listener */
    uint64_t process;                        /* that listens: plugin_process() */
    uint32_t device;                         /* of that process */
    uint32_t reserved;                       /* 0 */
    uint64_t joining;                        /* written by the side that connects: what it has begun; 0: nothing yet */
    uint8_t addresses[HANDLE_ADDRESS_BYTES]; /* 4 and 4 bytes, or 6 and 16, for each rail as long as there is room */
};

_Static_assert(sizeof(struct plugin_handle) == NCCL_NET_HANDLE_MAXSIZE, "NCCL carries so many bytes");

void plugin_handle_fill(struct plugin_handle *handle, const struct plugin_device *device, uint32_t endpoint, int port);

/* NULL: it is one of ours; else why not, in a few words. */
const char *plugin_handle_fault(const struct plugin_handle *handle);

/* Address number `index` (of `address_count`) with its port, as weft_connect() takes it. A link-local address goes out
 * on the rail of `device` that has the same number. False: there is none. */
bool plugin_handle_address(const struct plugin_handle *handle, const struct plugin_device *device, int index,
                           char text[HANDLE_TEXT_BYTES]);

#endif
