#include "peers_fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NO_TRACE "/dev/null"

char trace_path[32] = NO_TRACE;

static void read_trace(char *text, size_t room)
{
    FILE *file = fopen(trace_path, "r");

    assert_non_null(file);
    text[fread(text, 1, room - 1, file)] = '\0';
    fclose(file);
}

void trace_rounds(const struct peers_plan *plan, struct peers_result *result, char *text, size_t room)
{
    struct wf_status status = {0};
    int fd;

    strcpy(trace_path, "/tmp/weft-peers-test.XXXXXX");
    fd = mkstemp(trace_path);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(peers_measure(plan, result, &status), 0);
    read_trace(text, room);
    unlink(trace_path);
    strcpy(trace_path, NO_TRACE);
}

struct peers_plan plan_of(const struct peer_tool *tool, int rounds)
{
    return (struct peers_plan){.place = {.folder = ".", .rails = {"127.0.0.1"}, .rail_count = 1, .one_machine = true},
                               .cases = {{PEER_BANDWIDTH, 1024, 8, 1, 1, 1}},
                               .case_count = 1,
                               .tools = {tool},
                               .tool_count = 1,
                               .rounds = rounds,
                               .seconds = 1,
                               .fixed_messages = true};
}

int echo(const char *name, int index, const char *value, struct peer_commands *out)
{
    peer_word(&out->client, "sh");
    peer_word(&out->client, "-c");
    return peer_word(&out->client, "echo %s%d >>%s; echo %s", name, index, trace_path, value);
}

int one_variant(const struct peer_case *asked, const struct peer_place *place, char why[200])
{
    (void)asked;
    (void)place;
    (void)why;
    return 1;
}

int read_value(const struct peer_case *asked, const struct peer_output *server, const struct peer_output *client,
               struct peer_reading *out, struct wf_status *status)
{
    (void)asked;
    (void)server;
    if (sscanf(client->text, "%lf", &out->gb_per_s) != 1)
        return wf_fail(status, -EPROTO, "no number in '%.40s'", client->text);
    return 0;
}
