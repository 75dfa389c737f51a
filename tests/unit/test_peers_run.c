/*
 * The runner against tools that misbehave: small shell scripts, and this program itself as a server that listens. After
 * each run nothing of it is left, whatever it did.
 */
#include "peers_fixture.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "peers/listening.h"
#include "peers/run.h"

#define LONG_MS 60000 /* no test waits for it */
#define SHORT_MS 300

/* ------------------------------------------------------------------------------------------- this program as a tool */

static struct sockaddr_in local(int port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

/* Listens, says whom it has served, and ends with `status`; never when that is negative. */
static int be_server(int port, int status)
{
    struct sockaddr_in address = local(port);
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1, client;

    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0 || listen(fd, 1) != 0)
        return 9;
    client = accept(fd, NULL, NULL);
    printf("served %d\n", client >= 0);
    fflush(stdout);
    while (status < 0)
        pause();
    return status;
}

static int be_client(int port)
{
    struct sockaddr_in address = local(port);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    char byte;

    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0)
        return 8;
    printf("connected\n");
    return read(fd, &byte, 1) == 0 ? 0 : 7;
}

/* ------------------------------------------------------------------------------------------- a run */

struct scene {
    struct peer_commands commands;
    struct peer_run run;
    struct peer_outcome outcome;
    struct wf_status status;
};

static void set_scene(struct scene *scene, int timeout_ms)
{
    memset(scene, 0, sizeof(*scene));
    scene->run = (struct peer_run){.commands = &scene->commands, .timeout_ms = timeout_ms};
    scene->run.port = peer_free_port(&scene->status);
    assert_true(scene->run.port > 0);
}

static void script(struct peer_command *command, const char *text)
{
    peer_word(command, "sh");
    peer_word(command, "-c");
    assert_int_equal(peer_word(command, "%s", text), 0);
}

/* This program: "listen PORT STATUS", "connect PORT". */
static void ourselves(struct peer_command *command, const char *part, int port, int status)
{
    peer_word(command, "/proc/self/exe");
    peer_word(command, "%s", part);
    peer_word(command, "%d", port);
    assert_int_equal(peer_word(command, "%d", status), 0);
}

static int run(struct scene *scene)
{
    return peer_run(&scene->run, &scene->outcome, &scene->status);
}

static void expect(const struct scene *scene, int rc, int code, const char *said)
{
    if (rc != code || !strstr(scene->status.text, said))
        fail_msg("%d '%s' instead of %d '%s'", rc, scene->status.text, code, said);
}

static bool lives(pid_t pid)
{
    return kill(pid, 0) == 0;
}

/* The process ids that the client printed: each has gone. */
static int gone(const char *text)
{
    int count = 0;

    for (const char *at = text; at && *at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL) {
        pid_t pid = (pid_t)atoi(at);
        assert_true(pid > 1);
        assert_false(lives(pid));
        count++;
    }
    return count;
}

/* ------------------------------------------------------------------------------------------- what works */

static void both_sides_are_heard(void **state)
{
    struct scene scene;

    (void)state;
    set_scene(&scene, LONG_MS);
    ourselves(&scene.commands.server, "listen", scene.run.port, 0);
    ourselves(&scene.commands.client, "connect", scene.run.port, 0);
    assert_int_equal(run(&scene), 0);
    assert_string_equal(scene.outcome.server.text, "served 1\n");
    assert_string_equal(scene.outcome.client.text, "connected\n");
    assert_true(scene.outcome.server.cpu_s >= 0 && scene.outcome.client.elapsed_s > 0);
    peer_outcome_fini(&scene.outcome);
    assert_false(peer_listening(scene.run.port));
}

/* Nobody but the client ever connects: a server that serves one is not spent on a probe. */
static void a_client_alone_needs_no_server(void **state)
{
    struct scene scene;

    (void)state;
    set_scene(&scene, LONG_MS);
    script(&scene.commands.client, "echo fine");
    assert_int_equal(run(&scene), 0);
    assert_string_equal(scene.outcome.client.text, "fine\n");
    assert_null(scene.outcome.server.text);
    peer_outcome_fini(&scene.outcome);
}

/* Of the program and of what it started and waited for; the wall clock has no part in it. */
static void processor_time_is_counted(void **state)
{
    struct scene scene;

    (void)state;
    set_scene(&scene, LONG_MS);
    ourselves(&scene.commands.client, "burn", 0, 0);
    assert_int_equal(run(&scene), 0);
    assert_true(scene.outcome.client.cpu_s >= 0.1);
    peer_outcome_fini(&scene.outcome);
    set_scene(&scene, LONG_MS);
    script(&scene.commands.client, "sleep 0.2");
    assert_int_equal(run(&scene), 0);
    assert_true(scene.outcome.client.elapsed_s >= 0.2);
    assert_true(scene.outcome.client.cpu_s < scene.outcome.client.elapsed_s);
    peer_outcome_fini(&scene.outcome);
}

static void settings_arrive_and_ours_do_not(void **state)
{
    struct scene scene;

    (void)state;
    setenv("WEFT_CHUNK", "1M", 1);
    setenv("PEER_COLOUR", "red", 1);
    set_scene(&scene, LONG_MS);
    peer_setting(&scene.commands.client, "PEER_COLOUR=blue");
    script(&scene.commands.client, "env | grep -E '^(WEFT_CHUNK|PEER_COLOUR)='");
    assert_int_equal(run(&scene), 0);
    assert_string_equal(scene.outcome.client.text, "PEER_COLOUR=blue\n");
    peer_outcome_fini(&scene.outcome);
    unsetenv("WEFT_CHUNK");
}

static void a_server_that_stays_is_ended(void **state)
{
    struct scene scene;

    (void)state;
    set_scene(&scene, LONG_MS);
    ourselves(&scene.commands.server, "listen", scene.run.port, -1);
    script(&scene.commands.client, "echo done");
    assert_int_equal(run(&scene), 0);
    assert_string_equal(scene.outcome.client.text, "done\n");
    peer_outcome_fini(&scene.outcome);
    assert_false(peer_listening(scene.run.port));
}

/* ------------------------------------------------------------------------------------------- what does not */

static void a_tool_that_is_not_there(void **state)
{
    struct scene scene;

    (void)state;
    set_scene(&scene, LONG_MS);
    peer_word(&scene.commands.client, "/nowhere/tool");
    expect(&scene, run(&scene), -ECHILD, "cannot run /nowhere/tool: No such file or directory");
    peer_outcome_fini(&scene.outcome);
    set_scene(&scene, LONG_MS);
    peer_word(&scene.commands.server, "/nowhere/tool");
    script(&scene.commands.client, "exit 0");
    expect(&scene, run(&scene), -ECHILD, "cannot run /nowhere/tool");
    peer_outcome_fini(&scene.outcome);
}

static void the_last_line_tells_why(void **state)
{
    struct scene scene;

    (void)state;
    set_scene(&scene, LONG_MS);
    script(&scene.commands.client, "echo output; echo starting >&2; echo 'no such device' >&2; echo >&2; exit 3");
    expect(&scene, run(&scene), -ECHILD, "sh ended with status 3: no such device");
    peer_outcome_fini(&scene.outcome);
    set_scene(&scene, LONG_MS);
    script(&scene.commands.client, "echo '  said here'; echo '}'; exit 4");
    expect(&scene, run(&scene), -ECHILD, "status 4: said here");
    peer_outcome_fini(&scene.outcome);
    set_scene(&scene, LONG_MS);
    script(&scene.commands.client, "kill -SEGV $$");
    expect(&scene, run(&scene), -ECHILD, "ended by signal 11");
    peer_outcome_fini(&scene.outcome);
    set_scene(&scene, LONG_MS);
    script(&scene.commands.client, "echo 'said here'; echo '{\"rank\": 1}'; exit 5");
    expect(&scene, run(&scene), -ECHILD, "status 5: said here");
    peer_outcome_fini(&scene.outcome);
}

/* What its children do, also those that left its process group, ends with it. */
static void a_tool_that_hangs_is_ended_with_all_its_children(void **state)
{
    struct scene scene;

    (void)state;
    set_scene(&scene, SHORT_MS);
    script(&scene.commands.client, "trap '' TERM; echo $$; sleep 1000 & echo $!; setsid sleep 1000 & echo $!; wait");
    expect(&scene, run(&scene), -ETIMEDOUT, "sh had not ended");
    assert_int_equal(gone(scene.outcome.client_program.text), 3);
    peer_outcome_fini(&scene.outcome);
}

static void what_a_tool_leaves_behind_is_ended(void **state)
{
    struct scene scene;

    (void)state;
    set_scene(&scene, LONG_MS);
    script(&scene.commands.client, "setsid sleep 1000 & echo $!; sh -c 'sleep 1000 & echo $!'");
    assert_int_equal(run(&scene), 0);
    assert_int_equal(gone(scene.outcome.client.text), 2);
    peer_outcome_fini(&scene.outcome);
}

static void a_server_that_never_listens(void **state)
{
    struct scene scene;

    (void)state;
    set_scene(&scene, SHORT_MS);
    script(&scene.commands.server, "sleep 1000");
    script(&scene.commands.client, "exit 0");
    expect(&scene, run(&scene), -ETIMEDOUT, "sh does not listen on port");
    peer_outcome_fini(&scene.outcome);
    set_scene(&scene, LONG_MS);
    script(&scene.commands.server, "echo 'no address' >&2; exit 1");
    script(&scene.commands.client, "exit 0");
    expect(&scene, run(&scene), -ECHILD, "no address");
    peer_outcome_fini(&scene.outcome);
    set_scene(&scene, LONG_MS);
    script(&scene.commands.server, "exit 0");
    script(&scene.commands.client, "exit 0");
    expect(&scene, run(&scene), -ECHILD, "ended without listening");
    peer_outcome_fini(&scene.outcome);
}

static void a_server_that_dies_takes_its_client_along(void **state)
{
    struct scene scene;

    (void)state;
    set_scene(&scene, LONG_MS);
    ourselves(&scene.commands.server, "listen", scene.run.port, 5);
    ourselves(&scene.commands.client, "wait", scene.run.port, 0);
    expect(&scene, run(&scene), -ECHILD, "ended with status 5");
    peer_outcome_fini(&scene.outcome);
}

static void a_port_that_is_taken(void **state)
{
    struct sockaddr_in address = local(0);
    socklen_t length = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct scene scene;

    (void)state;
    assert_int_equal(bind(fd, (struct sockaddr *)&address, length), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &length), 0);
    assert_false(peer_listening(ntohs(address.sin_port)));
    assert_int_equal(listen(fd, 1), 0);
    assert_true(peer_listening(ntohs(address.sin_port)));
    set_scene(&scene, LONG_MS);
    scene.run.port = ntohs(address.sin_port);
    script(&scene.commands.server, "exit 0");
    expect(&scene, run(&scene), -EADDRINUSE, "is in use");
    peer_outcome_fini(&scene.outcome);
    close(fd);
}

/* A socket on a port that the kernel chose, or on `port`: which is returned. */
static int take_port(int port, int *fd)
{
    struct sockaddr_in address = local(port);
    socklen_t length = sizeof(address);

    *fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(*fd, (struct sockaddr *)&address, length), 0);
    assert_int_equal(getsockname(*fd, (struct sockaddr *)&address, &length), 0);
    assert_int_equal(listen(*fd, 1), 0);
    return ntohs(address.sin_port);
}

static void a_socket_is_somebodys(void **state)
{
    int fd, port = take_port(0, &fd);

    (void)state;
    assert_true(peer_listening_below(getpid(), port));
    assert_true(peer_listening_below(getppid(), port));
    pid_t other = fork();
    if (other == 0) {
        close(fd);
        for (;;)
            pause();
    }
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", other, fd);
    while (access(path, F_OK) == 0) /* until it has closed its copy */
        ;
    assert_false(peer_listening_below(other, port));
    kill(other, SIGKILL);
    waitpid(other, NULL, 0);
    close(fd);
    assert_false(peer_listening_below(getpid(), port));
}

/* Nothing listens on it: a connection has it for its own end. */
static void a_server_that_says_its_port_is_taken(void **state)
{
    static const char *const words[] = {"bind: Address already in use",
                                        "weft: cannot listen on 127.0.0.1:1: the port is in use; choose another"};
    struct scene scene;
    char text[120], error[120];

    (void)state;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        set_scene(&scene, LONG_MS);
        snprintf(text, sizeof text, "echo '%s' >&2; exit 1", words[i]);
        script(&scene.commands.server, text);
        script(&scene.commands.client, "exit 0");
        snprintf(error, sizeof error, "sh ended with status 1: %s", words[i]);
        expect(&scene, run(&scene), -EADDRINUSE, error);
        peer_outcome_fini(&scene.outcome);
    }
}

/* Somebody else listens on the port before the server does, which then gets the byte that it waits for, and ends. */
struct race {
    int port, fd, wake;
};

static int take_it_first(void *context, struct wf_status *status)
{
    struct race *race = context;

    (void)status;
    if (race->fd >= 0)
        return 0;
    take_port(race->port, &race->fd);
    assert_int_equal(write(race->wake, "", 1), 1);
    return 0;
}

/* No client is sent to whoever has it. */
static void a_port_that_is_taken_before_the_server_has_it(void **state)
{
    struct race race = {.fd = -1};
    struct scene scene;
    char text[80];
    int ends[2];

    (void)state;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    set_scene(&scene, LONG_MS);
    race.port = scene.run.port;
    race.wake = ends[1];
    scene.run.stop = take_it_first;
    scene.run.context = &race;
    snprintf(text, sizeof(text), "head -c 1 </proc/%d/fd/%d >/dev/null; echo 'no luck' >&2; exit 1", getpid(), ends[0]);
    script(&scene.commands.server, text);
    script(&scene.commands.client, "exit 0");
    expect(&scene, run(&scene), -EADDRINUSE, "sh ended with status 1: no luck");
    assert_null(scene.outcome.client_program.name);
    peer_outcome_fini(&scene.outcome);
    close(ends[0]);
    close(ends[1]);
    close(race.fd);
}

static void a_flood_is_bounded(void **state)
{
    struct scene scene;

    (void)state;
    set_scene(&scene, LONG_MS);
    script(&scene.commands.client, "head -c 20000000 /dev/zero | tr '\\0' x");
    expect(&scene, run(&scene), -EPROTO, "printed more than 16777216 bytes");
    assert_true(scene.outcome.client_program.used <= PEER_TEXT_MAX);
    peer_outcome_fini(&scene.outcome);
}

static int stop_at_once(void *context, struct wf_status *status)
{
    (void)context;
    return wf_fail(status, -EINTR, "enough");
}

static void a_run_can_be_stopped(void **state)
{
    struct scene scene;

    (void)state;
    set_scene(&scene, LONG_MS);
    scene.run.stop = stop_at_once;
    script(&scene.commands.client, "sleep 1000");
    expect(&scene, run(&scene), -EINTR, "enough");
    peer_outcome_fini(&scene.outcome);
}

/* ------------------------------------------------------------------------------------------- when we are killed */

/* Runs, in a process of its own, a tool that has children; they say who they are through `told`. */
static void run_until_killed(int told)
{
    struct scene scene;
    char text[160];

    set_scene(&scene, LONG_MS);
    snprintf(text, sizeof(text),
             "exec >/proc/%d/fd/%d; echo $$; sleep 1000 & echo $!; setsid sleep 1000 & echo $!; wait", getpid(), told);
    script(&scene.commands.client, text);
    run(&scene);
    _exit(0);
}

static void nothing_outlives_us(void **state)
{
    int ends[2];
    char text[128] = "", *at = text;
    pid_t pid;

    (void)state;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid = fork();
    if (pid == 0)
        run_until_killed(ends[1]);
    for (int lines = 0; lines < 3; lines += *at++ == '\n')
        assert_int_equal(read(ends[0], at, 1), 1);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    close(ends[1]);
    /* The pipe ends when the last process that has it does: until then nobody counts as gone. */
    while (read(ends[0], at, 1) > 0)
        ;
    assert_int_equal(gone(text), 3);
    close(ends[0]);
}

/* ------------------------------------------------------------------------------------------- ports */

/* A server that notes its port, and says of the first ones (as many as `unlucky`) that they are taken. */
static int unlucky;

static int unlucky_commands(const struct peer_case *asked, const struct peer_place *place, int index,
                            struct peer_commands *out)
{
    char self[256] = "";

    (void)asked;
    (void)index;
    assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
    peer_word(&out->server, "sh");
    peer_word(&out->server, "-c");
    peer_word(&out->server,
              "echo %d >>%s; [ $(wc -l <%s) -gt %d ] && exec '%s' listen %d 0; echo Address already in use; exit 1",
              place->port, trace_path, trace_path, unlucky, self, place->port);
    peer_word(&out->client, "sh");
    peer_word(&out->client, "-c");
    return peer_word(&out->client, "'%s' connect %d >&2 && echo 6", self, place->port);
}

static int read_number(const struct peer_case *asked, const struct peer_output *server,
                       const struct peer_output *client, struct peer_reading *out, struct wf_status *status)
{
    (void)server;
    return read_value(asked, NULL, client, out, status);
}

/* One round of the unlucky tool; how many ports it was given. */
static int ports_tried(int unlucky_ones, int port, char why[252])
{
    const struct peer_tool tool = {
        .name = "tool", .program = "sh", .variants = one_variant, .commands = unlucky_commands, .read = read_number};
    struct peers_plan plan = plan_of(&tool, 1);
    struct peers_result result;
    char text[256];
    int lines = 0;

    plan.place.port = port;
    unlucky = unlucky_ones;
    trace_rounds(&plan, &result, text, sizeof(text));
    for (const char *at = text; *at; at++)
        lines += *at == '\n';
    strcpy(why, result.blocks[0].rows[0].error);
    if (!why[0])
        assert_float_equal(result.blocks[0].rows[0].variants[0].rounds[0].gb_per_s, 6, 1e-9);
    peers_result_fini(&result);
    return lines;
}

static void another_port_is_tried(void **state)
{
    struct wf_status status = {0};
    char why[252];

    (void)state;
    assert_int_equal(ports_tried(0, 0, why), 1);
    assert_string_equal(why, "");
    assert_int_equal(ports_tried(2, 0, why), 3);
    assert_string_equal(why, "");
    assert_int_equal(ports_tried(1000, 0, why), 5); /* not for ever */
    assert_string_equal(why, "sh ended with status 1: Address already in use");
    assert_int_equal(ports_tried(1000, peer_free_port(&status), why), 1); /* the user's choice is the user's */
    assert_string_equal(why, "sh ended with status 1: Address already in use");
}

static int be_tool(int argc, char **argv)
{
    int port = argc > 2 ? atoi(argv[2]) : 0, status = argc > 3 ? atoi(argv[3]) : 0;

    if (strcmp(argv[1], "listen") == 0)
        return be_server(port, status);
    if (strcmp(argv[1], "connect") == 0)
        return be_client(port);
    if (strcmp(argv[1], "wait") == 0) {
        be_client(port);
        for (;;)
            pause();
    }
    while (clock() < CLOCKS_PER_SEC / 10) /* burn: processor time */
        ;
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_sides_are_heard),
        cmocka_unit_test(a_client_alone_needs_no_server),
        cmocka_unit_test(processor_time_is_counted),
        cmocka_unit_test(settings_arrive_and_ours_do_not),
        cmocka_unit_test(a_server_that_stays_is_ended),
        cmocka_unit_test(a_tool_that_is_not_there),
        cmocka_unit_test(the_last_line_tells_why),
        cmocka_unit_test(a_tool_that_hangs_is_ended_with_all_its_children),
        cmocka_unit_test(what_a_tool_leaves_behind_is_ended),
        cmocka_unit_test(a_server_that_never_listens),
        cmocka_unit_test(a_server_that_dies_takes_its_client_along),
        cmocka_unit_test(a_port_that_is_taken),
        cmocka_unit_test(a_socket_is_somebodys),
        cmocka_unit_test(a_server_that_says_its_port_is_taken),
        cmocka_unit_test(a_port_that_is_taken_before_the_server_has_it),
        cmocka_unit_test(a_flood_is_bounded),
        cmocka_unit_test(a_run_can_be_stopped),
        cmocka_unit_test(nothing_outlives_us),
        cmocka_unit_test(another_port_is_tried),
    };

    if (argc > 1)
        return be_tool(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
