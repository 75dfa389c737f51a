#include "io/device_call.h"

#include <errno.h>
#include <linux/errqueue.h>
#include <string.h>

/* Linux 6.12 and 6.16; older headers do not have them. */
#ifndef MSG_SOCK_DEVMEM
#define MSG_SOCK_DEVMEM 0x2000000
#endif
#ifndef SO_DEVMEM_DONTNEED
#define SO_DEVMEM_DONTNEED 80
#endif
#ifndef SCM_DEVMEM_DMABUF
#define SCM_DEVMEM_DMABUF 79
#endif

ssize_t wf_device_receive(struct wf_op *op, struct msghdr *message)
{
    message->msg_control = op->control->bytes;
    message->msg_controllen = op->control->room;
    ssize_t n = recvmsg(op->fd, message, MSG_SOCK_DEVMEM | MSG_DONTWAIT);
    op->control->length = n > 0 ? message->msg_controllen : 0;
    op->control->flags = message->msg_flags;
    return n < 0 ? -errno : n;
}

ssize_t wf_device_send(struct wf_op *op, struct msghdr *message)
{
    union {
        struct cmsghdr header;
        uint8_t room[CMSG_SPACE(sizeof(uint32_t))];
    } control = {0};
    message->msg_control = control.room;
    message->msg_controllen = sizeof control.room;
    struct cmsghdr *one = CMSG_FIRSTHDR(message);
    *one = (struct cmsghdr){
        .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_DEVMEM_DMABUF, .cmsg_len = CMSG_LEN(sizeof op->binding)};
    memcpy(CMSG_DATA(one), &op->binding, sizeof op->binding);
    if (op->moved == 0 && setsockopt(op->fd, SOL_SOCKET, SO_ZEROCOPY, &(int){1}, sizeof(int)) < 0)
        return -errno;
    ssize_t n = sendmsg(op->fd, message, MSG_ZEROCOPY | MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0)
        return -errno;
    op->lent += 1;
    return n;
}

/* Calls that one message of the error queue tells the end of; 0: it tells of something else. `copied`: the kernel has
 * copied their memory. */
static uint32_t released_by(struct msghdr *message, bool *copied)
{
    for (struct cmsghdr *one = CMSG_FIRSTHDR(message); one; one = CMSG_NXTHDR(message, one)) {
        struct sock_extended_err error;
        if (one->cmsg_len < CMSG_LEN(sizeof error))
            continue;
        memcpy(&error, CMSG_DATA(one), sizeof error);
        *copied = error.ee_code & SO_EE_CODE_ZEROCOPY_COPIED;
        if (error.ee_origin == SO_EE_ORIGIN_ZEROCOPY && error.ee_errno == 0)
            return error.ee_data - error.ee_info + 1;
    }
    return 0;
}

int wf_device_released(struct wf_op *op)
{
    union {
        struct cmsghdr header;
        uint8_t room[256];
    } control;
    while (op->lent > 0) {
        struct msghdr message = {.msg_control = control.room, .msg_controllen = sizeof control.room};
        if (recvmsg(op->fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
            return errno == EAGAIN || errno == EINTR ? 0 : -errno;
        bool copied = false;
        uint32_t count = released_by(&message, &copied);
        count = count < op->lent ? count : op->lent;
        op->lent -= count;
        op->copied += copied ? count : 0;
    }
    return 0;
}

int wf_device_give_back(void *host, int fd, const struct wf_tokens *ranges, int count)
{
    (void)host;
    return setsockopt(fd, SOL_SOCKET, SO_DEVMEM_DONTNEED, ranges, (socklen_t)((size_t)count * sizeof ranges[0])) < 0
               ? -errno
               : 0;
}
