/*
 * burst.h: how much of a message may come before its receiver has asked for it, and what that costs. Sender and
 * receiver compute both, from the sender's limits as HELLO has told them, so they must agree to the byte.
 */
#ifndef WF_WIRE_BURST_H
#define WF_WIRE_BURST_H

#include <stdint.h>

#define WF_BLOCK_BYTES 4096 /* the receiver's pool is cut into blocks of so much: credit is counted in whole ones */

/* The first bytes of a tagged message of `total` bytes that go unasked, where it is not offered: all of it up to
 * `eager`, else up to `first_burst`. */
static inline uint64_t wf_burst_bytes(uint64_t total, uint32_t eager, uint32_t first_burst)
{
    return total <= eager || total < first_burst ? total : first_burst;
}

/* What a burst of `bytes` costs of the unsolicited credit: whole blocks. */
static inline uint64_t wf_burst_charge(uint64_t bytes)
{
    return (bytes + WF_BLOCK_BYTES - 1) / WF_BLOCK_BYTES * WF_BLOCK_BYTES;
}

#endif
