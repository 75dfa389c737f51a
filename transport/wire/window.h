/*
 * window.h: the frames and bytes that a receiver has promised to take. Invariant on the sending side:
 *
 *     spent_frames <= granted_frames  and  spent_bytes <= granted_bytes
 *
 * Totals are absolute and only grow, so they may arrive twice, late, or over any channel.
 */
#ifndef WF_WIRE_WINDOW_H
#define WF_WIRE_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

struct wf_window {
    uint64_t granted_frames, granted_bytes; /* promised by the receiver */
    uint64_t spent_frames, spent_bytes;     /* used by the sender */
};

/* May a sequenced frame with `bytes` of payload be sent? */
static inline bool wf_window_open(const struct wf_window *window, uint64_t bytes)
{
    return window->spent_frames < window->granted_frames && bytes <= window->granted_bytes - window->spent_bytes;
}

static inline void wf_window_spend(struct wf_window *window, uint64_t bytes)
{
    window->spent_frames += 1;
    window->spent_bytes += bytes;
}

/* Takes over totals that are higher than the known totals. Lower totals are older and are ignored. */
void wf_window_grant(struct wf_window *window, uint64_t frames, uint64_t bytes);

/* The 64-bit total with the low 32 bits `low` that is nearest to `known`; the two differ by at most 2^31. */
uint64_t wf_window_unwrap(uint64_t known, uint32_t low);

#endif
