#include "io/interest.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

void wf_interest_init(struct wf_interest *set, int epoll_fd)
{
    *set = (struct wf_interest){.epoll_fd = epoll_fd};
}

void wf_interest_fini(struct wf_interest *set)
{
    free(set->slots);
}

static int grow(struct wf_interest *set, int fd)
{
    if (fd < set->slot_count)
        return 0;
    int count = fd + 1 > 2 * set->slot_count ? fd + 16 : 2 * set->slot_count;
    struct wf_fd_slot *slots = realloc(set->slots, (size_t)count * sizeof *slots);
    if (!slots)
        return -ENOMEM;
    memset(slots + set->slot_count, 0, (size_t)(count - set->slot_count) * sizeof *slots);
    set->slots = slots;
    set->slot_count = count;
    return 0;
}

static int tell_kernel(struct wf_interest *set, int how, int fd, uint32_t events)
{
    struct epoll_event event = {.events = events | EPOLLET, .data.fd = fd};
    return epoll_ctl(set->epoll_fd, how, fd, &event) ? -errno : 0;
}

int wf_interest_attach(struct wf_interest *set, int fd)
{
    if (fd < 0)
        return -EBADF;
    const struct wf_fd_slot *before = wf_interest_of(set, fd);
    if (before && before->muted)
        return -EEXIST; /* the kernel says it of others */
    int result = grow(set, fd);
    if (!result)
        result = tell_kernel(set, EPOLL_CTL_ADD, fd, 0);
    if (result)
        return result;
    /* Not known to be ready, but worth the first try. */
    set->slots[fd] = (struct wf_fd_slot){.attached = true, .can_read = true, .can_write = true};
    set->attached += 1;
    return 0;
}

void wf_interest_detach(struct wf_interest *set, int fd)
{
    struct wf_fd_slot *slot = wf_interest_of(set, fd);
    if (!slot)
        return;
    assert(!slot->reader && !slot->writer && "no operation is posted");
    if (!slot->muted)
        (void)tell_kernel(set, EPOLL_CTL_DEL, fd, 0);
    if (slot->low_water > 1) /* nobody would know of it */
        wf_interest_low_water(set, fd, 1);
    *slot = (struct wf_fd_slot){0};
    set->attached -= 1;
}

int wf_interest_add(struct wf_interest *set, int fd, uint32_t events)
{
    struct wf_fd_slot *slot = wf_interest_of(set, fd);
    if (!slot->muted && (slot->interest & events) == events)
        return 0;
    int result = tell_kernel(set, slot->muted ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, fd, slot->interest | events);
    if (result)
        return result;
    slot->interest |= events;
    slot->muted = false;
    return 0;
}

void wf_interest_low_water(struct wf_interest *set, int fd, uint32_t bytes)
{
    struct wf_fd_slot *slot = wf_interest_of(set, fd);
    int value = (int)bytes;
    if (slot->low_water != bytes && setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &value, sizeof value) == 0)
        slot->low_water = bytes;
}

void wf_interest_mute(struct wf_interest *set, int fd)
{
    struct wf_fd_slot *slot = wf_interest_of(set, fd);
    assert((slot->interest & EPOLLIN) && "it is told again of what it was told before");
    if (!slot->muted && tell_kernel(set, EPOLL_CTL_DEL, fd, 0) == 0)
        slot->muted = true;
}
