#include "keeper.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/config.h"

#define KIND_MS 500 /* from the request to end to the end by force */
#define LOOK_MS 10  /* between two looks for children that were adopted meanwhile */
#define ENVIRONMENT_MAX 4096

struct keeper {
    pid_t program; /* also its process group */
    int signals;   /* descriptor */
    bool ended;    /* the program; its children may live */
    bool asked;    /* to end it */
    int64_t force_ns;
    struct peer_report report;
};

/* --- the program --- */

/* Our own settings are not the programs': what they need stands in their command. */
static char **environment_of(const struct peer_command *command)
{
    static char *entries[ENVIRONMENT_MAX];
    size_t kept = 0;

    for (size_t i = 0; environ[i] && kept < ENVIRONMENT_MAX - PEER_WORDS_MAX; i++) {
        bool replaced = wf_environment_is_setting(environ[i]);
        for (int s = 0; command->settings[s] && !replaced; s++) {
            const char *equals = strchr(command->settings[s], '=');
            replaced =
                equals && strncmp(environ[i], command->settings[s], (size_t)(equals - command->settings[s]) + 1) == 0;
        }
        if (!replaced)
            entries[kept++] = environ[i];
    }
    for (int s = 0; command->settings[s]; s++)
        entries[kept++] = (char *)command->settings[s];
    entries[kept] = NULL;
    return entries;
}

static void become_program(const struct peer_command *command, const struct peer_pipes *pipes, pid_t keeper)
{
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    sigset_t none;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != keeper)
        _exit(127);
    setpgid(0, 0);
    signal(SIGPIPE, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 || dup2(pipes->out, STDOUT_FILENO) < 0 ||
        dup2(pipes->err, STDERR_FILENO) < 0)
        _exit(127);
    execvpe(command->words[0], (char *const *)command->words, environment_of(command));
    dprintf(STDERR_FILENO, "cannot run %s: %s\n", command->words[0], wf_strerror(errno));
    _exit(127);
}

/* --- the keeper --- */

pid_t peer_parent_of(pid_t pid)
{
    char path[32], text[512];
    int parent = 0;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    text[length > 0 ? length : 0] = '\0';
    const char *after = strrchr(text, ')'); /* its name may hold anything */
    return after && sscanf(after + 1, " %*c %d", &parent) == 1 ? parent : 0;
}

/* Kills the children of this process. Their children become its own, and the next call finds them. */
static void kill_children(void)
{
    DIR *folder = opendir("/proc");
    const struct dirent *entry;

    while (folder && (entry = readdir(folder)))
        if (isdigit((unsigned char)entry->d_name[0]) && peer_parent_of((pid_t)atoi(entry->d_name)) == getpid())
            kill((pid_t)atoi(entry->d_name), SIGKILL);
    if (folder)
        closedir(folder);
}

static double seconds(const struct timeval *time)
{
    return (double)time->tv_sec + (double)time->tv_usec / 1e6;
}

/* Waits for the children that have ended. False once no child is left. */
static bool reap(struct keeper *keeper)
{
    struct rusage usage;
    int wait_status;
    pid_t pid;

    while ((pid = wait4(-1, &wait_status, WNOHANG, &usage)) > 0) {
        keeper->report.cpu_s += seconds(&usage.ru_utime) + seconds(&usage.ru_stime);
        if (pid != keeper->program)
            continue;
        keeper->report.wait_status = wait_status;
        keeper->ended = true;
    }
    return pid == 0;
}

/* Waits for a signal, and notes what it asks for. */
static void listen_for(struct keeper *keeper, int timeout_ms)
{
    struct pollfd waiting = {keeper->signals, POLLIN, 0};
    struct signalfd_siginfo signal_info;

    if (poll(&waiting, 1, timeout_ms) <= 0 ||
        read(keeper->signals, &signal_info, sizeof signal_info) != (ssize_t)sizeof signal_info ||
        signal_info.ssi_signo != PEER_KEEPER_END || keeper->asked)
        return;
    keeper->asked = true;
    keeper->force_ns = wf_clock_now(&wf_clock_monotonic) + KIND_MS * WF_NS_PER_MS;
    if (!keeper->ended)
        kill(-keeper->program, SIGTERM);
}

static void keep(struct keeper *keeper)
{
    while (reap(keeper)) {
        bool force = keeper->ended || (keeper->asked && wf_clock_now(&wf_clock_monotonic) >= keeper->force_ns);
        if (force)
            kill_children();
        listen_for(keeper, keeper->ended || keeper->asked ? LOOK_MS : -1);
    }
}

/* Everything is blocked, so that a terminal's signals do not end the keeper: its parent decides when the program ends.
 */
static int take_signals(void)
{
    sigset_t all, wanted;

    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGCHLD);
    sigaddset(&wanted, PEER_KEEPER_END);
    return signalfd(-1, &wanted, SFD_CLOEXEC);
}

static void be_keeper(const struct peer_command *command, const struct peer_pipes *pipes, pid_t parent)
{
    struct keeper keeper = {.signals = take_signals()};
    pid_t self = getpid();

    prctl(PR_SET_PDEATHSIG, PEER_KEEPER_END);
    if (getppid() != parent || keeper.signals < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
        _exit(1);
    keeper.program = fork();
    if (keeper.program == 0)
        become_program(command, pipes, self);
    if (keeper.program < 0)
        _exit(1);
    setpgid(keeper.program, keeper.program); /* the program does the same: the first of the two calls counts */
    keep(&keeper);
    ssize_t written = write(pipes->report, &keeper.report, sizeof keeper.report);
    _exit(written == (ssize_t)sizeof keeper.report ? 0 : 1);
}

pid_t peer_keeper_start(const struct peer_command *command, const struct peer_pipes *pipes)
{
    pid_t self = getpid(), pid = fork();

    if (pid == 0)
        be_keeper(command, pipes, self);
    return pid < 0 ? -errno : pid;
}
