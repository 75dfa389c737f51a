/*
 * blocks.h: the unexpected pool: unsolicited bytes wait here for their receive. Its blocks have a fixed size, so bytes
 * within the credit always find room.
 */
#ifndef WF_CORE_MESSAGE_BLOCKS_H
#define WF_CORE_MESSAGE_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/burst.h"

#define WF_NO_BLOCK UINT32_MAX

/* The unexpected pool. Owner: session lock. */
struct wf_blocks {
    uint8_t *memory;
    uint32_t *next; /* by block: the next block of its chain */
    uint32_t count, free;
    uint32_t first_free; /* of those that were given back */
    uint32_t fresh;      /* the first that was never taken: `next` of it and of later ones is untouched memory */
};

int wf_blocks_init(struct wf_blocks *blocks, uint64_t bytes);
void wf_blocks_fini(struct wf_blocks *blocks);

bool wf_blocks_fit(const struct wf_blocks *blocks, uint64_t bytes);
/* A chain of blocks for `bytes`, or WF_NO_BLOCK: the peer has sent more than its credit. */
uint32_t wf_blocks_take(struct wf_blocks *blocks, uint64_t bytes);
void wf_blocks_give(struct wf_blocks *blocks, uint32_t first);

/* Copies bytes to the chain, and from its start. */
void wf_blocks_fill(const struct wf_blocks *blocks, uint32_t first, const void *from, uint64_t bytes);
void wf_blocks_read(const struct wf_blocks *blocks, uint32_t first, void *to, uint64_t bytes);

#endif
