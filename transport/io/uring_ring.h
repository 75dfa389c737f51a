/*
 * uring_ring.h: a ring, and the features of this kernel and this build of liburing. Part of the io_uring engine.
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
 * Opens the ring, or says in `status` why it cannot. `pinned`: only one thread will submit and reap. Then completions
 * do not interrupt that thread: they appear when it enters the kernel, and the ring shows when to enter. The caller
 * zeroes `ring` before; close accepts it after a failure, too.
 */
int wf_ring_open(struct wf_ring *ring, bool pinned, struct wf_status *status);
void wf_ring_close(struct wf_ring *ring);

/* Can sends leave without a copy here? 0, or negative with the reason. */
int wf_ring_check_zero_copy(struct wf_ring *ring, struct wf_status *status);

/* Submits the prepared calls and waits for a completion, at most `timeout_ns` (negative: no limit), in one system call
 * if liburing can. Signals end the wait. */
void wf_ring_wait(struct wf_ring *ring, int64_t timeout_ns);

#endif
