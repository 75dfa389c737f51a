/*
 * loop_tool.c: what the shell tests need and the shell cannot do.
 *
 *     loop_tool port                 prints a TCP port that was free a moment ago
 *     loop_tool lo-up                raises the loopback interface of this network namespace
 *     loop_tool rss FILE COMMAND...  runs COMMAND, writes the most KiB that were resident to FILE; its exit status
 */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static int print_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&address, length) < 0 ||
        getsockname(fd, (struct sockaddr *)&address, &length) < 0)
        return 1;
    printf("%d\n", ntohs(address.sin_port));
    close(fd);
    return 0;
}

static int raise_lo(void)
{
    struct ifreq request = {.ifr_name = "lo"};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);

    if (fd < 0 || ioctl(fd, SIOCGIFFLAGS, &request) < 0)
        return 1;
    request.ifr_flags |= IFF_UP;
    int rc = ioctl(fd, SIOCSIFFLAGS, &request);
    close(fd);
    return rc < 0;
}

/* The command's own peak: what it starts itself and waits for counts as well, if it is larger. */
static int run_measured(const char *path, char **argv)
{
    struct rusage usage;
    int status = 0;
    pid_t pid = fork();

    if (pid < 0)
        return 126;
    if (pid == 0) {
        execvp(argv[0], argv);
        fprintf(stderr, "%s: %s\n", argv[0], strerror(errno));
        _exit(127);
    }
    while (wait4(pid, &status, 0, &usage) < 0)
        if (errno != EINTR)
            return 126;
    FILE *file = fopen(path, "w");
    if (!file)
        return 126;
    fprintf(file, "%ld\n", usage.ru_maxrss);
    fclose(file);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "port") == 0)
        return print_port();
    if (argc == 2 && strcmp(argv[1], "lo-up") == 0)
        return raise_lo();
    if (argc >= 4 && strcmp(argv[1], "rss") == 0)
        return run_measured(argv[2], argv + 3);
    fprintf(stderr, "usage: loop_tool port | lo-up | rss FILE COMMAND...\n");
    return 2;
}
