/* Addresses of a raw run, and the sockets behind them. */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/brackets.h"
#include "bench/words/words.h"
#include "parts.h"

#define USUAL_PORT "18555"
#define OTHER_DESCRIPTORS 24 /* beside the streams: the listener, an epoll, what the process was started with */

/* An IPv6 address, maybe with the interface of a link-local one. */
static bool is_six(const char *host)
{
    char address[256];
    struct in6_addr ignored;

    bench_copy_text(address, sizeof address, host);
    address[strcspn(address, "%")] = '\0';
    return !strchr(host + strcspn(host, "%"), ':') && inet_pton(AF_INET6, address, &ignored) == 1;
}

/* It is on any link as long as no interface is named. */
static bool lacks_interface(const char *host)
{
    struct in6_addr address;

    return inet_pton(AF_INET6, host, &address) == 1 && IN6_IS_ADDR_LINKLOCAL(&address);
}

static int bad_six(const char *host, struct wf_status *status)
{
    char meant[128];

    if (wf_brackets_meant(host, meant, sizeof meant))
        return wf_fail(status, -EINVAL, "'%.100s' is no address: an IPv6 address with a port is written %s", host,
                       meant);
    return wf_fail(status, -EINVAL, "'%.100s' is no IPv6 address, which with a port is written [ADDR]:PORT", host);
}

/* "ADDR:PORT", "[ADDR]:PORT", "PORT" or "" where there may be no address, "ADDR" where there must be one. */
static int split_address(const char *text, bool need_host, char host[256], char port[16], struct wf_status *status)
{
    const char *colon = strrchr(text, ':');
    char *rest;

    bench_copy_text(host, 256, "");
    bench_copy_text(port, 16, USUAL_PORT);
    if (text[0] == '[') {
        const char *end = strchr(text, ']');
        if (!end || (end[1] && end[1] != ':'))
            return wf_fail(status, -EINVAL, "'%.100s' is no address: expected [ADDR]:PORT", text);
        snprintf(host, 256, "%.*s", (int)(end - text - 1), text + 1);
        colon = end[1] ? end + 1 : NULL;
    } else if (colon && strchr(text, ':') == colon) {
        snprintf(host, 256, "%.*s", (int)(colon - text), text);
    } else if (colon || need_host) {
        bench_copy_text(host, 256, text);
        if (colon && !is_six(host))
            return bad_six(host, status);
        colon = NULL;
    } else {
        colon = text[0] ? text - 1 : NULL;
    }
    if (colon)
        snprintf(port, 16, "%s", colon + 1);
    unsigned long number = strtoul(port, &rest, 10);
    if (port[0] < '0' || port[0] > '9' || *rest || number > 65535)
        return wf_fail(status, -EINVAL, "'%.100s' has no port from 0 to 65535: expected ADDR:PORT", text);
    if (need_host && host[0] && number == 0)
        return wf_fail(status, -EINVAL, "'%.100s' leads to port 0, where nobody waits: write ADDR:PORT", text);
    if (need_host && !host[0])
        return wf_fail(status, -EINVAL, "'%.100s' names no server: expected ADDR:PORT", text);
    if (lacks_interface(host))
        return wf_fail(status, -EINVAL,
                       "'%.100s' is link-local: name the interface of this machine too, as in [%.60s%%eth0]:PORT", text,
                       host);
    return 0;
}

static int resolve(const char *text, const char *any, struct addrinfo **found, struct wf_status *status)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    char host[256], port[16];
    int result = split_address(text, !any, host, port, status);

    if (result)
        return result;
    result = getaddrinfo(host[0] ? host : any, port, &hints, found);
    return result ? wf_fail(status, -EINVAL, "cannot resolve '%.100s': %s", text, gai_strerror(result)) : 0;
}

int raw_address_check(const char *text, bool listen, struct wf_status *status)
{
    char host[256], port[16];

    return split_address(text, !listen, host, port, status);
}

int raw_prepare(int fd, uint64_t timeout_s, struct wf_status *status)
{
    struct timeval limit = {.tv_sec = (time_t)timeout_s};
    int one = 1;

    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) != 0 ||
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) != 0 ||
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) != 0)
        return wf_fail(status, -errno, "cannot set up a socket: %s", wf_strerror(errno));
    return 0;
}

int raw_allow_descriptors(int streams, struct wf_status *status)
{
    struct rlimit limit;
    rlim_t needed = (rlim_t)streams + OTHER_DESCRIPTORS;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || needed <= limit.rlim_cur)
        return 0;
    if (needed > limit.rlim_max)
        return wf_fail(status, -EMFILE,
                       "%d streams need %llu file descriptors, and at most %llu are allowed here: raise that limit "
                       "(ulimit -Hn), or lower --streams",
                       streams, (unsigned long long)needed, (unsigned long long)limit.rlim_max);
    limit.rlim_cur = needed;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        return wf_fail(status, -errno, "cannot raise the limit of file descriptors to %llu: %s",
                       (unsigned long long)needed, wf_strerror(errno));
    return 0;
}

int raw_congestion_check(const char *name, struct wf_status *status)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool known = fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, (socklen_t)strlen(name)) == 0 ||
                 (errno != ENOENT && errno != EINVAL);

    if (fd >= 0)
        close(fd);
    return known ? 0
                 : wf_fail(status, -EINVAL,
                           "--congestion %.60s: the kernel has none of that name: see "
                           "/proc/sys/net/ipv4/tcp_available_congestion_control",
                           name);
}

/* "::1:8555" is an address, and may not have been meant as one. */
static const char *suspect(const char *address, char text[160])
{
    char meant[128];

    text[0] = '\0';
    if (wf_brackets_meant(address, meant, sizeof meant))
        snprintf(text, 160, " (is %s meant?)", meant);
    return text;
}

/* Before it listens or connects: accepted streams inherit it, and what paces cannot be rid of later. */
static int choose_congestion(int fd, const char *name, struct wf_status *status)
{
    if (!name[0] || setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, (socklen_t)strlen(name)) == 0)
        return 0;
    return wf_fail(status, -errno,
                   "--congestion %s: %s: see /proc/sys/net/ipv4/tcp_allowed_congestion_control for what there is", name,
                   wf_strerror(errno));
}

/* Whoever starts the client waits for this line. */
static void tell_port(int fd)
{
    struct sockaddr_storage bound;
    socklen_t length = sizeof bound;
    char port[16];

    if (getsockname(fd, (struct sockaddr *)&bound, &length) == 0 &&
        getnameinfo((struct sockaddr *)&bound, length, NULL, 0, port, sizeof port, NI_NUMERICSERV) == 0)
        fprintf(stderr, "weft: listening on port %s\n", port);
}

static int listen_on(const struct addrinfo *at)
{
    int fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1, zero = 0;

    if (fd < 0)
        return -errno;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (at->ai_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof zero);
    if (bind(fd, at->ai_addr, at->ai_addrlen) == 0 && listen(fd, RAW_STREAMS_MAX) == 0)
        return fd;
    int code = -errno;
    close(fd);
    return code;
}

int raw_listen(const char *address, const char *congestion, int *listener, struct wf_status *status)
{
    static const char *const any[] = {"::", "0.0.0.0"}; /* the second where there is no IPv6 */
    int fd = -EAFNOSUPPORT;
    char hint[160];

    for (int i = 0; i < 2 && (fd == -EAFNOSUPPORT || fd == -EADDRNOTAVAIL); i++) {
        struct addrinfo *found;
        int result = resolve(address, any[i], &found, status);
        if (result)
            return result;
        fd = listen_on(found);
        freeaddrinfo(found);
    }
    if (fd < 0)
        return wf_fail(status, fd, "cannot listen on '%.100s': %s%s", address[0] ? address : USUAL_PORT,
                       fd == -EADDRNOTAVAIL ? "no interface of this machine has that address" : wf_strerror(fd),
                       suspect(address, hint));
    if (choose_congestion(fd, congestion, status) != 0) {
        close(fd);
        return status->code;
    }
    tell_port(fd);
    *listener = fd;
    return 0;
}

int raw_dial(const char *address, const char *congestion, uint64_t timeout_s, int *stream, struct wf_status *status)
{
    struct addrinfo *found;
    char hint[160];
    int result = resolve(address, NULL, &found, status);

    if (result)
        return result;
    int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    result = fd < 0 ? wf_fail(status, -errno, "cannot open a socket: %s", wf_strerror(errno))
                    : raw_prepare(fd, timeout_s, status);
    result = result ? result : choose_congestion(fd, congestion, status);
    if (result == 0 && connect(fd, found->ai_addr, found->ai_addrlen) != 0) {
        /* A connect() that SO_SNDTIMEO cuts short says EINPROGRESS. */
        int code = errno == EINPROGRESS ? ETIMEDOUT : errno;
        result = wf_fail(status, -code, "cannot connect to %.100s: %s: start 'weft raw --listen' there first%s",
                         address, wf_strerror(code), suspect(address, hint));
    }
    freeaddrinfo(found);
    if (result && fd >= 0)
        close(fd);
    else if (result == 0)
        *stream = fd;
    return result;
}
