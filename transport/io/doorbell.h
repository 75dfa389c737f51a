/*
 * doorbell.h: any thread can end the wait of the thread that polls an engine. It needs a system call only if the
 * polling thread sleeps.
 *
 * The polling thread sets `sleeping`, then reads `rung`. A ringing thread sets `rung`, then reads `sleeping`. Both in
 * sequentially consistent order: at least one thread sees the other's store, and the eventfd is written only for a poll
 * that may sleep. The count of the eventfd is never read: each write is an edge.
 */
#ifndef WF_IO_DOORBELL_H
#define WF_IO_DOORBELL_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define WF_CACHE_LINE 64

struct wf_doorbell {
    _Alignas(WF_CACHE_LINE) atomic_bool sleeping; /* poll waits, or is about to */
    atomic_bool rung;                             /* a thread has rung since wf_doorbell_awake() */
    int fd;                                       /* eventfd; -1: none */
};

/* 0 or -errno; fini accepts the object either way. */
static inline int wf_doorbell_init(struct wf_doorbell *bell)
{
    atomic_init(&bell->sleeping, false);
    atomic_init(&bell->rung, false);
    bell->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    return bell->fd < 0 ? -errno : 0;
}

static inline void wf_doorbell_fini(struct wf_doorbell *bell)
{
    if (bell->fd >= 0)
        close(bell->fd);
}

/* Before a wait that may sleep: false if the bell was rung, so that the wait must not sleep. */
static inline bool wf_doorbell_may_sleep(struct wf_doorbell *bell)
{
    atomic_store(&bell->sleeping, true);
    return !atomic_load(&bell->rung);
}

/* After each wait, even without sleep: this poll answers all rings so far. */
static inline void wf_doorbell_awake(struct wf_doorbell *bell)
{
    atomic_store_explicit(&bell->sleeping, false, memory_order_relaxed);
    /* An exchange, so that stores of the ringing thread before its ring are visible after this poll. */
    if (atomic_load_explicit(&bell->rung, memory_order_relaxed))
        atomic_exchange(&bell->rung, false);
}

/* Makes an edge, whether or not a thread sleeps. */
static inline void wf_doorbell_write(struct wf_doorbell *bell)
{
    uint64_t one = 1;
    while (write(bell->fd, &one, sizeof one) < 0 && errno == EINTR)
        ;
}

/* Any thread. */
static inline void wf_doorbell_ring(struct wf_doorbell *bell)
{
    if (atomic_exchange(&bell->rung, true))
        return; /* the thread that set `rung` first writes the eventfd if necessary */
    if (atomic_load(&bell->sleeping))
        wf_doorbell_write(bell);
}

#endif
