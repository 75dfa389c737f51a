/*
 * server.h: a server that a client on another machine uses: one after the other, on ports beside the one at which the
 * nodes themselves meet.
 *
 *     open -> (next_port, start, collect or drop) ... -> drop
 */
#ifndef WF_PEERS_SERVER_H
#define WF_PEERS_SERVER_H

#include "run.h"

#define PEER_SERVER_PORTS 16 /* one that was used just now may still be held */

/* Owner: one thread, which outlives it. */
struct peer_server {
    struct peer_commands commands; /* `server` is what is started: filled in by the caller */
    struct peer_program program;
    bool running; /* `program` is to be given back */
    int first_port, next_port;
    peer_stop *stop; /* NULL: nothing stops it */
};

/* `port` is where the nodes meet: the servers get those behind it, or before it where there are none. */
void peer_server_open(struct peer_server *server, int port, peer_stop *stop);

/* The next of its ports that nobody listens on. */
int peer_server_next_port(struct peer_server *server);

/* Starts what `commands` say, and returns when it listens on `port`. Errors as of peer_run(). */
int peer_server_start(struct peer_server *server, int port, struct wf_status *status);

/* Takes what it has printed meanwhile, without waiting. Always 0: as one who looks after a conversation is called. */
int peer_server_pump(void *server, struct wf_status *unused);

/* Whether there is a program to be asked for: a tool may need none. */
bool peer_server_has_program(const struct peer_server *server);

/* After its client has ended: gives it some time to end by itself, then ends it. What `stop` said, or 0. */
int peer_server_collect(struct peer_server *server, struct wf_status *status);

/* Ends it, if it runs. */
void peer_server_drop(struct peer_server *server);

#endif
