#include "affinity/discover_apart.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_S 20 /* a description is read in a few milliseconds */

/* What the child leaves for the parent, in memory that both see. */
struct parcel {
    bool done;
    int result;
    char why[512];
    struct wf_machine machine;
};

/* hwloc complains on standard error, of what `why` says in our words. */
static void run_child(wf_discover_fn discover, const char *source, struct parcel *parcel)
{
    const struct rlimit no_core = {0};
    sigset_t all;
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

    signal(SIGALRM, SIG_DFL);
    signal(SIGSEGV, SIG_DFL);
    signal(SIGABRT, SIG_DFL);
    sigfillset(&all);
    sigprocmask(SIG_UNBLOCK, &all, NULL);
    setrlimit(RLIMIT_CORE, &no_core);
    alarm(PATIENCE_S);
    if (null >= 0)
        dup2(null, STDERR_FILENO);
    parcel->result = discover(source, &parcel->machine, parcel->why, sizeof parcel->why);
    parcel->done = true;
    _exit(0);
}

int wf_discover_apart(wf_discover_fn discover, const char *source, struct wf_machine *out, char *why, size_t why_room)
{
    struct parcel *parcel = mmap(NULL, sizeof *parcel, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (parcel == MAP_FAILED) {
        snprintf(why, why_room, "no memory for the machine of '%s'", source);
        return -ENOMEM;
    }
    int result = 0;
    pid_t child = fork();
    if (child == 0)
        run_child(discover, source, parcel);
    if (child < 0)
        result = -EIO;
    /* Where SIGCHLD is ignored there is no status, which is not needed, but the call waits all the same. */
    while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
    if (result) {
        snprintf(why, why_room, "cannot start a process to read '%s': %s", source, strerror(errno));
    } else if (!parcel->done) {
        snprintf(why, why_room, "'%s' describes no possible machine: hwloc breaks off while it reads it", source);
        result = -EINVAL;
    } else {
        result = parcel->result;
        if (result)
            snprintf(why, why_room, "%s", parcel->why);
        else
            *out = parcel->machine;
    }
    munmap(parcel, sizeof *parcel);
    return result;
}
