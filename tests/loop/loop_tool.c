/*
 * loop_tool.c: what the shell tests need and the shell cannot do.
 *
 *     loop_tool hold ADDRESS PORT      has that TCP port (0: any) until it is killed and never listens; prints the port
 *     loop_tool answer FILE            prints the TCP port that it listens on, and sends FILE to the first who says
 * something loop_tool lo-up                  raises the loopback interface of this network namespace loop_tool rss FILE
 * COMMAND...    runs COMMAND, writes the most KiB that were resident to FILE; its exit status loop_tool small-pages
 * COMMAND... becomes COMMAND, which gets no huge pages loop_tool deny ERRNO COMMAND...  becomes COMMAND, in which
 * io_uring_setup fails with that error number; 77 where no filter can be set loop_tool deny-news ERRNO COMMAND...  the
 * same, but netlink sockets cannot ask to be told of changes
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* A socket of a port of this address, which is printed once it may be called; with 0 the kernel chooses the port. */
static int bound_socket(const char *host, int port, bool listens)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    socklen_t length = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    if (fd < 0 || inet_pton(AF_INET, host, &address.sin_addr) != 1 ||
        bind(fd, (struct sockaddr *)&address, length) < 0 || (listens && listen(fd, 8) < 0) ||
        getsockname(fd, (struct sockaddr *)&address, &length) < 0)
        return -1;
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    return fd;
}

static int hold(const char *host, int port)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || bound_socket(host, port, false) < 0) {
        fprintf(stderr, "loop_tool: %s:%d: %s\n", host, port, strerror(errno));
        return 1;
    }
    for (;;)
        pause();
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

static int answer(const char *path)
{
    int listener = bound_socket("127.0.0.1", 0, true), caller;
    char bytes[4096];
    FILE *file = fopen(path, "r");
    size_t length = file ? fread(bytes, 1, sizeof(bytes), file) : 0;

    caller = accept(listener, NULL, NULL);
    while (caller >= 0 && length == 0 && recv(caller, (char[4096]){0}, 4096, 0) > 0)
        continue; /* an empty file: it says nothing until the caller has gone */
    if (length == 0)
        return 0;
    if (caller < 0 || recv(caller, (char[4096]){0}, 4096, 0) <= 0 ||
        send(caller, bytes, length, MSG_NOSIGNAL) != (ssize_t)length)
        return 1;
    fclose(file);
    return 0;
}

static int run_with_small_pages(char **argv)
{
    if (prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) < 0) {
        fprintf(stderr, "prctl: %s\n", strerror(errno));
        return 77;
    }
    execvp(argv[0], argv);
    fprintf(stderr, "%s: %s\n", argv[0], strerror(errno));
    return 127;
}

/* A system call, or only those of them that have this second argument. */
struct forbidden {
    unsigned call, mask, second;
};

/* As the filters of container engines do. */
static int run_denied(struct forbidden what, int error, char **argv)
{
    const size_t second = offsetof(struct seccomp_data, args[1]) + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 4 : 0);
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, what.call, 0, 4),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)second),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, what.mask),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, what.second, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ((unsigned)error & SECCOMP_RET_DATA)),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof(filter) / sizeof(filter[0]), .filter = filter};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0) {
        fprintf(stderr, "seccomp: %s\n", strerror(errno));
        return 77;
    }
    execvp(argv[0], argv);
    fprintf(stderr, "%s: %s\n", argv[0], strerror(errno));
    return 127;
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "hold") == 0)
        return hold(argv[2], atoi(argv[3]));
    if (argc == 3 && strcmp(argv[1], "answer") == 0)
        return answer(argv[2]);
    if (argc == 2 && strcmp(argv[1], "lo-up") == 0)
        return raise_lo();
    if (argc >= 4 && strcmp(argv[1], "rss") == 0)
        return run_measured(argv[2], argv + 3);
    if (argc >= 3 && strcmp(argv[1], "small-pages") == 0)
        return run_with_small_pages(argv + 2);
    if (argc >= 4 && strcmp(argv[1], "deny") == 0)
        return run_denied((struct forbidden){.call = SYS_io_uring_setup}, atoi(argv[2]), argv + 3);
    if (argc >= 4 && strcmp(argv[1], "deny-news") == 0)
        return run_denied((struct forbidden){.call = SYS_setsockopt, .mask = ~0u, .second = SOL_NETLINK}, atoi(argv[2]),
                          argv + 3);
    fprintf(
        stderr,
        "usage: loop_tool hold ADDRESS PORT | answer FILE | lo-up | rss FILE COMMAND... | small-pages COMMAND... |\n"
        "       deny ERRNO COMMAND... | deny-news ERRNO COMMAND...\n");
    return 2;
}
