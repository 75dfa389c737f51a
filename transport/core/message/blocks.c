#include "core/message/blocks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

int wf_blocks_init(struct wf_blocks *blocks, uint64_t bytes)
{
    memset(blocks, 0, sizeof *blocks);
    blocks->first_free = WF_NO_BLOCK;
    uint64_t count = bytes / WF_BLOCK_BYTES;
    if (count == 0)
        return 0;
    /* Mapped, not allocated: pages that no unexpected message ever needs cost nothing. */
    void *memory = mmap(NULL, count * WF_BLOCK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return -ENOMEM;
    blocks->memory = memory;
    blocks->count = (uint32_t)count;
    blocks->next = malloc(count * sizeof *blocks->next);
    if (!blocks->next)
        return -ENOMEM;
    blocks->free = blocks->count;
    return 0;
}

void wf_blocks_fini(struct wf_blocks *blocks)
{
    if (blocks->memory)
        munmap(blocks->memory, (size_t)blocks->count * WF_BLOCK_BYTES);
    free(blocks->next);
    memset(blocks, 0, sizeof *blocks);
}

/* One of those that were given back, or, if there is none, the first that was never taken. */
static uint32_t take_one(struct wf_blocks *blocks)
{
    uint32_t block = blocks->first_free;
    if (block == WF_NO_BLOCK)
        return blocks->fresh++;
    blocks->first_free = blocks->next[block];
    return block;
}

bool wf_blocks_fit(const struct wf_blocks *blocks, uint64_t bytes)
{
    return wf_burst_charge(bytes) / WF_BLOCK_BYTES <= blocks->free;
}

uint32_t wf_blocks_take(struct wf_blocks *blocks, uint64_t bytes)
{
    uint32_t wanted = (uint32_t)(wf_burst_charge(bytes) / WF_BLOCK_BYTES);
    if (!wf_blocks_fit(blocks, bytes))
        return WF_NO_BLOCK;
    uint32_t first = take_one(blocks), last = first;
    for (uint32_t i = 1; i < wanted; i++)
        last = blocks->next[last] = take_one(blocks);
    blocks->next[last] = WF_NO_BLOCK;
    blocks->free -= wanted;
    return first;
}

void wf_blocks_give(struct wf_blocks *blocks, uint32_t first)
{
    while (first != WF_NO_BLOCK) {
        uint32_t next = blocks->next[first];
        blocks->next[first] = blocks->first_free;
        blocks->first_free = first;
        blocks->free += 1;
        first = next;
    }
}

static uint8_t *memory_of(const struct wf_blocks *blocks, uint32_t block)
{
    return blocks->memory + (size_t)block * WF_BLOCK_BYTES;
}

void wf_blocks_fill(const struct wf_blocks *blocks, uint32_t first, const void *from, uint64_t bytes)
{
    const uint8_t *at = from;
    for (; bytes > WF_BLOCK_BYTES; first = blocks->next[first], at += WF_BLOCK_BYTES, bytes -= WF_BLOCK_BYTES)
        memcpy(memory_of(blocks, first), at, WF_BLOCK_BYTES);
    if (bytes > 0)
        memcpy(memory_of(blocks, first), at, bytes);
}

void wf_blocks_read(const struct wf_blocks *blocks, uint32_t first, void *to, uint64_t bytes)
{
    uint8_t *at = to;
    for (; bytes > WF_BLOCK_BYTES; first = blocks->next[first], at += WF_BLOCK_BYTES, bytes -= WF_BLOCK_BYTES)
        memcpy(at, memory_of(blocks, first), WF_BLOCK_BYTES);
    if (bytes > 0)
        memcpy(at, memory_of(blocks, first), bytes);
}
