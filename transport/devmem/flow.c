/* The stream of a socket. Who has a socket's descriptor is who may have its stream led somewhere. */
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "lend.h"

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71 /* from 5.14 */
#endif

/* 0: not known. */
static uint64_t network_of(int fd)
{
    uint64_t cookie = 0;
    socklen_t length = sizeof cookie;

    return getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &length) == 0 ? cookie : 0;
}

/* In a network of its own a user has whatever addresses it likes. */
static bool is_of_this_network(int fd)
{
    int here = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    uint64_t network = here >= 0 ? network_of(here) : 0;

    if (here >= 0)
        close(here);
    return network && network == network_of(fd);
}

static bool is_tcp(int fd)
{
    int protocol = 0;
    socklen_t length = sizeof protocol;

    return getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &length) == 0 && protocol == IPPROTO_TCP;
}

/* A socket for both kinds of addresses has those of IPv4 in a coat; the packets have none. */
static void take_coat_off(struct sockaddr_storage *at)
{
    struct sockaddr_in6 six;
    struct sockaddr_in four = {.sin_family = AF_INET};

    memcpy(&six, at, sizeof six);
    if (at->ss_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&six.sin6_addr))
        return;
    four.sin_port = six.sin6_port;
    memcpy(&four.sin_addr, six.sin6_addr.s6_addr + 12, sizeof four.sin_addr);
    memset(at, 0, sizeof *at);
    memcpy(at, &four, sizeof four);
}

int wf_lend_flow(int socket, struct wf_devmem_flow *flow, struct wf_status *status)
{
    struct wf_devmem_flow found = {0};
    socklen_t to = sizeof found.to, from = sizeof found.from;

    if (!is_tcp(socket))
        return wf_fail(status, -EINVAL, "a rule for a flow: the descriptor is no TCP socket");
    if (!is_of_this_network(socket))
        return wf_fail(status, -EINVAL, "a rule for a flow: the socket is of another network namespace");
    if (getsockname(socket, (struct sockaddr *)&found.to, &to) != 0 ||
        getpeername(socket, (struct sockaddr *)&found.from, &from) != 0)
        return wf_fail(status, -errno, "a rule for a flow: the socket is not connected: %s", wf_strerror(errno));
    take_coat_off(&found.to);
    take_coat_off(&found.from);
    if (found.to.ss_family != found.from.ss_family || (found.to.ss_family != AF_INET && found.to.ss_family != AF_INET6))
        return wf_fail(status, -EINVAL, "a rule for a flow: the socket has addresses of an unknown kind");
    *flow = found;
    return 0;
}
