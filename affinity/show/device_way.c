#include "affinity/show/device_way.h"

#define HEADERS 52 /* bytes of an MTU: IPv4 20, TCP 20, its timestamps 12 */

struct wf_buffer_fit wf_buffer_fit(int mtu, int buffer_bytes)
{
    if (buffer_bytes <= 0 || mtu <= HEADERS)
        return (struct wf_buffer_fit){.unused_percent = -1, .full_mtu = buffer_bytes > 0 ? buffer_bytes + HEADERS : -1};
    int64_t payload = mtu - HEADERS, full = payload / buffer_bytes;
    int64_t taken = (payload + buffer_bytes - 1) / buffer_bytes * buffer_bytes;
    return (struct wf_buffer_fit){.unused_percent = (int)(((taken - payload) * 100 + taken / 2) / taken),
                                  .full_mtu = (int)((full > 0 ? full : 1) * buffer_bytes + HEADERS)};
}
