#include "clock_guard.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

/* --- in the guardian --- */

/* What a terminal, a shell or a service manager sends to all processes of a run. */
static void ignore_signals(void)
{
    static const int signals[] = {SIGINT,  SIGQUIT, SIGHUP,  SIGTERM, SIGPIPE, SIGTSTP,
                                  SIGTTIN, SIGTTOU, SIGUSR1, SIGUSR2, SIGALRM};

    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        signal(signals[i], SIG_IGN);
}

/* The reader's own descriptor is among those that are listed, and is closed with it. */
static void close_others(int kept)
{
    DIR *all = opendir("/proc/self/fd");
    const struct dirent *entry;

    while (all && (entry = readdir(all)) != NULL) {
        int fd = atoi(entry->d_name);
        if (fd > STDERR_FILENO && fd != kept && fd != dirfd(all))
            close(fd);
    }
    if (all)
        closedir(all);
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; nothing >= 0 && fd <= STDERR_FILENO; fd++)
        dup2(nothing, fd);
    if (nothing > STDERR_FILENO)
        close(nothing);
}

/* Returns when the run lets go of its end, or is no more. */
static void await_end(int line, pid_t run)
{
    struct pollfd ends[2] = {{.fd = line, .events = POLLIN}, {.events = POLLIN}};

    ends[1].fd = bench_process_open(run);
    while (getppid() == run && poll(ends, 2, -1) < 0 && errno == EINTR)
        ;
}

static _Noreturn void guard(int line, const char *path, pid_t run)
{
    struct wf_status answer = {0};
    char name[BENCH_CLOCK_NAME];

    setsid();
    prctl(PR_SET_NAME, "weft-clocks");
    ignore_signals();
    close_others(line);
    if (send(line, "", 1, MSG_NOSIGNAL) == 1)
        await_end(line, run);
    int folder = bench_clock_hold(path, &answer);
    if (folder >= 0)
        answer.code = bench_clock_record_undo(folder, bench_clock_record_name(run, name), NULL, &answer);
    else if (folder == -ENOENT)
        wf_fail(&answer, folder, "%s, the folder of their record, has gone", path);
    if (folder >= 0)
        close(folder);
    send(line, &answer, sizeof answer, MSG_NOSIGNAL);
    _exit(0);
}

/* --- in the run --- */

/* One message of this size. Signals that come meanwhile do not shorten the wait. -ECHILD: nobody is there to say it. */
static int hear(int line, int timeout_ms, void *message, size_t bytes)
{
    int64_t end_ns = wf_deadline_after_ms(wf_clock_now(&wf_clock_monotonic), timeout_ms);
    struct pollfd ready = {.fd = line, .events = POLLIN};

    for (;;) {
        int64_t left_ms = (end_ns - wf_clock_now(&wf_clock_monotonic)) / WF_NS_PER_MS;
        int count = poll(&ready, 1, left_ms > 0 ? (int)left_ms : 0);
        if (count > 0)
            break;
        if (count == 0)
            return -ETIMEDOUT;
        if (errno != EINTR)
            return -errno;
    }
    return recv(line, message, bytes, 0) == (ssize_t)bytes ? 0 : -ECHILD;
}

/* Until it is ready, a signal of the terminal could end it. */
static int await_ready(const struct bench_clock_lock *lock, struct bench_process *guardian, struct wf_status *status)
{
    char ready;
    int result = hear(lock->guard, BENCH_GUARDIAN_MS, &ready, sizeof ready);

    if (result == 0)
        result = bench_process_find(lock->guardian, guardian);
    return result ? wf_fail(status, result, "the guardian of locked clocks has not started: %s", wf_strerror(result))
                  : 0;
}

int bench_clock_guard_start(struct bench_clock_lock *lock, struct bench_process *guardian, struct wf_status *status)
{
    pid_t run = getpid();
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return wf_fail(status, -errno, "no socket to the guardian of locked clocks: %s", wf_strerror(errno));
    pid_t child = fork();
    if (child == 0)
        guard(ends[1], lock->folder, run);
    int error = errno;
    close(ends[1]);
    if (child < 0) {
        close(ends[0]);
        return wf_fail(status, -error, "cannot start a guardian of locked clocks: %s", wf_strerror(error));
    }
    lock->guard = ends[0];
    lock->guardian = child;
    return await_ready(lock, guardian, status);
}

int bench_clock_guard_end(struct bench_clock_lock *lock, struct wf_status *status)
{
    struct wf_status answer;

    /* Also seen where a child of this process has inherited the socket. */
    shutdown(lock->guard, SHUT_WR);
    int result = hear(lock->guard, BENCH_GUARDIAN_MS, &answer, sizeof answer);
    close(lock->guard);
    lock->guard = -1;
    if (result == -ETIMEDOUT)
        return wf_fail(status, result, "their guardian, process %d, has not unlocked them in %d s", (int)lock->guardian,
                       BENCH_GUARDIAN_MS / 1000);
    while (waitpid(lock->guardian, NULL, 0) < 0 && errno == EINTR)
        ;
    if (result)
        return result;
    return answer.code ? wf_fail(status, answer.code, "%s", answer.text) : 0;
}
