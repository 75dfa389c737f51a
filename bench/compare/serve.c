/* node0 of weft peers: runs the servers that the other node asks for. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "bench/nodes/hello.h"
#include "bench/nodes/key_check.h"
#include "bench/words/interrupt.h"
#include "far.h"
#include "peers/listening.h"
#include "peers/question.h"

#define PORTS 16         /* after that of the nodes themselves: one that was used just now may still be held */
#define TIMEOUT_MS 20000 /* for a server to listen */
#define TEXT_MOST 100000 /* of a server's output: it has to fit into a control message, escaped */

/* Owner: the measuring thread. */
struct serving {
    struct bench_far *far;
    const struct peers_plan *plan;
    struct peer_commands commands;
    struct peer_program program;
    bool running; /* `program` is to be given back */
    int64_t start_ns;
    int first_port, next_port;
    int rails; /* in use: as many as both nodes have */
};

/* --- a server --- */

static int interrupted(void *context, struct wf_status *status)
{
    (void)context;
    return bench_interrupted(status);
}

/* While the other node measures, what the server prints is taken. */
static int look_after(void *context, struct wf_status *status)
{
    struct serving *serving = context;
    struct peer_program *program = &serving->program;

    (void)status;
    if (serving->running)
        peer_program_pump(&program, 1, 0);
    return 0;
}

static void drop(struct serving *serving)
{
    if (serving->running && serving->program.name)
        peer_program_fini(&serving->program);
    serving->running = false;
}

static int next_port(struct serving *serving)
{
    for (int i = 0; i < PORTS; i++) {
        int port = serving->first_port + (serving->next_port++ % PORTS);
        if (!peer_listening(port))
            return port;
    }
    return serving->first_port;
}

static struct peer_run run_of(const struct serving *serving, int port)
{
    return (struct peer_run){
        .commands = &serving->commands, .port = port, .timeout_ms = TIMEOUT_MS, .stop = interrupted};
}

static int begin_serving(struct serving *serving, const json_t *asked, int *port, struct wf_status *status)
{
    struct peer_place place = serving->plan->place;
    struct peers_question question;

    drop(serving);
    place.port = *port = next_port(serving);
    place.rail_count = serving->rails;
    int result = peers_question_from_json(asked, serving->plan, &place, &question, status);
    if (result)
        return result;
    memset(&serving->commands, 0, sizeof serving->commands);
    result = question.tool->commands(&question.asked, &place, question.variant, &serving->commands);
    if (result)
        return wf_fail(status, result, "the command line of %s is too long: name fewer rails or settings",
                       question.tool->name);
    struct peer_run run = run_of(serving, place.port);
    serving->running = true;
    serving->start_ns = wf_clock_now(&wf_clock_monotonic);
    return peer_run_serve(&run, &serving->program, status);
}

static json_t *list(const char *const *words)
{
    json_t *array = json_array();

    for (int i = 0; words[i]; i++)
        json_array_append_new(array, json_string(words[i]));
    return array;
}

static json_t *answer_error(const struct wf_status *status)
{
    return json_pack("{s:s, s:b}", "error", status->text, "port_taken", status->code == -EADDRINUSE);
}

static json_t *answer_run(struct serving *serving, const json_t *question)
{
    struct wf_status status = {0};
    int port = 0, result = begin_serving(serving, question, &port, &status);

    if (result) {
        drop(serving);
        return answer_error(&status);
    }
    return json_pack("{s:i, s:o, s:o}", "port", port, "words", list(serving->commands.server.words), "settings",
                     list(serving->commands.server.settings));
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
    struct peer_program *program = &serving->program;
    struct peer_run run = run_of(serving, 0);
    struct wf_status status = {0};
    bool worked = json_is_true(json_object_get(question, "collect"));
    json_t *answer;

    if (!serving->running || !program->name)
        answer = json_pack("{s:n}", "text");
    else if (!worked && program->ended && peer_program_verdict(program, &status) != 0)
        answer = answer_error(&status);
    else if (!worked)
        answer = json_pack("{s:n}", "text");
    else if (peer_run_collect(&run, program, &status) != 0)
        answer = answer_error(&status);
    else if (program->flooded || program->used > TEXT_MOST)
        answer = json_pack("{s:s}", "error", "the server printed too much");
    else
        answer =
            json_pack("{s:o, s:f, s:f}", "text", printed(program), "cpu_s", program->told ? program->how.cpu_s : -1.0,
                      "elapsed_s", (double)(wf_clock_now(&wf_clock_monotonic) - serving->start_ns) / 1e9);
    drop(serving);
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
        json_array_append_new(rails, json_string(serving->plan->place.rails[i]));
    return json_pack("{s:s, s:o}", "hello", BENCH_HELLO_PEERS, "rails", rails);
}

/* NULL: the other node has said goodbye. */
static json_t *answer_to(struct serving *serving, const json_t *question)
{
    if (json_object_get(question, "bye"))
        return NULL;
    if (json_object_get(question, "run"))
        return answer_run(serving, question);
    if (json_object_get(question, "collect"))
        return answer_collect(serving, question);
    if (json_object_get(question, "hello"))
        return answer_hello(serving, question);
    return json_pack("{s:s}", "error", "this is no question of weft peers: use the same build on both");
}

static int converse(struct serving *serving, struct wf_status *status)
{
    struct bench_control *control = serving->far->control;
    bool over = false;
    int result = 0;

    while (result == 0 && !over) {
        json_t *question = NULL, *answer = NULL;
        result = bench_control_hear(control, &question, status);
        if (result == 0)
            result = bench_same_command(question, "peers", 0, status);
        if (result == 0)
            answer = answer_to(serving, question);
        over = result == 0 && !answer;
        if (answer)
            result = bench_control_say(control, answer, status);
        json_decref(question);
        json_decref(answer);
    }
    return result;
}

/* "[ADDR:]PORT" of --listen; the setting `port` where it names none. */
static void listen_address(const struct bench_options *options, char *address, size_t room)
{
    if (options->address[0])
        snprintf(address, room, "%s", options->address);
    else
        snprintf(address, room, "%d", (int)wf_config_number(options->config, WF_SET_PORT));
}

static int await_other(struct bench_far *far, const struct bench_options *options, int *port, struct wf_status *status)
{
    char address[280];
    int result = bench_link_open(&far->link, 0, options->config, NULL, status);

    listen_address(options, address, sizeof address);
    if (result == 0)
        result = bench_link_listen(&far->link, address, port, status);
    if (result)
        return result;
    bench_key_warn(far->link.context, options, address, *port);
    if (!bench_quiet(options->config)) {
        printf("node0 waits on port %d, and runs servers on the next %d; on the other node:\n"
               "  weft peers --connect ADDRESS:%d\n",
               *port, PORTS, *port);
        fflush(stdout);
    }
    result = bench_link_accept(&far->link, true, NULL, NULL, status);
    if (result == 0)
        result = bench_control_create(far->link.connection, far->link.peer, 0, &far->control, status);
    return result;
}

int bench_far_serve(struct bench_far *far, const struct bench_options *options, struct peers_plan *plan,
                    struct wf_status *status)
{
    struct serving serving = {.far = far, .plan = plan, .rails = plan->place.rail_count};
    int port, result = await_other(far, options, &port, status);

    if (result)
        return result;
    serving.first_port = port + 1 <= 65535 - PORTS ? port + 1 : port - PORTS;
    bench_control_look_after(far->control, look_after, &serving);
    result = converse(&serving, status);
    bench_control_look_after(far->control, NULL, NULL);
    drop(&serving);
    return result;
}
