/*
 * Takes a process's bindings away: its sockets of generic netlink are closed under it, which ends what was bound by
 * them. No call does that from outside, so the process does it itself, led there by ptrace: dup2() of its standard
 * input onto each of them, which leaves a descriptor that it may go on to close.
 */
#include "gpus.h"

#include <dirent.h>
#include <errno.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define SYSCALL 0x050f /* the instruction, as memory has it */

/* Is the socket with this number one of generic netlink? */
static bool is_generic(int pid, unsigned long wanted)
{
    char path[64], line[256];
    unsigned protocol;
    unsigned long inode;
    bool found = false;

    snprintf(path, sizeof path, "/proc/%d/net/netlink", pid);
    FILE *table = fopen(path, "re");
    while (table && !found && fgets(line, sizeof line, table))
        found = sscanf(line, "%*s %u %*s %*s %*s %*s %*s %*s %*s %lu", &protocol, &inode) == 2 &&
                protocol == NETLINK_GENERIC && inode == wanted;
    if (table)
        fclose(table);
    return found;
}

/* The thread stands behind the instruction of the call that it waits in: it is made anew, with other arguments. 0 or a
 * negative errno; -EAGAIN: it is not in a call. */
static int replace(int pid, int descriptor)
{
    struct user_regs_struct old, now;
    int state;

    if (ptrace(PTRACE_GETREGS, pid, NULL, &old) != 0)
        return -errno;
    errno = 0;
    if ((ptrace(PTRACE_PEEKTEXT, pid, (void *)(old.rip - 2), NULL) & 0xffff) != SYSCALL || errno != 0)
        return -EAGAIN;
    now = old;
    now.rip = old.rip - 2;
    now.orig_rax = (unsigned long long)-1; /* the call that was interrupted is not to be repeated now */
    now.rax = SYS_dup2;
    now.rdi = 0;
    now.rsi = (unsigned long long)descriptor;
    if (ptrace(PTRACE_SETREGS, pid, NULL, &now) != 0 || ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL) != 0 ||
        waitpid(pid, &state, __WALL) != pid || ptrace(PTRACE_GETREGS, pid, NULL, &now) != 0 ||
        ptrace(PTRACE_SETREGS, pid, NULL, &old) != 0)
        return -errno;
    return (int)now.rax;
}

static int replace_all(int pid)
{
    char path[64], target[64];
    const struct dirent *entry;
    unsigned long inode;
    int count = 0;

    snprintf(path, sizeof path, "/proc/%d/fd", pid);
    DIR *folder = opendir(path);
    while (folder && (entry = readdir(folder))) {
        ssize_t length = readlinkat(dirfd(folder), entry->d_name, target, sizeof target - 1);
        target[length < 0 ? 0 : length] = '\0';
        if (sscanf(target, "socket:[%lu]", &inode) != 1 || !is_generic(pid, inode))
            continue;
        int result = replace(pid, atoi(entry->d_name));
        if (result < 0) {
            printf("descriptor %s: %s\n", entry->d_name, strerror(-result));
            break;
        }
        count++;
    }
    if (folder)
        closedir(folder);
    return count;
}

int run_unbind(const char *word)
{
    int pid = atoi(word), state;

    if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) != 0 || ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) != 0 ||
        waitpid(pid, &state, __WALL) != pid) {
        printf("process %d: %s\n", pid, strerror(errno));
        return 1;
    }
    int count = replace_all(pid);
    ptrace(PTRACE_DETACH, pid, NULL, NULL);
    printf("%d sockets\n", count);
    return count > 0 ? 0 : 1;
}
