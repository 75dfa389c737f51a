/*
 * uring_ring.h: a ring, with what this kernel and this build of liburing can do. Part of the io_uring engine.
 */
#ifndef WF_IO_URING_RING_H
#define WF_IO_URING_RING_H

#include <liburing.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

struct wf_ring {
    struct io_uring uring;
    bool open;
    bool poll_first; /* a send or receive can be told to wait before its first try (Linux 5.19) */
    bool zero_copy;  /* sends from one and from several buffers can leave without a copy (Linux 6.1) */
};

/*
 * Opens it, or says why that is impossible. `pinned`: one thread alone will submit and reap, so that completions need
 * not interrupt it: they appear when it enters the kernel, and the ring says when that is worth it. `ring` is zeroed
 * before; close accepts it after a failure too.
 */
int wf_ring_open(struct wf_ring *ring, bool pinned, struct wf_status *status);
void wf_ring_close(struct wf_ring *ring);

/* Whether sends can leave without a copy here: 0, or negative with the reason. */
int wf_ring_check_zero_copy(struct wf_ring *ring, struct wf_status *status);

/* Submits what was prepared and waits for a completion, at most `timeout_ns` (negative: for ever), in one system call
 * where liburing can. Signals end the wait. */
void wf_ring_wait(struct wf_ring *ring, int64_t timeout_ns);

#endif
