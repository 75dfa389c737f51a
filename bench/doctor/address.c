/* Numeric addresses. */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench/machine/memory_limits.h"
#include "parts.h"

int doctor_address(const char *text, int port, struct sockaddr_storage *out, socklen_t *length)
{
    struct addrinfo want = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM}, *found;
    char number[16];

    snprintf(number, sizeof number, "%d", port);
    if (getaddrinfo(text, number, &want, &found) != 0)
        return -EINVAL;
    memset(out, 0, sizeof *out);
    memcpy(out, found->ai_addr, found->ai_addrlen);
    *length = found->ai_addrlen;
    freeaddrinfo(found);
    return 0;
}

/* The kernel binds a socket to its own addresses alone. */
bool doctor_is_own(const struct sockaddr_storage *address, socklen_t length)
{
    struct sockaddr_storage any_port = *address;
    int fd = socket(address->ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    ((struct sockaddr_in *)&any_port)->sin_port = 0; /* at the same place in both families */
    bool own = fd >= 0 && bind(fd, (struct sockaddr *)&any_port, length) == 0;
    if (fd >= 0)
        close(fd);
    return own;
}

void doctor_home(char *text, size_t room)
{
    char boot[64], space[48] = "";

    bench_boot_id(boot, sizeof boot);
    ssize_t length = readlink("/proc/self/ns/net", space, sizeof space - 1);
    space[length > 0 ? length : 0] = '\0';
    text[0] = '\0';
    if (boot[0] && space[0])
        snprintf(text, room, "%s %s", boot, space);
}
