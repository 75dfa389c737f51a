/* node0 of weft peers: runs the servers that the other node asks for. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "bench/nodes/answering.h"
#include "bench/nodes/hello.h"
#include "bench/words/heard.h"
#include "bench/words/interrupt.h"
#include "far.h"
#include "peers/question.h"
#include "peers/server.h"

#define TEXT_MOST 100000 /* of a server's output: it has to fit into a control message, escaped */

/* Owner: the measuring thread. */
struct serving {
    const struct peers_plan *plan;
    struct peer_server server;
    int64_t start_ns;
    int rails; /* in use: as many as both nodes have */
};

/* --- a server --- */

static int begin_serving(struct serving *serving, const json_t *asked, int *port, struct wf_status *status)
{
    struct peer_place place = serving->plan->place;
    struct peers_question question;
    struct peer_commands *commands = &serving->server.commands;

    peer_server_drop(&serving->server);
    place.port = *port = peer_server_next_port(&serving->server);
    place.rail_count = serving->rails;
    int result = peers_question_from_json(asked, serving->plan, &place, &question, status);
    if (result)
        return result;
    memset(commands, 0, sizeof *commands);
    result = question.tool->commands(&question.asked, &place, question.variant, commands);
    if (result)
        return wf_fail(status, result, "the command line of %s is too long: name fewer rails or settings",
                       question.tool->name);
    serving->start_ns = wf_clock_now(&wf_clock_monotonic);
    return peer_server_start(&serving->server, place.port, status);
}

static json_t *list(const char *const *words)
{
    json_t *array = json_array();

    for (int i = 0; words[i]; i++)
        json_array_append_new(array, bench_heard_string(words[i]));
    return array;
}

static json_t *answer_run(struct serving *serving, const json_t *question)
{
    struct wf_status status = {0};
    int port = 0, result = begin_serving(serving, question, &port, &status);

    if (result) {
        peer_server_drop(&serving->server);
        return bench_asking_refuse(&status);
    }
    return json_pack("{s:i, s:o, s:o}", "port", port, "words", list(serving->server.commands.server.words), "settings",
                     list(serving->server.commands.server.settings));
}

/* Bytes that are no text would be no JSON. */
static json_t *printed(struct peer_program *program)
{
    for (size_t i = 0; i < program->used; i++)
        if ((unsigned char)program->text[i] >= 0x80 || program->text[i] == '\0')
            program->text[i] = '?';
    return json_string(program->text ? program->text : "");
}

static json_t *answer_collect(struct serving *serving, const json_t *question)
{
    struct peer_program *program = &serving->server.program;
    struct wf_status status = {0};
    bool worked = json_is_true(json_object_get(question, "collect"));
    json_t *answer;

    if (!peer_server_has_program(&serving->server))
        answer = json_pack("{s:n}", "text");
    else if (!worked && program->ended && peer_program_verdict(program, &status) != 0)
        answer = bench_asking_refuse(&status);
    else if (!worked)
        answer = json_pack("{s:n}", "text");
    else if (peer_server_collect(&serving->server, &status) != 0)
        answer = bench_asking_refuse(&status);
    else if (program->flooded || program->used > TEXT_MOST)
        answer = json_pack("{s:s}", "error", "the server printed too much");
    else
        answer =
            json_pack("{s:o, s:f, s:f}", "text", printed(program), "cpu_s", program->told ? program->how.cpu_s : -1.0,
                      "elapsed_s", (double)(wf_clock_now(&wf_clock_monotonic) - serving->start_ns) / 1e9);
    peer_server_drop(&serving->server);
    return answer;
}

/* --- the other node --- */

static json_t *answer_hello(struct serving *serving, const json_t *question)
{
    json_t *rails = json_array();
    int64_t theirs = json_integer_value(json_object_get(question, "rails"));

    if (theirs > 0 && theirs < serving->rails)
        serving->rails = (int)theirs;
    for (int i = 0; i < serving->rails; i++)
        json_array_append_new(rails, bench_heard_string(serving->plan->place.rails[i]));
    return json_pack("{s:s, s:o}", "hello", BENCH_HELLO_PEERS, "rails", rails);
}

static json_t *answer_to(void *context, const json_t *question)
{
    struct serving *serving = context;

    if (json_object_get(question, "run"))
        return answer_run(serving, question);
    if (json_object_get(question, "collect"))
        return answer_collect(serving, question);
    return json_object_get(question, "hello") ? answer_hello(serving, question) : NULL;
}

int bench_far_serve(struct bench_far *far, const struct bench_options *options, struct peers_plan *plan,
                    struct wf_status *status)
{
    struct serving serving = {.plan = plan, .rails = plan->place.rail_count};
    char runs[64];
    int port;

    snprintf(runs, sizeof runs, "servers on the next %d", PEER_SERVER_PORTS);
    int result = bench_asking_await(&far->asking, options, runs, &port, status);
    if (result)
        return result;
    peer_server_open(&serving.server, port, bench_interrupted_stop);
    bench_control_look_after(far->asking.control, peer_server_pump, &serving.server);
    result = bench_asking_serve(&far->asking, "peers", answer_to, &serving, status);
    bench_control_look_after(far->asking.control, NULL, NULL);
    peer_server_drop(&serving.server);
    return result;
}
