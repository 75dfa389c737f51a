/*
 * gather.h: how many bytes of a payload a sleeping thread waits for. Each receive takes calls and locks, whether it
 * brings a segment or a hundred. Of a fast stream it brings a hundred anyway, and bytes that lie longer have left the
 * cache.
 */
#ifndef WF_CORE_CHANNEL_GATHER_H
#define WF_CORE_CHANNEL_GATHER_H

#include <stdint.h>

#include "base/clock.h"
#include "core/channel/halves.h"

/* What a thread sleeps for, while a payload comes slowly. */
#define WF_GATHER_NS (1 * WF_NS_PER_MS)
#define WF_GATHER_LEAST (4u * 1024)
#define WF_GATHER_MOST (64u * 1024)
#define WF_GATHER_FAST (512u * 1024)

/* Bytes that lie below the mark are not heard: a rail that has become slow all of a sudden must not seem lost for them.
 */
#define WF_GATHER_PATIENCE_NS WF_NS_PER_S /* nothing gathers with a rail_timeout_ms of less */

/* What comes in that time, as far as the last receive tells; 0: any byte counts. Of a long payload a power of two, so
 * that a pace that is nearly the same asks for the same, and the kernel need not be told again. */
static inline uint32_t wf_rx_gathers(const struct wf_rx *rx, int64_t rail_timeout_ns)
{
    uint64_t bytes = (uint64_t)rx->skip + rx->left;
    if (bytes < WF_GATHER_LEAST || rx->op.result <= 0 || rail_timeout_ns < WF_GATHER_PATIENCE_NS)
        return 0;
    uint64_t soon = (uint64_t)rx->op.result * WF_GATHER_NS / (uint64_t)(rx->gap_ns > 0 ? rx->gap_ns : 1);
    if (soon < WF_GATHER_LEAST || soon > WF_GATHER_FAST)
        return 0;
    uint32_t mark = WF_GATHER_MOST;
    while (mark > soon)
        mark /= 2;
    return bytes < mark ? (uint32_t)bytes : mark;
}

#endif
