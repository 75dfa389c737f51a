/*
 * listening.h: whether somebody listens on a TCP port of this machine, without connecting to it: a tool that serves
 * one client would take the question for its client.
 */
#ifndef WF_PEERS_LISTENING_H
#define WF_PEERS_LISTENING_H

#include <stdbool.h>

#include "base/status.h"

/* Of this network namespace, on any address. False also where the kernel does not tell. */
bool peer_listening(int port);

/* A port that nobody uses now, of those that the kernel hands out. Negative errno with `status`. */
int peer_free_port(struct wf_status *status);

#endif
