#include "asking.h"

#include <errno.h>

#include "hello.h"

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
