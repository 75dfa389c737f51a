#include "kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "talk.h"

#define PATIENCE_S 5
#define CAP_NET_ADMIN 12
#define NS_GET_USERNS _IO(0xb7, 1) /* linux/nsfs.h */

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

/* What this process may in its own user namespace. */
static bool has_capability(void)
{
    FILE *file = fopen("/proc/thread-self/status", "re");
    unsigned long long effective = 0;
    char line[256];

    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "CapEff: %llx", &effective) == 1)
            break;
    if (file)
        fclose(file);
    return effective >> CAP_NET_ADMIN & 1;
}

/* The kernel shows the owner of a namespace only to processes that are in it, or above it: those whose capabilities
 * count there. */
static bool may_change(const struct wf_devmem_kernel *kernel)
{
    int network = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    int owner = network >= 0 ? ioctl(network, NS_GET_USERNS) : -1;

    (void)kernel;
    if (owner >= 0)
        close(owner);
    if (network >= 0)
        close(network);
    return owner >= 0 && has_capability();
}

const struct wf_devmem_kernel *wf_devmem_system(void)
{
    static const struct wf_devmem_kernel kernel = {.open = open_socket,
                                                   .close = close_socket,
                                                   .send = send_message,
                                                   .receive = receive_messages,
                                                   .ask = ask,
                                                   .may_change = may_change};
    return &kernel;
}
