#include "listening.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "keeper.h"

#define LISTENING 0x0A /* TCP_LISTEN in the fourth column of /proc/net/tcp */

#define SOCKETS_MAX 16 /* that listen on one port, each on an address of its own */
#define DEPTH_MAX 64   /* of a family tree */

/* --- which sockets --- */

/* Adds the inodes of the listening sockets in `path` to `inodes`; how many there are now. */
static int add_listed(const char *path, int port, unsigned long *inodes, int count)
{
    FILE *file = fopen(path, "re");
    char line[512];

    while (file && count < SOCKETS_MAX && fgets(line, sizeof line, file)) {
        unsigned local = 0, state = 0;
        unsigned long inode = 0;
        int found = sscanf(line, " %*d: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x %*x:%*x %*x:%*x %*x %*u %*u %lu", &local,
                           &state, &inode);
        if (found >= 2 && state == LISTENING && local == (unsigned)port)
            inodes[count++] = inode;
    }
    if (file)
        fclose(file);
    return count;
}

static int sockets_on(int port, unsigned long *inodes)
{
    int count = add_listed("/proc/self/net/tcp", port, inodes, 0);

    return add_listed("/proc/self/net/tcp6", port, inodes, count);
}

bool peer_listening(int port)
{
    unsigned long inodes[SOCKETS_MAX];

    return sockets_on(port, inodes) > 0;
}

/* --- whose they are --- */

static bool is_below(const char *pid, pid_t ancestor)
{
    pid_t at = (pid_t)atoi(pid);

    for (int depth = 0; at > 0 && at != ancestor && depth < DEPTH_MAX; depth++)
        at = peer_parent_of(at);
    return at == ancestor;
}

static bool is_among(const char *link, const unsigned long *inodes, int count)
{
    unsigned long inode;

    if (sscanf(link, "socket:[%lu]", &inode) != 1)
        return false;
    for (int i = 0; i < count; i++)
        if (inodes[i] == inode)
            return true;
    return false;
}

/* Also true where the process does not let us look. */
static bool may_have(const char *pid, const unsigned long *inodes, int count)
{
    char path[300], link[64];
    const struct dirent *entry;
    bool found = false;
    DIR *folder;

    snprintf(path, sizeof path, "/proc/%s/fd", pid);
    folder = opendir(path);
    if (!folder)
        return errno != ENOENT && errno != ESRCH;
    while (!found && (entry = readdir(folder))) {
        ssize_t length = readlinkat(dirfd(folder), entry->d_name, link, sizeof link - 1);
        link[length > 0 ? length : 0] = '\0';
        found = is_among(link, inodes, count);
    }
    closedir(folder);
    return found;
}

/* Whether the numbers in /proc are those that this process knows: it may be that of another pid namespace. */
static bool is_our_proc(void)
{
    char text[32] = "";

    return readlink("/proc/self", text, sizeof text - 1) > 0 && atol(text) == (long)getpid();
}

bool peer_listening_below(pid_t ancestor, int port)
{
    unsigned long inodes[SOCKETS_MAX];
    int count = sockets_on(port, inodes);
    DIR *folder = count && is_our_proc() ? opendir("/proc") : NULL;
    const struct dirent *entry;
    bool found = count && !folder;

    while (folder && !found && (entry = readdir(folder)))
        found = isdigit((unsigned char)entry->d_name[0]) && is_below(entry->d_name, ancestor) &&
                may_have(entry->d_name, inodes, count);
    if (folder)
        closedir(folder);
    return found;
}

/* --- a free one --- */

int peer_free_port(struct wf_status *status)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), result;

    if (fd < 0 || bind(fd, (struct sockaddr *)&address, length) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &length) != 0)
        result = wf_fail(status, -errno, "cannot find a free port: %s", wf_strerror(errno));
    else
        result = ntohs(address.sin_port);
    if (fd >= 0)
        close(fd);
    return result;
}
