#include "wire/window.h"

void wf_window_grant(struct wf_window *window, uint64_t frames, uint64_t bytes)
{
    /* Each total by itself: a late STATE from another channel may be older in both and must take nothing back. */
    if (frames > window->granted_frames)
        window->granted_frames = frames;
    if (bytes > window->granted_bytes)
        window->granted_bytes = bytes;
}

uint64_t wf_window_unwrap(uint64_t known, uint32_t low)
{
    uint32_t ahead = low - (uint32_t)known;
    uint64_t behind = (UINT64_C(1) << 32) - ahead;

    /* Exactly half way counts as behind: old news does no harm. Nothing lies before 0, whatever a peer claims. */
    if (ahead < UINT32_C(1) << 31 || behind > known)
        return known + ahead;
    return known - behind;
}
