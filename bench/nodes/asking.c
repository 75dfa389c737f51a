#include "asking.h"

#include <errno.h>
#include <stdio.h>

#include "hello.h"
#include "key_check.h"

/* --- node1 --- */

int bench_asking_connect(struct bench_asking *asking, const struct bench_options *options, struct wf_status *status)
{
    int result = bench_link_open(&asking->link, 1, options->config, NULL, status);

    atomic_store(&asking->alone, true);
    if (result == 0)
        result = bench_link_connect(&asking->link, options->address, status);
    atomic_store(&asking->alone, false);
    return result ? result
                  : bench_control_create(asking->link.connection, asking->link.peer, 1, &asking->control, status);
}

int bench_asking_hello(struct bench_asking *asking, const char *command, json_t *hello, json_t **answer,
                       struct wf_status *status)
{
    bench_control_expect_within(asking->control, asking->link.connect_timeout_ms);
    int result = bench_control_say(asking->control, hello, status);
    json_decref(hello);
    if (result == 0)
        result = bench_control_hear(asking->control, answer, status);
    if (result == 0)
        result = bench_same_command(*answer, command, 1, status);
    bench_control_expect_within(asking->control, -1);
    return result;
}

/* The first reason is the one to be told. */
static int break_off(struct bench_asking *asking, int result, struct wf_status *status)
{
    if (result && !asking->broken.code)
        asking->broken = *status;
    if (asking->broken.code)
        *status = asking->broken;
    return asking->broken.code;
}

int bench_asking_check(struct bench_asking *asking, struct wf_status *status)
{
    return asking->control ? break_off(asking, bench_control_check(asking->control, status), status) : 0;
}

int bench_asking_ask(struct bench_asking *asking, json_t *question, json_t **answer, struct wf_status *status)
{
    int result = bench_control_say(asking->control, question, status);

    json_decref(question);
    json_decref(*answer);
    *answer = NULL;
    if (result == 0)
        result = bench_control_hear(asking->control, answer, status);
    if (break_off(asking, result, status))
        return status->code;
    const char *error = json_string_value(json_object_get(*answer, "error"));
    if (!error)
        return 0;
    return wf_fail(status, json_is_true(json_object_get(*answer, "port_taken")) ? -EADDRINUSE : -ECHILD, "node0: %s",
                   error);
}

void bench_asking_close(struct bench_asking *asking, const char *failed)
{
    struct wf_status ignored;
    json_t *bye = json_pack("{s:b}", "bye", 1);

    if (asking->control && failed)
        bench_control_abort(asking->control, failed, BENCH_FAILED, 0);
    else if (asking->control && asking->link.node == 1)
        bench_control_say(asking->control, bye, &ignored);
    json_decref(bye);
    bench_link_close(&asking->link);
    bench_control_destroy(asking->control);
    asking->control = NULL;
}

/* --- node0 --- */

int bench_asking_await(struct bench_asking *asking, const struct bench_options *options, const char *runs, int *port,
                       struct wf_status *status)
{
    char address[280];
    int result = bench_link_open(&asking->link, 0, options->config, NULL, status);

    if (options->address[0])
        snprintf(address, sizeof address, "%s", options->address);
    else
        snprintf(address, sizeof address, "%d", (int)wf_config_number(options->config, WF_SET_PORT));
    if (result == 0)
        result = bench_link_listen(&asking->link, address, port, status);
    if (result)
        return result;
    bench_key_warn(asking->link.context, options, address, *port);
    if (!bench_quiet(options->config)) {
        printf("node0 waits on port %d, and runs %s; on the other node:\n"
               "  weft %s --connect ADDRESS:%d\n",
               *port, runs, bench_command_name(options->command), *port);
        fflush(stdout);
    }
    result = bench_link_accept(&asking->link, true, NULL, NULL, status);
    if (result == 0)
        result = bench_control_create(asking->link.connection, asking->link.peer, 0, &asking->control, status);
    return result;
}

int bench_asking_serve(struct bench_asking *asking, const char *command, bench_answer *answer_to, void *context,
                       struct wf_status *status)
{
    bool over = false;
    int result = 0;

    while (result == 0 && !over) {
        json_t *question = NULL, *answer = NULL;
        result = bench_control_hear(asking->control, &question, status);
        if (result == 0)
            result = bench_same_command(question, command, 0, status);
        over = result == 0 && json_object_get(question, "bye");
        if (result == 0 && !over)
            answer = answer_to(context, question);
        if (result == 0 && !over && !answer)
            answer = json_pack("{s:o}", "error",
                               json_sprintf("this is no question of weft %s: use the same build on both", command));
        if (answer)
            result = bench_control_say(asking->control, answer, status);
        json_decref(question);
        json_decref(answer);
    }
    return result;
}

json_t *bench_asking_refuse(const struct wf_status *status)
{
    return json_pack("{s:s, s:b}", "error", status->text, "port_taken", status->code == -EADDRINUSE);
}
