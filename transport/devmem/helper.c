#include "helper.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

int wf_helper_send(int socket, const void *packet, size_t bytes, int descriptor)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof descriptor)];
    } control = {0};
    struct iovec piece = {.iov_base = (void *)(uintptr_t)packet, .iov_len = bytes};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
    ssize_t sent;

    if (descriptor >= 0) {
        message.msg_control = &control;
        message.msg_controllen = sizeof control;
        control.header = (struct cmsghdr){
            .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof descriptor)};
        memcpy(CMSG_DATA(&control.header), &descriptor, sizeof descriptor);
    }
    do
        sent = sendmsg(socket, &message, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent < 0 ? -errno : 0;
}

/* The kernel puts as many descriptors into this process as there is room for. */
static void take_descriptors(struct msghdr *message, int *descriptor)
{
    for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header; header = CMSG_NXTHDR(message, header)) {
        size_t count = header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS
                           ? (header->cmsg_len - CMSG_LEN(0)) / sizeof *descriptor
                           : 0;
        for (size_t i = 0; i < count; i++) {
            int one;
            memcpy(&one, CMSG_DATA(header) + i * sizeof one, sizeof one);
            if (*descriptor < 0)
                *descriptor = one;
            else
                close(one);
        }
    }
}

ssize_t wf_helper_receive(int socket, void *packet, size_t room, int *descriptor)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof *descriptor)];
    } control;
    struct iovec piece = {.iov_base = packet, .iov_len = room};
    struct msghdr message;
    ssize_t bytes;

    *descriptor = -1;
    do {
        message = (struct msghdr){
            .msg_iov = &piece, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
        bytes = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    } while (bytes < 0 && errno == EINTR);
    if (bytes < 0)
        return -errno;
    take_descriptors(&message, descriptor);
    if (!(message.msg_flags & MSG_TRUNC))
        return bytes;
    if (*descriptor >= 0)
        close(*descriptor);
    *descriptor = -1;
    return -EMSGSIZE;
}

uint64_t wf_helper_network(void)
{
    struct stat there;

    return stat("/proc/thread-self/ns/net", &there) == 0 ? (uint64_t)there.st_ino : 0;
}
