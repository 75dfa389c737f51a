#include "answering.h"

#include <errno.h>
#include <stdio.h>

#include "bench/words/heard.h"
#include "hello.h"
#include "key_check.h"

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
        FILE *people = bench_people(options->config);
        fprintf(people,
                "node0 waits on port %d, and runs %s; on the other node:\n"
                "  weft %s --connect ADDRESS:%d\n",
                *port, runs, bench_command_name(options->command), *port);
        fflush(people);
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
    return json_pack("{s:o, s:b}", "error", bench_heard_string(status->text), "port_taken",
                     status->code == -EADDRINUSE);
}
