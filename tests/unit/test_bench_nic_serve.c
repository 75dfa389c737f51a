/* weft nic serve: what a client gets, what it is refused, and what is left when it goes, with a kernel that is played.
 * The helper's side of a connection is a child process, as in the command. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/nic/serve.h"
#include "devmem/helper.h"
#include "devmem/lease.h"
#include "devmem_fixture.h"

static const char *const cards[] = {FAKE_NAME};
static struct fake_kernel *fake; /* shared with the helper */
static struct serve_desk desk;
static char folder[64];
static int client, stream[2];
static pid_t helper;
static struct wf_helper_request request;
static struct wf_helper_reply reply;
static struct wf_status status;

static void join_stream(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM, 0);

    stream[0] = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &length), 0);
    assert_int_equal(connect(stream[0], (struct sockaddr *)&at, sizeof at), 0);
    stream[1] = accept(listener, NULL, NULL);
    close(listener);
}

static int start(void **state)
{
    static const struct wf_lent_holder holder = {.user = 1000, .process = 5, .command = "client"};
    int ends[2];

    (void)state;
    fake = mmap(NULL, sizeof *fake, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    strcpy(folder, "/tmp/weft-serve.XXXXXX");
    if (fake == MAP_FAILED || !mkdtemp(folder) || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return -1;
    fake_kernel_init(fake);
    fake->keeps_bindings = true;
    for (int i = 0; i < FAKE_RSS; i++)
        fake->rss[i] = (uint32_t)i % 2;
    join_stream();
    desk = (struct serve_desk){
        .kernel = &fake->kernel, .folder = folder, .cards = cards, .card_count = 1, .log = fopen("/dev/null", "w")};
    client = ends[0];
    helper = fork();
    if (helper == 0) {
        close(ends[0]);
        serve_client(&desk, ends[1], &holder);
        _exit(0);
    }
    close(ends[1]);
    request = (struct wf_helper_request){.version = WF_HELPER_VERSION, .network = wf_helper_network()};
    strcpy(request.card, FAKE_NAME);
    return 0;
}

/* The end of the connection, after which the helper's process has to end by itself, with nothing left open. */
static void leave(void)
{
    int ended;

    close(client);
    client = -1;
    assert_int_equal(waitpid(helper, &ended, 0), helper);
    assert_true(WIFEXITED(ended) && WEXITSTATUS(ended) == 0);
    helper = 0;
    assert_int_equal(fake->opened, 0);
}

static int end(void **state)
{
    char command[96];

    (void)state;
    if (helper)
        leave();
    fclose(desk.log);
    close(stream[0]);
    close(stream[1]);
    munmap(fake, sizeof *fake);
    snprintf(command, sizeof command, "rm -r -- '%s'", folder);
    return system(command);
}

/* Returns the result that came, or -EPIPE where the helper has ended the conversation. */
static int ask(enum wf_helper_verb verb, int descriptor, int *received)
{
    int none = -1;

    request.verb = verb;
    request.number++;
    if (wf_helper_send(client, &request, sizeof request, descriptor) != 0)
        return -EPIPE;
    ssize_t bytes = wf_helper_receive(client, &reply, sizeof reply, received ? received : &none);
    assert_int_equal(none, -1);
    if (bytes != (ssize_t)sizeof reply)
        return -EPIPE;
    assert_int_equal(reply.version, WF_HELPER_VERSION);
    assert_int_equal(reply.number, request.number);
    return reply.result;
}

static void expect(int expected, const char *words, int result)
{
    if (result != expected || !strstr(reply.words, words))
        fail_msg("%d instead of %d with '%s': %s", result, expected, words, reply.words);
}

static int rules(void)
{
    int count = 0;

    for (uint32_t i = 0; i < FAKE_RULES; i++)
        count += fake->used[i];
    return count;
}

static void lease(void)
{
    int binding = -1;

    expect(0, "", ask(WF_HELPER_LEASE, 0, &binding));
    assert_true(binding >= 0);
    assert_int_equal(fcntl(binding, F_GETFD), FD_CLOEXEC);
    close(binding);
}

/* --- what it is for --- */

static void a_client_gets_a_queue_and_rules(void **state)
{
    (void)state;
    lease();
    assert_int_equal(reply.queue, 2);
    assert_int_equal(fake->binding[2], reply.binding);
    expect(0, "", ask(WF_HELPER_STEER, stream[1], NULL));
    assert_int_equal(rules(), 1);
    assert_int_equal(fake->rules[0].ring_cookie, 2);
    request.rule = reply.rule;
    expect(0, "", ask(WF_HELPER_UNSTEER, -1, NULL));
    assert_int_equal(rules(), 0);
}

/* It has to know, for then it takes such streams at a port of their own. */
static void a_client_is_told_that_rules_are_for_ports(void **state)
{
    (void)state;
    fake->by_port = true;
    lease();
    assert_int_equal(reply.by_port, 1);
    for (int i = 0; i < 2; i++) {
        expect(0, "", ask(WF_HELPER_STEER, stream[1], NULL));
        assert_int_equal(rules(), 1);
    }
    leave();
    assert_int_equal(rules(), 0);
}

static void its_rules_go_when_it_goes(void **state)
{
    (void)state;
    lease();
    expect(0, "", ask(WF_HELPER_STEER, stream[0], NULL));
    expect(0, "", ask(WF_HELPER_STEER, stream[1], NULL));
    assert_int_equal(rules(), 2);
    fake->binding[2] = 0; /* its netlink socket is closed, too */
    leave();
    assert_int_equal(rules(), 0);
    assert_int_equal(access(folder, F_OK), 0);
    char left[128];
    snprintf(left, sizeof left, "test -z \"$(ls '%s')\"", folder);
    assert_int_equal(system(left), 0);
}

static int count(struct wf_lent *lent, void *data)
{
    *(int *)data += lent->holder.user == 1000 && lent->holder.process == 5 && lent->queue == 2;
    return 0;
}

static void a_queue_that_it_keeps_stays_on_record(void **state)
{
    struct wf_lent_folder held;
    int kept = 0;

    (void)state;
    lease();
    expect(0, "", ask(WF_HELPER_STEER, stream[0], NULL));
    leave();
    assert_int_equal(rules(), 0);
    assert_int_equal(wf_lent_look(folder, &held, &status), 0);
    wf_lent_each(held.folder, count, &kept);
    wf_lent_let_go(&held);
    assert_int_equal(kept, 1);
}

/* --- what it is refused --- */

static void requests_in_the_wrong_order(void **state)
{
    (void)state;
    expect(-EINVAL, "to lend the queue", ask(WF_HELPER_STEER, stream[0], NULL));
    expect(-EINVAL, "to lend the queue", ask(WF_HELPER_UNSTEER, -1, NULL));
    expect(-EINVAL, "a dma-buf", ask(WF_HELPER_LEASE, -1, NULL));
    expect(-EINVAL, "no request 77", ask(77, 0, NULL));
    lease();
    expect(-EINVAL, "has queue 2", ask(WF_HELPER_LEASE, 0, NULL));
    expect(-EINVAL, "the stream's socket", ask(WF_HELPER_STEER, -1, NULL));
    assert_int_equal(rules(), 0);
}

static void cards_that_are_not_served(void **state)
{
    (void)state;
    strcpy(request.card, "eth8");
    expect(-EACCES, "started for other cards", ask(WF_HELPER_LEASE, 0, NULL));
    memset(request.card, 'x', sizeof request.card);
    expect(-EINVAL, "the name of a card", ask(WF_HELPER_LEASE, 0, NULL));
    strcpy(request.card, FAKE_NAME);
    request.network++;
    expect(-ENODEV, "another network namespace", ask(WF_HELPER_LEASE, 0, NULL));
    request.network--;
    fake->ntuple = false;
    expect(-EOPNOTSUPP, "eth7: rules that lead flows to queues are off", ask(WF_HELPER_LEASE, 0, NULL));
    assert_int_equal(fake->writes, 0);
}

static void streams_that_are_not_its_own(void **state)
{
    int pair[2], idle = socket(AF_INET, SOCK_STREAM, 0);

    (void)state;
    lease();
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    expect(-EINVAL, "no TCP socket", ask(WF_HELPER_STEER, pair[0], NULL));
    expect(-ENOTCONN, "not connected", ask(WF_HELPER_STEER, idle, NULL));
    request.rule = UINT32_MAX;
    expect(-ENOENT, "no rule with the number", ask(WF_HELPER_UNSTEER, -1, NULL));
    assert_int_equal(rules(), 0);
    close(pair[0]);
    close(pair[1]);
    close(idle);
}

static void more_rules_than_a_queue_may_have(void **state)
{
    (void)state;
    lease();
    for (int i = 0; i < WF_LENT_RULES_MAX; i++) {
        fake->used[0] = false;
        expect(0, "", ask(WF_HELPER_STEER, stream[1], NULL));
    }
    expect(-ENOSPC, "may have no more", ask(WF_HELPER_STEER, stream[1], NULL));
}

static void more_queues_than_a_user_may_have(void **state)
{
    struct wf_lent *lent = calloc(1, sizeof *lent);
    struct wf_lent_folder held;

    (void)state;
    assert_int_equal(wf_lent_hold(folder, &held, &status), 0);
    fake->down = true; /* nothing is told of bindings, so all records count */
    for (uint32_t i = 0; i < SERVE_EACH_MAX; i++) {
        *lent = (struct wf_lent){.ifindex = FAKE_INDEX, .queue = 10 + i, .binding = 1, .holder.user = 1000};
        strcpy(lent->holder.command, "hog");
        assert_int_equal(wf_lent_write(held.folder, lent, &status), 0);
    }
    wf_lent_let_go(&held);
    free(lent);
    expect(-EDQUOT, "user 1000 has 16 queues already", ask(WF_HELPER_LEASE, 0, NULL));
}

static void another_version_ends_the_conversation(void **state)
{
    (void)state;
    request.version = WF_HELPER_VERSION + 1;
    expect(-EPROTO, "asked as one of version 4", ask(WF_HELPER_LEASE, 0, NULL));
    assert_int_equal(ask(WF_HELPER_LEASE, 0, NULL), -EPIPE);
}

static void garbage_ends_the_conversation(void **state)
{
    char bytes[2 * sizeof request] = "GET / HTTP/1.1";

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        static const size_t sizes[] = {1, sizeof request - 1, sizeof bytes};
        if (i) {
            end(NULL);
            assert_int_equal(start(NULL), 0);
        }
        assert_int_equal(wf_helper_send(client, bytes, sizes[i], 0), 0);
        assert_int_equal(ask(WF_HELPER_LEASE, 0, NULL), -EPIPE);
    }
}

/* --- a client that is one --- */

/* A helper with room for one client, as the command makes it. */
static pid_t start_helper(void)
{
    struct wf_helper_reply greeting = {.version = WF_HELPER_VERSION};
    static const struct wf_lent_holder holder = {.user = 1000, .process = 5, .command = "client"};
    int listener = serve_open(folder, &status);
    pid_t made = fork();

    assert_true(listener >= 0);
    if (made == 0) {
        struct pollfd seen = {.fd = listener, .events = POLLIN};
        poll(&seen, 1, -1);
        int socket = accept(listener, NULL, NULL);
        close(listener);
        wf_helper_send(socket, &greeting, sizeof greeting, -1);
        serve_client(&desk, socket, &holder);
        _exit(0);
    }
    close(listener);
    return made;
}

static void a_process_without_the_right_asks_the_helper(void **state)
{
    struct fake_kernel own;
    const struct wf_lease_place place = {.kernel = &own.kernel, .folder = folder};
    struct wf_lease *made, *second;
    uint32_t rule, other;
    int ended;

    (void)state;
    fake_kernel_init(&own);
    memcpy(own.rss, fake->rss, sizeof own.rss);
    own.admin = false;
    fake->buffer_most = 8192;
    pid_t process = start_helper();
    if (wf_lease_open(&place, FAKE_NAME, 0, 8192, &made, &status) != 0)
        fail_msg("%s", status.text);
    assert_int_equal(wf_lease_queue(made), 2);
    assert_int_equal(fake->bound_buffer, 8192);
    assert_int_equal(wf_lease_binding(made), fake->binding[2]);
    assert_int_equal(wf_lease_steer(made, stream[1], &rule, &status), 0);
    assert_int_equal(wf_lease_steer(made, stream[0], &other, &status), 0);
    assert_int_equal(wf_lease_unsteer(made, rule, &status), 0);
    assert_int_equal(wf_lease_unsteer(made, rule, &status), -ENOENT);
    assert_non_null(strstr(status.text, "no rule with the number"));
    assert_int_equal(wf_lease_steer(made, 0, &rule, &status), -EINVAL);
    assert_int_equal(rules(), 1);
    kill(process, SIGKILL);
    waitpid(process, &ended, 0);
    assert_int_equal(wf_lease_unsteer(made, other, &status), -EPIPE);
    assert_non_null(strstr(status.text, "has ended"));
    assert_int_equal(wf_lease_open(&place, FAKE_NAME, 0, 0, &second, &status), -EPERM);
    assert_non_null(strstr(status.text, "no helper answers"));
    assert_int_equal(rules(), 1);
    wf_lease_close(made);
    fake->opened = 0; /* by the helper that was killed */
}

/* --- the door --- */

static void users_by_name_and_number(void **state)
{
    struct serve_desk read = {0};

    (void)state;
    assert_int_equal(serve_read_users("root,1000,4000000000", &read, &status), 0);
    assert_int_equal(read.user_count, 3);
    assert_true(read.users[0] == 0 && read.users[1] == 1000 && read.users[2] == 4000000000u);
    static const char *const wrong[] = {"", "1000,", "no-such-user", "-1", "4294967295", "12x", "99999999999999999999"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(serve_read_users(wrong[i], &read, &status), -EINVAL);
        assert_non_null(strstr(status.text, "there is no such user"));
    }
}

static void one_helper_at_a_time(void **state)
{
    char path[96], pid[32];

    (void)state;
    snprintf(path, sizeof path, "%s/" WF_HELPER_SOCKET, folder);
    snprintf(pid, sizeof pid, "process %d,", getpid());
    int first = serve_open(folder, &status);
    assert_true(first >= 0);
    assert_int_equal(serve_open(folder, &status), -EADDRINUSE);
    assert_non_null(strstr(status.text, pid));
    close(first); /* as one that was killed leaves it */
    assert_int_equal(access(path, F_OK), 0);
    first = serve_open(folder, &status);
    assert_true(first >= 0);
    int copy = dup(first); /* of a process that has just been made for a client */
    serve_close(folder, first);
    close(copy);
    assert_int_not_equal(access(path, F_OK), 0);
    close(open(path, O_CREAT | O_WRONLY, 0600));
    assert_int_equal(serve_open(folder, &status), -EEXIST);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, start, end)
    const struct CMUnitTest tests[] = {
        TEST(a_client_gets_a_queue_and_rules),  TEST(a_client_is_told_that_rules_are_for_ports),
        TEST(its_rules_go_when_it_goes),        TEST(a_queue_that_it_keeps_stays_on_record),
        TEST(requests_in_the_wrong_order),      TEST(cards_that_are_not_served),
        TEST(streams_that_are_not_its_own),     TEST(more_rules_than_a_queue_may_have),
        TEST(more_queues_than_a_user_may_have), TEST(another_version_ends_the_conversation),
        TEST(garbage_ends_the_conversation),    TEST(a_process_without_the_right_asks_the_helper),
        TEST(users_by_name_and_number),         TEST(one_helper_at_a_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
