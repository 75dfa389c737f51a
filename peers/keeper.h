/*
 * keeper.h: a process between this one and a program that is run. Whatever happens to the program, to its children or
 * to this process,
 *
 *     everything that the program started has ended, and was waited for, before the keeper ends.
 *
 * It adopts what the program leaves behind (PR_SET_CHILD_SUBREAPER), also processes that moved to a group of their own,
 * and the kernel tells it when its parent dies (PR_SET_PDEATHSIG).
 */
#ifndef WF_PEERS_KEEPER_H
#define WF_PEERS_KEEPER_H

#include <signal.h>
#include <sys/types.h>

#include "peer.h"

#define PEER_KEEPER_END SIGUSR1 /* asks a keeper to end its program: at first kindly, then by SIGKILL */

/* What the keeper writes into `report`, in one piece, once all have ended. */
struct peer_report {
    int wait_status; /* the program's, as of waitpid() */
    double cpu_s;    /* of the program and all that it started */
};

/* The pipes' ends for the program and its keeper; the caller keeps them open and closes them. */
struct peer_pipes {
    int out, err, report;
};

/* Starts a keeper, and it the program. Its pid, to be waited for by the caller, or -errno. A program that cannot be
 * executed says so on `err` and ends with status 127. The caller's thread must not end before the keeper. */
pid_t peer_keeper_start(const struct peer_command *command, const struct peer_pipes *pipes);

/* The parent of a process; 0: there is no such process any more. */
pid_t peer_parent_of(pid_t pid);

#endif
