#include "run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "listening.h"

#define LISTEN_MS 20000 /* for a server to listen, if the timeout is not shorter */
#define LOOK_MS 2       /* between two looks at the port: nothing tells when it is listened on */
#define SLICE_MS 50     /* between two looks at `stop` */
#define GRACE_MS 3000   /* for the server to end after its client */
#define MOURN_MS 2000   /* for the client to end after its server has failed */

static int64_t after_ms(int milliseconds)
{
    return wf_deadline_after_ms(wf_clock_now(&wf_clock_monotonic), milliseconds);
}

static bool past(int64_t deadline)
{
    return wf_clock_now(&wf_clock_monotonic) >= deadline;
}

static int check_stop(const struct peer_run *run, struct wf_status *status)
{
    return run->stop ? run->stop(run->context, status) : 0;
}

static bool says(const struct peer_program *program, const char *words)
{
    return strstr(program->tail, words) || (program->text && strstr(program->text, words));
}

/* Whether the server failed because another program has its port: it says so, in the C library's words or in Weft's, or
 * the port is listened on although the server, and all that it started, have ended. To listen is not the only way to
 * have a port: a connection may have it for its own end, and is not seen by a look. */
static bool lacks_port(const struct peer_run *run, const struct peer_program *server)
{
    return says(server, "Address already in use") || says(server, "the port is in use") || peer_listening(run->port);
}

static int await_listening(const struct peer_run *run, struct peer_program *server, struct wf_status *status)
{
    int limit_ms = run->timeout_ms < LISTEN_MS ? run->timeout_ms : LISTEN_MS;
    int64_t deadline = after_ms(limit_ms);
    int result = 0;

    while (result == 0 && !peer_listening_below(server->keeper, run->port)) {
        peer_program_pump(&server, 1, LOOK_MS);
        result = check_stop(run, status);
        if (result == 0 && server->ended && peer_program_verdict(server, status) == 0)
            wf_fail(status, -ECHILD, "%.60s ended without listening on port %d", server->name, run->port);
        if (result == 0 && server->ended)
            result = status->code = lacks_port(run, server) ? -EADDRINUSE : status->code;
        else if (result == 0 && past(deadline))
            result = wf_fail(status, -ETIMEDOUT, "%.60s does not listen on port %d after %d s", server->name, run->port,
                             limit_ms / 1000);
    }
    return result;
}

int peer_run_serve(const struct peer_run *run, struct peer_program *server, struct wf_status *status)
{
    memset(server, 0, sizeof *server);
    if (!run->commands->server.words[0])
        return 0;
    if (peer_listening(run->port))
        return wf_fail(status, -EADDRINUSE, "port %d is in use: choose another with --port", run->port);
    int result = peer_program_start(server, &run->commands->server, status);
    return result ? result : await_listening(run, server, status);
}

/* The server's failure explains the client's. */
static int judge(const struct peer_outcome *outcome, struct wf_status *status)
{
    const struct peer_program *client = &outcome->client_program, *server = &outcome->server_program;
    struct wf_status other;
    int result = peer_program_verdict(client, status);

    if (result && server->ended && peer_program_verdict(server, &other) != 0)
        *status = other;
    if (result == 0 && (client->flooded || server->flooded))
        result = wf_fail(status, -EPROTO, "%.60s printed more than %u bytes", client->name, PEER_TEXT_MAX);
    return result;
}

/* Until the client has ended; a server that fails takes its client along. */
static int await_client(const struct peer_run *run, struct peer_outcome *outcome, struct wf_status *status)
{
    struct peer_program *client = &outcome->client_program;
    struct peer_program *server = outcome->server_program.keeper ? &outcome->server_program : NULL;
    struct peer_program *const both[] = {client, server};
    int64_t deadline = after_ms(run->timeout_ms);
    bool mourning = false;
    int result = 0;

    while (result == 0 && !client->ended) {
        peer_program_pump(both, 2, SLICE_MS);
        result = check_stop(run, status);
        if (result == 0 && !mourning && server && server->ended && peer_program_verdict(server, status) != 0) {
            mourning = true;
            deadline = after_ms(MOURN_MS);
        }
        if (result == 0 && !client->ended && past(deadline))
            result = mourning ? status->code
                              : wf_fail(status, -ETIMEDOUT, "%.60s had not ended after %d s", client->name,
                                        run->timeout_ms / 1000);
    }
    return result;
}

/* It may have the last word of a measurement to print. */
int peer_run_collect(const struct peer_run *run, struct peer_program *server, struct wf_status *status)
{
    int64_t deadline = after_ms(GRACE_MS);
    bool asked = false;
    int result = 0;

    while (result == 0 && server->keeper && !server->ended) {
        peer_program_pump(&server, 1, SLICE_MS);
        result = check_stop(run, status);
        if (!asked && past(deadline)) {
            peer_program_end(server);
            asked = true;
        }
    }
    return result;
}

static void fill(struct peer_output *output, const struct peer_program *program, int64_t start_ns)
{
    output->text = program->text ? program->text : "";
    output->cpu_s = program->told ? program->how.cpu_s : -1;
    output->elapsed_s = (double)(wf_clock_now(&wf_clock_monotonic) - start_ns) / 1e9;
}

/* Ends the programs that still run. Both are asked before either is waited for, as each may take its time. */
static void end_all(struct peer_outcome *outcome)
{
    struct peer_program *const both[] = {&outcome->client_program, &outcome->server_program};

    for (int i = 0; i < 2; i++)
        if (both[i]->keeper && !both[i]->ended)
            peer_program_end(both[i]);
    for (int i = 0; i < 2; i++)
        while (both[i]->keeper && !both[i]->ended)
            peer_program_pump(&both[i], 1, -1);
}

static int perform(const struct peer_run *run, struct peer_outcome *outcome, struct wf_status *status)
{
    struct peer_program *server = &outcome->server_program, *client = &outcome->client_program;
    int result = run->client_only ? 0 : peer_run_serve(run, server, status);

    if (result)
        return result;
    int64_t start_ns = wf_clock_now(&wf_clock_monotonic);
    result = peer_program_start(client, &run->commands->client, status);
    if (result == 0)
        result = await_client(run, outcome, status);
    if (result == 0) {
        fill(&outcome->client, client, start_ns);
        if (peer_program_verdict(client, status) == 0)
            result = peer_run_collect(run, server, status);
    }
    if (result == 0)
        result = judge(outcome, status);
    if (result == 0 && server->name)
        fill(&outcome->server, server, start_ns);
    return result;
}

int peer_run(const struct peer_run *run, struct peer_outcome *outcome, struct wf_status *status)
{
    memset(outcome, 0, sizeof *outcome);
    int result = perform(run, outcome, status);
    end_all(outcome);
    return result;
}

/* A program that was never started has nothing but zeroes: its descriptors are not its own. */
static void fini(struct peer_program *program)
{
    if (program->name)
        peer_program_fini(program);
}

void peer_outcome_fini(struct peer_outcome *outcome)
{
    fini(&outcome->client_program);
    fini(&outcome->server_program);
}

/* --- where programs are --- */

static bool runs(const char *path)
{
    return access(path, X_OK) == 0;
}

const char *peer_find_program(const struct peer_tool *tool, const char *folder, char *path, size_t room)
{
    const char *entry = getenv("PATH");

    if (strncmp(tool->program, "weft", 4) == 0) {
        snprintf(path, room, "%s/%s", folder, tool->program);
        return runs(path) ? path : NULL;
    }
    while (entry && *entry) {
        size_t length = strcspn(entry, ":");
        snprintf(path, room, "%.*s/%s", length ? (int)length : 1, length ? entry : ".", tool->program);
        if (runs(path))
            return path;
        entry += length + (entry[length] == ':');
    }
    return NULL;
}
