#include "line.h"

#include <errno.h>
#include <string.h>

#include "bench/nodes/hello.h"

int bench_check_hello(const json_t *text, const char *own, int node, struct wf_status *status)
{
    const char *hello = json_string_value(json_object_get(text, "hello"));
    int result = bench_same_command(text, own, node, status);

    if (result || (hello && strcmp(hello, BENCH_HELLO) == 0))
        return result;
    return wf_fail(status, -EPROTO, "the other node speaks '%.40s', not " BENCH_HELLO ": use the same build on both",
                   hello ? hello : "nothing known");
}

static int say(struct bench_control *control, json_t *text, struct wf_status *status)
{
    int result = bench_control_say(control, text, status);

    json_decref(text);
    return result;
}

/* How many are before this client. */
static int hear_place(struct bench_control *control, const char *own, json_int_t *before, struct wf_status *status)
{
    json_t *text;
    int result = bench_control_hear(control, &text, status);

    if (result)
        return result;
    result = bench_check_hello(text, own, 1, status);
    const json_t *number = json_object_get(text, "before");
    if (result == 0 && (!json_is_integer(number) || json_integer_value(number) < 0))
        result = wf_fail(status, -EPROTO, "the server does not say whose turn it is: use the same build on both");
    if (result == 0)
        *before = json_integer_value(number);
    json_decref(text);
    return result;
}

int bench_line_wait(struct bench_control *control, const char *own, const char *address, FILE *news,
                    struct wf_status *status)
{
    json_int_t before = -1;
    int result = say(control, json_pack("{s:s, s:s}", "hello", BENCH_HELLO, "command", own), status);

    while (result == 0 && before != 0) {
        json_int_t told = before;
        result = hear_place(control, own, &before, status);
        if (result || before == 0)
            break;
        bench_control_expect_within(control, -1);
        if (news && before != told)
            fprintf(news, "the server at %s is busy with another run: you are number %lld in line\n", address,
                    (long long)before);
        if (news)
            fflush(news);
    }
    return result;
}

int bench_line_call(struct bench_control *control, const char *own, struct wf_status *status)
{
    json_t *text;
    int result = bench_control_hear(control, &text, status);

    if (result)
        return result;
    result = bench_check_hello(text, own, 0, status);
    json_decref(text);
    return result ? result : say(control, json_pack("{s:s, s:i}", "hello", BENCH_HELLO, "before", 0), status);
}
