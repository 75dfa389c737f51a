/*
 * pool.h: memory of a GPU that receive queues are bound to, and how much of it they need.
 *
 *     the card writes to the pool alone: all of its pages are the pool's, the first one too
 *
 * A pool is for one binding, of one card: a second one of the same dma-buf would hand out the same pages again.
 */
#ifndef WF_DEVMEM_POOL_H
#define WF_DEVMEM_POOL_H

#include <stdint.h>

#include "base/status.h"
#include "mem/memory.h"

/* What a pool has to hold: what is on its way at most, and what the card has in hand for more. */
struct wf_devmem_need {
    uint64_t rate;     /* bytes of payload a second, of all queues together */
    uint64_t away_ns;  /* round trip, and the time from a packet's arrival until its buffers are given back */
    uint32_t mtu;      /* of the card */
    uint32_t buffer;   /* bytes of one buffer: the page size, or more where the driver can */
    uint64_t in_rings; /* buffers that the rings of all queues hold for packets to come */
    uint64_t least;    /* bytes, rounded up to whole buffers */
    uint64_t most;     /* bytes, rounded down to whole buffers; at least one buffer. It counts where both cannot be */
};

/* Bytes of a pool, whole buffers: rate x away / fill, where a packet's payload begins a buffer and fills its last one
 * in part, plus the rings, and within the bounds. Pure. */
uint64_t wf_devmem_pool_bytes(const struct wf_devmem_need *need);

#define WF_DEVMEM_BUFFER_MAX 65536

/* Bytes of a buffer, a power of two, for cards that can have any: the least that a whole packet fits in, at least
 * `page`, so that a packet is one fragment, which is more than half of its buffer. A page where the pool that `need`
 * asks for would be more than need->most; need->buffer is not looked at. Pure. */
uint32_t wf_devmem_buffer_bytes(const struct wf_devmem_need *need, uint32_t page);

/* Owner: the caller of init. */
struct wf_devmem_pool {
    int device;
    uint8_t *base;  /* device memory, at a whole buffer; its place in the dma-buf is 0 */
    uint64_t bytes; /* whole buffers */
    int dmabuf;     /* for bind-rx; -1: there is none any more */
    void *allocation;
};

/* Allocates at least `bytes` on a device that is in use, for buffers of `buffer` bytes (0: a page), and exports them;
 * may wait. -ENOMEM; -ENOTSUP: the device has no dma-bufs. After a failure the pool is empty, and fini accepts it. */
int wf_devmem_pool_init(struct wf_devmem_pool *pool, const struct wf_memory_ops *ops, struct wf_memory *memory,
                        int device, uint64_t bytes, uint32_t buffer, struct wf_status *status);
/* Closes the dma-buf's descriptor, which a binding does not need any more. */
void wf_devmem_pool_close(struct wf_devmem_pool *pool);
/* Frees the memory. Its bindings have ended, and nothing of what arrived in it is looked at any more. */
void wf_devmem_pool_fini(struct wf_devmem_pool *pool, const struct wf_memory_ops *ops, struct wf_memory *memory);

#endif
