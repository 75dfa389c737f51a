/*
 * interest.h: what the epoll engine knows of each descriptor, and what it has asked the kernel to tell of it.
 *
 * Every descriptor is registered edge-triggered, and a direction is added to its registration the first time that an
 * operation has to wait for it; after that no epoll_ctl is made. (Registering both at once would wake the engine that
 * sends for every byte that arrives for the engine that receives.) A descriptor that is read without asking can be
 * muted, which takes it out of the set: for one that is in it the kernel calls the set with each segment that comes,
 * while it holds the lock that the reader waits for.
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
    bool muted;               /* not in the set: nothing is told of it */
    bool can_read, can_write; /* a call is worth a try */
    bool ended;               /* the stream's end or error is queued: its edge is gone, keep reading up to it */
};

/* Owner: the thread that drives the engine. */
struct wf_interest {
    int epoll_fd;             /* the user's */
    struct wf_fd_slot *slots; /* by descriptor */
    int slot_count;
    int attached; /* descriptors */
};

void wf_interest_init(struct wf_interest *set, int epoll_fd);
void wf_interest_fini(struct wf_interest *set);

/* What is known of `fd`; NULL: it is not attached. Good until the next attach. */
static inline struct wf_fd_slot *wf_interest_of(const struct wf_interest *set, int fd)
{
    return fd >= 0 && fd < set->slot_count && set->slots[fd].attached ? &set->slots[fd] : NULL;
}

/* 0, or -EBADF, -EEXIST, -ENOMEM and what else epoll_ctl() says. */
int wf_interest_attach(struct wf_interest *set, int fd);

/* Neither direction has an operation. */
void wf_interest_detach(struct wf_interest *set, int fd);

/* Registers these EPOLL events of `fd`, too; an event that is true already is reported at once. Ends muting. 0 or
 * -errno.
 */
int wf_interest_add(struct wf_interest *set, int fd, uint32_t events);

/* Takes `fd` out of the set of the kernel. `interest` stays, so that wf_interest_add() can register it again. */
void wf_interest_mute(struct wf_interest *set, int fd);

#endif
