#include "far.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bench/nodes/answering.h"
#include "bench/nodes/hello.h"
#include "bench/words/heard.h"
#include "bench/words/interrupt.h"
#include "peers/server.h"

/* --- node1 --- */

static int lost_step(struct wf_status *status)
{
    return wf_fail(status, -EPROTO, "the other node's answer is none to weft sweep: use the same build on both");
}

int bench_sweep_connect(struct bench_site *site, struct wf_status *status)
{
    int result = bench_asking_connect(site->asking, site->options, status);

    if (result)
        return result;
    json_t *answer = NULL, *hello = json_pack("{s:s, s:s, s:i}", "hello", BENCH_HELLO_SWEEP, "measure",
                                              bench_command_name(site->command), "rails", site->rail_count);
    result = bench_asking_hello(site->asking, "sweep", hello, &answer, status);
    const char *error = json_string_value(json_object_get(answer, "error"));
    json_int_t rails = json_integer_value(json_object_get(answer, "rails"));
    if (result == 0 && error)
        result = wf_fail(status, -EPROTO, "node0: %.200s", error);
    else if (result == 0 && (rails < 1 || rails > site->rail_count))
        result = lost_step(status);
    else if (result == 0)
        site->rail_count = (int)rails;
    json_decref(answer);
    return result;
}

/* What of a point acts on both nodes; node1's half tells node0's the rest. */
static json_t *shared_settings(const struct bench_site *site, uint32_t point)
{
    json_t *settings = json_object();

    for (int i = 0; i < site->space->axis_count; i++) {
        const struct wf_setting *setting = wf_setting(site->space->axes[i].id);
        const char *value = bench_space_value(site->space, point, i);
        /* The rails that are in force anyway are each node's own. */
        bool own = site->space->axes[i].id == WF_SET_RAILS && point >= site->space->grid;
        if (setting->group == WF_GROUP_LIBRARY && value[0] && !own)
            json_object_set_new(settings, setting->name, bench_heard_string(value));
    }
    return settings;
}

int bench_sweep_begin(struct bench_site *site, uint32_t point, int *port, struct wf_status *status)
{
    int result =
        bench_asking_ask(site->asking, json_pack("{s:o}", "run", shared_settings(site, point)), &site->answer, status);

    if (result)
        return result;
    *port = (int)json_integer_value(json_object_get(site->answer, "port"));
    site->server = json_incref(json_object_get(site->answer, "command"));
    return *port > 0 && *port < 65536 ? 0 : lost_step(status);
}

int bench_sweep_collect(struct bench_site *site, bool worked, struct wf_status *status)
{
    return bench_asking_ask(site->asking, json_pack("{s:b}", "collect", worked), &site->answer, status);
}

/* --- node0 --- */

/* Owner: the measuring thread. */
struct serving {
    struct bench_site *site;
    struct peer_server server; /* node0's half of a run */
};

static json_t *answer_run(struct serving *serving, const json_t *settings)
{
    struct peer_server *server = &serving->server;
    struct wf_status status = {0};
    char text[WF_VALUE_MAX];

    peer_server_drop(server);
    int port = peer_server_next_port(server);
    int result = bench_site_server(serving->site, settings, port, &server->commands.server, &status);
    if (result == 0)
        result = peer_server_start(server, port, &status);
    if (result == 0)
        return json_pack("{s:i, s:o}", "port", port, "command",
                         bench_heard_string(peer_command_text(&server->commands.server, text, sizeof text)));
    peer_server_drop(server);
    return bench_asking_refuse(&status);
}

static json_t *answer_collect(struct serving *serving, bool worked)
{
    struct peer_server *server = &serving->server;
    struct wf_status status = {0};
    int result = 0;

    if (peer_server_has_program(server) && worked)
        result = peer_server_collect(server, &status);
    if (result == 0 && peer_server_has_program(server) && server->program.ended)
        result = peer_program_verdict(&server->program, &status);
    peer_server_drop(server);
    return result ? bench_asking_refuse(&status) : json_pack("{s:b}", "ended", 1);
}

static json_t *answer_hello(struct serving *serving, const json_t *question)
{
    struct bench_site *site = serving->site;
    const char *measure = json_string_value(json_object_get(question, "measure"));
    json_int_t theirs = json_integer_value(json_object_get(question, "rails"));

    if (!measure || (strcmp(measure, "mesh") != 0 && strcmp(measure, "pair") != 0))
        return json_pack("{s:s}", "error", "a sweep measures mesh or pair");
    site->command = strcmp(measure, "mesh") == 0 ? BENCH_MESH : BENCH_PAIR;
    if (theirs > 0 && theirs < site->rail_count)
        site->rail_count = (int)theirs;
    return json_pack("{s:s, s:i}", "hello", BENCH_HELLO_SWEEP, "rails", site->rail_count);
}

static json_t *answer_to(void *context, const json_t *question)
{
    struct serving *serving = context;

    if (json_object_get(question, "hello"))
        return answer_hello(serving, question);
    if (json_is_object(json_object_get(question, "run")))
        return answer_run(serving, json_object_get(question, "run"));
    if (json_object_get(question, "collect"))
        return answer_collect(serving, json_is_true(json_object_get(question, "collect")));
    return NULL;
}

int bench_sweep_serve(struct bench_site *site, struct wf_status *status)
{
    struct serving serving = {.site = site};
    char runs[64];
    int port;

    snprintf(runs, sizeof runs, "its half of each run on the next %d", PEER_SERVER_PORTS);
    int result = bench_asking_await(site->asking, site->options, runs, &port, status);
    if (result)
        return result;
    peer_server_open(&serving.server, port, bench_interrupted_stop);
    bench_control_look_after(site->asking->control, peer_server_pump, &serving.server);
    result = bench_asking_serve(site->asking, "sweep", answer_to, &serving, status);
    bench_control_look_after(site->asking->control, NULL, NULL);
    peer_server_drop(&serving.server);
    return result;
}
