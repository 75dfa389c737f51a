#include "listening.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define LISTENING 0x0A /* TCP_LISTEN in the fourth column of /proc/net/tcp */

static bool listed(const char *path, int port)
{
    FILE *file = fopen(path, "re");
    char line[512];
    bool found = false;

    while (file && !found && fgets(line, sizeof(line), file)) {
        unsigned local = 0, state = 0;
        found = sscanf(line, " %*d: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x", &local, &state) == 2 &&
                state == LISTENING && local == (unsigned)port;
    }
    if (file)
        fclose(file);
    return found;
}

bool peer_listening(int port)
{
    return listed("/proc/self/net/tcp", port) || listed("/proc/self/net/tcp6", port);
}

int peer_free_port(struct wf_status *status)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), rc;

    if (fd < 0 || bind(fd, (struct sockaddr *)&address, length) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &length) != 0)
        rc = wf_fail(status, -errno, "cannot find a free port: %s", wf_strerror(errno));
    else
        rc = ntohs(address.sin_port);
    if (fd >= 0)
        close(fd);
    return rc;
}
