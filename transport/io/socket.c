#include "io/socket.h"

#include <errno.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <net/if.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Options that only make things faster or friendlier: a kernel that refuses one is no reason to fail. */
static void set_flag(int fd, int level, int option, int value)
{
    (void)setsockopt(fd, level, option, &value, sizeof value);
}

socklen_t wf_socket_address_size(const struct sockaddr_storage *address)
{
    switch (address->ss_family) {
    case AF_INET:
        return sizeof(struct sockaddr_in);
    case AF_INET6:
        return sizeof(struct sockaddr_in6);
    default:
        return 0;
    }
}

static bool has_port(const struct sockaddr_storage *address)
{
    /* The port is at the same place in both families. */
    return ((const struct sockaddr_in *)address)->sin_port != 0;
}

static bool is_wildcard6(const struct sockaddr_storage *address)
{
    return address->ss_family == AF_INET6 &&
           IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)address)->sin6_addr);
}

int wf_socket_bind_device(void *host, int fd, const char *device)
{
    (void)host;
    size_t length = strnlen(device, IFNAMSIZ);
    if (length >= IFNAMSIZ)
        return -EINVAL;
    /* Kernels differ in whether "no such device" or "no permission" wins; here the former always does. */
    if (length && !if_nametoindex(device))
        return -ENODEV;
    /* To bind a socket twice takes more rights than to bind it once. */
    char bound[IFNAMSIZ] = "";
    socklen_t size = sizeof bound;
    if (length && !getsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, bound, &size) && strncmp(bound, device, IFNAMSIZ) == 0)
        return 0;
    return setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, device, (socklen_t)length) ? -errno : 0;
}

int wf_socket_mark(void *host, int fd, int dscp)
{
    (void)host;
    int family, value = dscp << 2; /* the two lower bits are TCP's, for congestion (ECN) */
    socklen_t size = sizeof family;
    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &size))
        return -errno;
    /* A socket of IPv6 may carry IPv4: then the mark of IPv4 counts. */
    if (family == AF_INET6 && setsockopt(fd, IPPROTO_IPV6, IPV6_TCLASS, &value, sizeof value))
        return -errno;
    int result = setsockopt(fd, IPPROTO_IP, IP_TOS, &value, sizeof value) ? -errno : 0;
    return family == AF_INET6 ? 0 : result;
}

int wf_socket_pace(void *host, int fd, uint64_t bytes_per_second)
{
    (void)host;
    uint64_t value = bytes_per_second > 0 ? bytes_per_second : UINT64_MAX;
    return setsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &value, sizeof value) ? -errno : 0;
}

/* Everything that must be set before bind, connect or listen. */
static int prepare_socket(int fd, const struct wf_socket_options *options, bool *bound)
{
    set_flag(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    set_flag(fd, SOL_SOCKET, SO_REUSEADDR, 1);
    if (options->shared_port && options->device[0])
        set_flag(fd, SOL_SOCKET, SO_REUSEPORT, 1);
    if (options->buffer_bytes > 0) {
        set_flag(fd, SOL_SOCKET, SO_SNDBUF, options->buffer_bytes);
        set_flag(fd, SOL_SOCKET, SO_RCVBUF, options->buffer_bytes);
    }
    if (options->dscp > 0) /* a kernel that refuses it sends without the mark */
        (void)wf_socket_mark(NULL, fd, options->dscp);
    if (options->congestion[0]) /* connections that are accepted inherit it */
        (void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, options->congestion,
                         (socklen_t)strnlen(options->congestion, sizeof options->congestion));
    *bound = false;
    if (!options->device[0])
        return 0;
    int result = wf_socket_bind_device(NULL, fd, options->device);
    *bound = result == 0;
    return result == -EPERM ? 0 : result;
}

static int new_tcp_socket(int family)
{
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
    return fd < 0 ? -errno : fd;
}

/* The words of a file in /proc; "" where it cannot be read. */
static void read_words(const char *path, char *text, size_t room)
{
    FILE *file = fopen(path, "re");
    if (!file || !fgets(text, (int)room, file))
        text[0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    if (file)
        fclose(file);
}

int wf_socket_congestion(const char *name, struct wf_status *status)
{
    char known[256];
    int fd = new_tcp_socket(AF_INET);
    if (fd == -EAFNOSUPPORT)
        fd = new_tcp_socket(AF_INET6);
    if (fd < 0)
        return wf_fail(status, fd, "socket: %s", wf_strerror(fd));
    int result = setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, (socklen_t)strlen(name)) ? -errno : 0;
    close(fd);
    if (result == -EPERM) {
        read_words("/proc/sys/net/ipv4/tcp_allowed_congestion_control", known, sizeof known);
        return wf_fail(status, result,
                       "only root may use %s, others: %s (sysctl net.ipv4.tcp_allowed_congestion_control)", name,
                       known);
    }
    if (result) {
        read_words("/proc/sys/net/ipv4/tcp_available_congestion_control", known, sizeof known);
        return wf_fail(status, result, "the kernel has no %s, it has: %s", name, known);
    }
    return 0;
}

static int bind_local(int fd, const struct sockaddr_storage *local)
{
    socklen_t size = wf_socket_address_size(local);
    if (!size)
        return -EAFNOSUPPORT;
    return bind(fd, (const struct sockaddr *)local, size) ? -errno : 0;
}

int wf_socket_open(void *host, int family, const struct wf_socket_options *options, bool *bound_device)
{
    (void)host;
    int fd = new_tcp_socket(family);
    if (fd < 0)
        return fd;
    bool bound;
    int result = prepare_socket(fd, options, &bound);
    if (!result && options->local.ss_family) {
        /* The port is chosen at connect, where only the whole 4-tuple must be unique: no shortage of local ports. */
        if (!has_port(&options->local) && !options->own_port)
            set_flag(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
        result = bind_local(fd, &options->local);
    }
    if (result) {
        close(fd);
        return result;
    }
    if (bound_device)
        *bound_device = bound;
    return fd;
}

static int listen_on(const struct wf_socket_options *options, const struct sockaddr_storage *local, int backlog)
{
    int fd = new_tcp_socket(local->ss_family);
    if (fd < 0)
        return fd;
    bool bound;
    int result = prepare_socket(fd, options, &bound);
    if (is_wildcard6(local))
        set_flag(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
    if (!result)
        result = bind_local(fd, local);
    if (!result && listen(fd, backlog))
        result = -errno;
    if (!result && options->shared_port) /* not before: another listener with SO_REUSEPORT could have the port */
        set_flag(fd, SOL_SOCKET, SO_REUSEPORT, 1);
    if (result) {
        close(fd);
        return result;
    }
    return fd;
}

int wf_socket_listen(void *host, const struct wf_socket_options *options, int backlog)
{
    (void)host;
    if (options->local.ss_family)
        return listen_on(options, &options->local, backlog);
    /* The port stands at the same place in every family. */
    struct sockaddr_storage any = options->local;
    any.ss_family = AF_INET6; /* takes IPv4 too */
    int fd = listen_on(options, &any, backlog);
    if (fd != -EAFNOSUPPORT && fd != -EADDRNOTAVAIL)
        return fd;
    any.ss_family = AF_INET; /* a host without IPv6 */
    return listen_on(options, &any, backlog);
}

int wf_socket_address(void *host, int fd, bool remote, struct sockaddr_storage *out)
{
    (void)host;
    struct sockaddr_storage address = {0};
    socklen_t size = sizeof address;
    int result = remote ? getpeername(fd, (struct sockaddr *)&address, &size)
                        : getsockname(fd, (struct sockaddr *)&address, &size);
    if (result)
        return -errno;
    *out = address;
    return 0;
}

void wf_socket_shutdown(void *host, int fd)
{
    (void)host;
    (void)shutdown(fd, SHUT_WR);
}

void wf_socket_kill(void *host, int fd)
{
    (void)host;
    struct sockaddr none = {.sa_family = AF_UNSPEC};
    /* Not connect(): the thread sanitizer takes that for the descriptor's birth, and other threads may be using it. */
    if (!syscall(SYS_connect, fd, &none, sizeof none))
        return;
    /* Where the kernel refuses, the close to come drops the connection instead of draining it. */
    struct linger drop = {.l_onoff = 1, .l_linger = 0};
    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &drop, sizeof drop);
}

uint64_t wf_socket_retransmits(void *host, int fd)
{
    (void)host;
    struct tcp_info info = {0};
    socklen_t size = sizeof info;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) ||
        size < offsetof(struct tcp_info, tcpi_total_retrans) + sizeof info.tcpi_total_retrans)
        return 0;
    return info.tcpi_total_retrans;
}

int wf_socket_progress(void *host, int fd, struct wf_progress *out)
{
    (void)host;
    struct tcp_info info = {0};
    socklen_t size = sizeof info;
    int unsent, pending;
    /* In this order: what leaves in between is unsent still, and what is acknowledged is pending and acknowledged, and
     * not neither. */
    if (ioctl(fd, SIOCOUTQNSD, &unsent) || ioctl(fd, SIOCOUTQ, &pending) ||
        getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size))
        return -errno;
    if (size < offsetof(struct tcp_info, tcpi_bytes_acked) + sizeof info.tcpi_bytes_acked)
        return -EOPNOTSUPP;
    *out = (struct wf_progress){.acknowledged = info.tcpi_bytes_acked,
                                .pending = (uint64_t)pending,
                                .unsent = (uint64_t)(unsent < pending ? unsent : pending)};
    return 0;
}

void wf_socket_close(void *host, int fd)
{
    (void)host;
    close(fd);
}

int wf_socket_accept(int fd)
{
    int accepted = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (accepted < 0)
        return -errno;
    set_flag(accepted, IPPROTO_TCP, TCP_NODELAY, 1);
    return accepted;
}

int wf_socket_connect(int fd, const struct sockaddr_storage *address)
{
    socklen_t size = wf_socket_address_size(address);
    if (!size)
        return -EAFNOSUPPORT;
    if (!connect(fd, (const struct sockaddr *)address, size))
        return 0;
    return errno == EINTR ? -EINPROGRESS : -errno;
}

int wf_socket_connected(int fd)
{
    int error = 0;
    socklen_t size = sizeof error;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size))
        return -errno;
    if (error)
        return -error;
    /* The error may have been taken by another reader, or the connection killed: then there is no peer. */
    struct sockaddr_storage peer;
    size = sizeof peer;
    if (getpeername(fd, (struct sockaddr *)&peer, &size))
        return errno == ENOTCONN ? -ECONNABORTED : -errno;
    return 0;
}
