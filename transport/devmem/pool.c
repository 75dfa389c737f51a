#include "pool.h"

#include <unistd.h>

#define HEADERS 52 /* bytes of a packet beside its payload: IPv4, TCP, and the timestamps that Linux puts there */

static uint64_t round_up(uint64_t number, uint64_t to)
{
    return (number + to - 1) / to * to;
}

static uint32_t payload_of(const struct wf_devmem_need *need)
{
    return need->mtu > HEADERS ? need->mtu - HEADERS : 1;
}

/* Buffers that are needed, whatever the bounds say. In double: what is too much for 64 bits is more than any ceiling,
 * too. */
static double buffers_wanted(const struct wf_devmem_need *need)
{
    uint32_t payload = payload_of(need);
    uint64_t buffers_of_packet = round_up(payload, need->buffer) / need->buffer;
    double packets = (double)need->rate * (double)need->away_ns / 1e9 / payload;

    return packets * (double)buffers_of_packet + (double)need->in_rings;
}

uint64_t wf_devmem_pool_bytes(const struct wf_devmem_need *need)
{
    double wanted = buffers_wanted(need);
    uint64_t most = need->most / need->buffer, least = round_up(need->least, need->buffer) / need->buffer;
    uint64_t buffers = wanted < (double)most ? (uint64_t)wanted + 1 : most;

    if (buffers < least)
        buffers = least < most ? least : most;
    return (buffers > 0 ? buffers : 1) * need->buffer;
}

uint32_t wf_devmem_buffer_bytes(const struct wf_devmem_need *need, uint32_t page)
{
    struct wf_devmem_need larger = *need;

    for (larger.buffer = page; larger.buffer < payload_of(need) && larger.buffer < WF_DEVMEM_BUFFER_MAX;)
        larger.buffer *= 2;
    return buffers_wanted(&larger) + 1 <= (double)(need->most / larger.buffer) ? larger.buffer : page;
}

int wf_devmem_pool_init(struct wf_devmem_pool *pool, const struct wf_memory_ops *ops, struct wf_memory *memory,
                        int device, uint64_t bytes, uint32_t buffer, struct wf_status *status)
{
    uint64_t unit = buffer ? buffer : (uint64_t)sysconf(_SC_PAGESIZE), offset;

    bytes = round_up(bytes, unit);
    *pool = (struct wf_devmem_pool){.device = device, .dmabuf = -1};
    /* A unit more than is exported: an allocation may begin within a page that others have memory in. */
    int result = ops->alloc(memory, device, bytes + unit, &pool->allocation, status);
    if (!result) {
        pool->base = (uint8_t *)(uintptr_t)round_up((uintptr_t)pool->allocation, unit);
        pool->bytes = bytes;
        result = ops->export_dmabuf(memory, device, pool->base, bytes, &pool->dmabuf, &offset, status);
    }
    if (result)
        wf_devmem_pool_fini(pool, ops, memory);
    return result;
}

void wf_devmem_pool_close(struct wf_devmem_pool *pool)
{
    if (pool->dmabuf >= 0)
        close(pool->dmabuf);
    pool->dmabuf = -1;
}

void wf_devmem_pool_fini(struct wf_devmem_pool *pool, const struct wf_memory_ops *ops, struct wf_memory *memory)
{
    wf_devmem_pool_close(pool);
    if (pool->allocation)
        ops->free(memory, pool->device, pool->allocation);
    *pool = (struct wf_devmem_pool){.device = WF_NO_DEVICE, .dmabuf = -1};
}
