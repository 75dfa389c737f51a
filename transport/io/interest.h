/*
 * interest.h: the epoll engine's state of each descriptor, and the events of it that the kernel reports.
 *
 * Every descriptor is registered edge-triggered. A direction is added to the registration the first time that an
 * operation has to wait for it; after that no epoll_ctl is made. (With both directions from the start, each byte that
 * arrives for the receiving engine would wake the sending engine, too.) A hot descriptor (hot.h) can be muted: taken
 * out of the epoll set. For a descriptor in the set the kernel does work for each segment that arrives, while it holds
 * the lock that the reader needs.
 */
#ifndef WF_IO_INTEREST_H
#define WF_IO_INTEREST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wf_op;

struct wf_fd_slot {
    struct wf_op *reader, *writer; /* the unfinished operation of that direction */
    uint32_t interest;             /* events registered, besides the errors that are always reported */
    bool attached;
    bool muted;               /* not in the epoll set: the kernel reports no events of it */
    bool can_read, can_write; /* a call may move bytes */
    bool ended;               /* the stream's end or error is queued: its edge is gone, keep reading up to it */
    uint32_t low_water;       /* the descriptor's SO_RCVLOWAT, where it was set: fewer bytes make no edge */
};

/* Owner: the thread that drives the engine. */
struct wf_interest {
    int epoll_fd;             /* owned by the engine */
    struct wf_fd_slot *slots; /* by descriptor */
    int slot_count;
    int attached; /* descriptors */
};

void wf_interest_init(struct wf_interest *set, int epoll_fd);
void wf_interest_fini(struct wf_interest *set);

/* The slot of `fd`; NULL: `fd` is not attached. Valid until the next attach. */
static inline struct wf_fd_slot *wf_interest_of(const struct wf_interest *set, int fd)
{
    return fd >= 0 && fd < set->slot_count && set->slots[fd].attached ? &set->slots[fd] : NULL;
}

/* 0, -EBADF, -EEXIST, -ENOMEM, or another error of epoll_ctl(). */
int wf_interest_attach(struct wf_interest *set, int fd);

/* Neither direction may have an operation. */
void wf_interest_detach(struct wf_interest *set, int fd);

/* Adds `events` (EPOLL bits) to the registration of `fd`, and ends muting. An event that is true already is reported at
 * once. 0 or -errno. */
int wf_interest_add(struct wf_interest *set, int fd, uint32_t events);

/* Fewer bytes than this make no edge from now on (SO_RCVLOWAT); if they are there already, an edge comes at once. Where
 * the kernel refuses it, each byte goes on making one. */
void wf_interest_low_water(struct wf_interest *set, int fd, uint32_t bytes);

/* Takes `fd` out of the epoll set. Keeps `interest`, so that wf_interest_add() can register `fd` again. */
void wf_interest_mute(struct wf_interest *set, int fd);

#endif
