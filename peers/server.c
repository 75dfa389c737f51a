#include "server.h"

#include <string.h>

#include "listening.h"

#define TIMEOUT_MS 20000 /* for a server to listen */

void peer_server_open(struct peer_server *server, int port, peer_stop *stop)
{
    server->first_port = port + PEER_SERVER_PORTS <= 65535 ? port + 1 : port - PEER_SERVER_PORTS;
    server->stop = stop;
}

int peer_server_next_port(struct peer_server *server)
{
    for (int i = 0; i < PEER_SERVER_PORTS; i++) {
        int port = server->first_port + (server->next_port++ % PEER_SERVER_PORTS);
        if (!peer_listening(port))
            return port;
    }
    return server->first_port;
}

static struct peer_run run_of(const struct peer_server *server, int port)
{
    return (struct peer_run){
        .commands = &server->commands, .port = port, .timeout_ms = TIMEOUT_MS, .stop = server->stop};
}

int peer_server_start(struct peer_server *server, int port, struct wf_status *status)
{
    struct peer_run run = run_of(server, port);

    server->running = true;
    return peer_run_serve(&run, &server->program, status);
}

int peer_server_pump(void *context, struct wf_status *unused)
{
    struct peer_server *server = context;
    struct peer_program *program = &server->program;

    (void)unused;
    if (server->running)
        peer_program_pump(&program, 1, 0);
    return 0;
}

bool peer_server_has_program(const struct peer_server *server)
{
    return server->running && server->program.name;
}

int peer_server_collect(struct peer_server *server, struct wf_status *status)
{
    struct peer_run run = run_of(server, 0);

    return peer_run_collect(&run, &server->program, status);
}

void peer_server_drop(struct peer_server *server)
{
    if (peer_server_has_program(server))
        peer_program_fini(&server->program);
    server->running = false;
}
