/*
 * listening.h: who listens on a TCP port of this machine, without connecting to it: a tool that serves one client would
 * take the question for its client.
 */
#ifndef WF_PEERS_LISTENING_H
#define WF_PEERS_LISTENING_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/status.h"

/* Of this network namespace, on any address. False also where the kernel does not tell. */
bool peer_listening(int port);

/* The same of `ancestor` and of all that it started, whoever else listens there. True also where the kernel does not
 * tell whose a socket is. */
bool peer_listening_below(pid_t ancestor, int port);

/* A port that nobody uses now, of those that the kernel hands out: somebody else may take it before it is used.
 * Negative errno with `status`. */
int peer_free_port(struct wf_status *status);

#endif
