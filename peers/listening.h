/*
 * listening.h: which process listens on a TCP port of this machine, found without a connection: a tool that serves one
 * client would take that connection for its client.
 */
#ifndef WF_PEERS_LISTENING_H
#define WF_PEERS_LISTENING_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/status.h"

/* Of this network namespace, on any address. False also where the kernel does not tell. */
bool peer_listening(int port);

/* Whether `ancestor` or a process below it listens there; other processes may, too. True also where the kernel does
 * not tell which process a socket belongs to. */
bool peer_listening_below(pid_t ancestor, int port);

/* A port that is free now, out of the kernel's ephemeral ports: another program may take it before it is used. Negative
 * errno with `status`. */
int peer_free_port(struct wf_status *status);

#endif
