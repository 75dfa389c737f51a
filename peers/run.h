/*
 * run.h: one measurement with a tool: its server is started, then, as soon as it listens on its port, its client.
 * When the call returns, whatever it said, nothing of what it started is left.
 */
#ifndef WF_PEERS_RUN_H
#define WF_PEERS_RUN_H

#include "peer.h"
#include "program.h"

/* Asked several times a second: 0 to go on, else the measurement ends with that error. May fill `status`. */
typedef int peer_stop(void *context, struct wf_status *status);

struct peer_run {
    const struct peer_commands *commands;
    int port;        /* that the server listens on */
    int timeout_ms;  /* for the client to end; the server has less time to listen */
    peer_stop *stop; /* NULL: nothing stops it */
    void *context;
    bool client_only; /* the server runs on another machine */
};

/* What came of it. `server.text` is NULL where there was no server to run. */
struct peer_outcome {
    struct peer_output server, client;
    struct peer_program server_program, client_program; /* own the texts */
};

/*
 * -EADDRINUSE the port is taken, or was by the time that the server wanted it: another one may do; -ETIMEDOUT; -ECHILD
 * a program failed; -EPROTO it printed more than can be kept; or what `stop` returned. A server that does not end by
 * itself soon after its client is ended, and no failure. `outcome` can be given to fini() whatever the result, and has
 * to be.
 */
int peer_run(const struct peer_run *run, struct peer_outcome *outcome, struct wf_status *status);
void peer_outcome_fini(struct peer_outcome *outcome);

/* The server's side alone, where the client runs on another machine: starts it, and returns once it listens; errors as
 * of peer_run(). Where the tool has no server, `server->name` is NULL afterwards. */
int peer_run_serve(const struct peer_run *run, struct peer_program *server, struct wf_status *status);

/* After its client has ended: gives it some time to end by itself, then ends it. What `stop` said, or 0. */
int peer_run_collect(const struct peer_run *run, struct peer_program *server, struct wf_status *status);

/* The program of `tool` as it has to be called: its path, or NULL when it is not here. `room` as PATH_MAX. */
const char *peer_find_program(const struct peer_tool *tool, const char *folder, char *path, size_t room);

#endif
