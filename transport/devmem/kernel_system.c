#include "kernel.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "talk.h"

#define PATIENCE_S 5

static int open_socket(const struct wf_devmem_kernel *kernel)
{
    struct sockaddr_nl any = {.nl_family = AF_NETLINK};
    struct timeval patience = {.tv_sec = PATIENCE_S};
    int on = 1;

    (void)kernel;
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);
    if (fd < 0)
        return -errno;
    if (bind(fd, (struct sockaddr *)&any, sizeof any) != 0 ||
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) != 0) {
        int error = errno;
        close(fd);
        return -error;
    }
    /* Older kernels have no words for errors; they answer without. */
    setsockopt(fd, SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof on);
    setsockopt(fd, SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof on);
    return fd;
}

static void close_socket(const struct wf_devmem_kernel *kernel, int fd)
{
    (void)kernel;
    close(fd);
}

static int send_message(const struct wf_devmem_kernel *kernel, int fd, const void *message, size_t bytes)
{
    struct sockaddr_nl to = {.nl_family = AF_NETLINK};

    (void)kernel;
    return sendto(fd, message, bytes, 0, (struct sockaddr *)&to, sizeof to) < 0 ? -errno : 0;
}

/* Only the kernel has the port 0: what another process sends here is no answer. */
static ssize_t receive_messages(const struct wf_devmem_kernel *kernel, int fd, void *messages, size_t room)
{
    struct sockaddr_nl from;
    ssize_t bytes;

    (void)kernel;
    do {
        socklen_t length = sizeof from;
        bytes = recvfrom(fd, messages, room, 0, (struct sockaddr *)&from, &length);
    } while ((bytes < 0 && errno == EINTR) || (bytes >= 0 && from.nl_pid != 0));
    return bytes < 0 ? -errno : bytes;
}

static int ask(const struct wf_devmem_kernel *kernel, unsigned long request, struct ifreq *about)
{
    (void)kernel;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);
    if (fd < 0)
        return -errno;
    int result = ioctl(fd, request, about) < 0 ? -errno : 0;
    close(fd);
    return result;
}

const struct wf_devmem_kernel *wf_devmem_system(void)
{
    static const struct wf_devmem_kernel kernel = {
        .open = open_socket, .close = close_socket, .send = send_message, .receive = receive_messages, .ask = ask};
    return &kernel;
}
