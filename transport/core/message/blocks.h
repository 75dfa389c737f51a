/*
 * blocks.h: the unexpected pool: where bytes wait that have come unasked. Blocks of a fixed size, so that the credit
 * can always be honoured.
 */
#ifndef WF_CORE_MESSAGE_BLOCKS_H
#define WF_CORE_MESSAGE_BLOCKS_H

#include <stdint.h>

#define WF_BLOCK_BYTES 4096
#define WF_NO_BLOCK UINT32_MAX

/* What a burst of `bytes` costs of the unsolicited credit: whole blocks. Both sides compute it. */
static inline uint64_t wf_unsolicited_charge(uint64_t bytes)
{
    return (bytes + WF_BLOCK_BYTES - 1) / WF_BLOCK_BYTES * WF_BLOCK_BYTES;
}

/* The unexpected pool: blocks of a fixed size, so that the credit can always be honoured. Owner: session lock. */
struct wf_blocks {
    uint8_t *memory;
    uint32_t *next; /* chain of each block */
    uint32_t count, free, first_free;
};

int wf_blocks_init(struct wf_blocks *blocks, uint64_t bytes);
void wf_blocks_fini(struct wf_blocks *blocks);

#endif
