/* Is the port free at which this node listens, or would? If not, whose is it? */
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/words/words.h"
#include "parts.h"

#define LISTENS 0x0A /* a state in /proc/net/tcp */

/* --- who --- */

/* The number of a socket that listens on the port; 0: none is seen. */
static unsigned long listener(const char *path, int port)
{
    char line[512];
    unsigned long inode = 0;
    FILE *file = fopen(path, "re");

    while (file && !inode && fgets(line, sizeof line, file)) {
        unsigned local, state;
        unsigned long number;
        if (sscanf(line, " %*d: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x %*s %*s %*s %*s %*s %lu", &local, &state,
                   &number) == 3 &&
            (int)local == port && state == LISTENS)
            inode = number;
    }
    if (file)
        fclose(file);
    return inode;
}

static bool holds(const char *process, const char *socket_name)
{
    char path[600], target[64];
    struct dirent *entry;
    bool found = false;

    snprintf(path, sizeof path, "/proc/%s/fd", process);
    DIR *folder = opendir(path);
    while (folder && !found && (entry = readdir(folder)) != NULL) {
        snprintf(path, sizeof path, "/proc/%s/fd/%s", process, entry->d_name);
        ssize_t length = readlink(path, target, sizeof target - 1);
        target[length > 0 ? length : 0] = '\0';
        found = strcmp(target, socket_name) == 0;
    }
    if (folder)
        closedir(folder);
    return found;
}

/* "'sshd' (process 123)"; "another program" where it is not seen, as of other users. */
static void name_holder(unsigned long inode, char *text, size_t room)
{
    char name[32], path[600], program[64] = "?";
    struct dirent *entry;
    DIR *folder = inode ? opendir("/proc") : NULL;
    bool found = false;

    snprintf(name, sizeof name, "socket:[%lu]", inode);
    bench_copy_text(text, room, "another program");
    while (folder && !found && (entry = readdir(folder)) != NULL) {
        if (entry->d_name[0] < '0' || entry->d_name[0] > '9' || !holds(entry->d_name, name))
            continue;
        snprintf(path, sizeof path, "/proc/%s/comm", entry->d_name);
        FILE *file = fopen(path, "re");
        if (file && fgets(program, sizeof program, file))
            program[strcspn(program, "\n")] = '\0';
        if (file)
            fclose(file);
        snprintf(text, room, "'%.40s' (process %.20s)", program, entry->d_name);
        found = true;
    }
    if (folder)
        closedir(folder);
}

/* --- the check --- */

/* Tries to listen at every address, of both families where the machine has both. 0 or -errno. */
static int try_port(int port)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int on = 1, off = 0, fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool both = fd >= 0;

    if (!both)
        fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on); /* as the library: connections that end do not count */
    if (both)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    const struct sockaddr *address = both ? (struct sockaddr *)&six : (struct sockaddr *)&four;
    int result = bind(fd, address, both ? sizeof six : sizeof four) == 0 && listen(fd, 1) == 0 ? 0 : -errno;
    close(fd);
    return result;
}

void doctor_check_port(struct doctor *doctor)
{
    char holder[128];
    int result = doctor->port > 0 ? try_port(doctor->port) : 0;

    if (doctor->port == 0)
        return;
    if (result == -EADDRINUSE) {
        unsigned long inode = listener("/proc/net/tcp", doctor->port);
        name_holder(inode ? inode : listener("/proc/net/tcp6", doctor->port), holder, sizeof holder);
        doctor->port_taken = true;
        doctor_fault(doctor, "port", "end that program, or take another port on both nodes (--port N)",
                     "port %d is taken by %s", doctor->port, holder);
    } else if (result) {
        doctor_fault(doctor, "port", "take a port above 1023 (--port N)", "nobody may listen on port %d here: %s",
                     doctor->port, wf_strerror(result));
    } else {
        doctor_good(doctor, "port", "%d is free", doctor->port);
    }
}
