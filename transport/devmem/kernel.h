/*
 * kernel.h: the seam between this room and the kernel: netlink messages go out and come in, and network interfaces are
 * asked by ioctl. The tests play the kernel behind it.
 */
#ifndef WF_DEVMEM_KERNEL_H
#define WF_DEVMEM_KERNEL_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Called by the thread that has the handle. All return a negative errno on failure. No call may block for long. */
struct wf_devmem_kernel {
    /* A generic netlink socket that tells errors in words (extended acks). Returns its descriptor, owned by the caller
     * until it is given to close(). */
    int (*open)(const struct wf_devmem_kernel *kernel);
    /* Ends the bindings that were made through it, too. */
    void (*close)(const struct wf_devmem_kernel *kernel, int fd);
    /* One message, whole. */
    int (*send)(const struct wf_devmem_kernel *kernel, int fd, const void *message, size_t bytes);
    /* What has come, up to `room` bytes, one or several messages. Returns how many bytes; -EAGAIN: nothing within
     * seconds. */
    ssize_t (*receive)(const struct wf_devmem_kernel *kernel, int fd, void *messages, size_t room);
    /* ioctl() on a socket; `about` has the name of the interface, and what it points to belongs to the caller. */
    int (*ask)(const struct wf_devmem_kernel *kernel, unsigned long request, struct ifreq *about);
    /* Whether this process has CAP_NET_ADMIN in the user namespace that owns its network namespace. */
    bool (*may_change)(const struct wf_devmem_kernel *kernel);
};

/* The kernel of this machine, in the network namespace of the calling thread. */
const struct wf_devmem_kernel *wf_devmem_system(void);

#endif
