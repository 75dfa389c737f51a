/* Who gets a queue of a card and rules that lead to it, and what is left when a program ends, with a kernel that is
 * played. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "devmem/lend.h"
#include "lease_fixture.h"

static struct wf_devmem *devmem;

static int start(void **state)
{
    return lease_start(state) == 0 ? wf_devmem_open(&fake.kernel, &devmem, &status) : -1;
}

static int end(void **state)
{
    wf_devmem_close(devmem);
    return lease_end(state);
}

static void refuses(int expected, const char *words, int result)
{
    if (result != expected || !strstr(status.text, words))
        fail_msg("%d instead of %d with '%s': %s", result, expected, words, status.text);
}

static int open_lease(struct wf_lease **made)
{
    return wf_lease_open(&place, FAKE_NAME, 0, 0, made, &status);
}

static int see_any(struct wf_lent *lent, void *data)
{
    (void)lent;
    ++*(int *)data;
    return 0;
}

static int records(void)
{
    struct wf_lent_folder held;
    int count = 0;

    must(wf_lent_look(folder, &held, &status));
    must(wf_lent_each(held.folder, see_any, &count));
    wf_lent_let_go(&held);
    return count;
}

/* The end of a process that closes its sockets, and takes nothing away. */
static void die(struct wf_lease *of)
{
    fake.binding[wf_lease_queue(of)] = 0;
}

static int sweep(void)
{
    struct wf_lent_folder held;

    must(wf_lent_hold(folder, &held, &status));
    int result = wf_lent_sweep(devmem, held.folder, &status);
    wf_lent_let_go(&held);
    return result;
}

/* --- queues --- */

static void a_queue_that_is_set_aside_is_bound(void **state)
{
    struct wf_lease *second = NULL;

    (void)state;
    must(open_lease(&lease));
    must(open_lease(&second));
    assert_int_equal(wf_lease_queue(lease), 2);
    assert_int_equal(wf_lease_queue(second), 3);
    assert_int_equal(fake.binding[2], wf_lease_binding(lease));
    assert_int_not_equal(wf_lease_binding(lease), wf_lease_binding(second));
    assert_int_equal(records(), 2);
    wf_lease_close(second);
    assert_int_equal(records(), 1);
    assert_int_equal(fake.binding[3], 0);
    must(open_lease(&second));
    assert_int_equal(wf_lease_queue(second), 3);
    wf_lease_close(second);
}

/* A refusal takes nothing, and the same lease without them may be had. */
static void larger_buffers_are_had_or_refused(void **state)
{
    struct wf_lent *lent = calloc(1, sizeof *lent);
    struct wf_lent_folder held;

    (void)state;
    refuses(-ERANGE, "buffers of 16384 bytes: Unknown attribute type",
            wf_lease_open(&place, FAKE_NAME, 0, 16384, &lease, &status));
    assert_null(lease);
    assert_int_equal(fake.binding[2], 0);
    fake.words = NULL;
    must(open_lease(&lease));
    assert_int_equal(fake.bound_buffer, 0);
    wf_lease_close(lease);
    fake.buffer_most = 65536;
    must(wf_lease_open(&place, FAKE_NAME, 0, 16384, &lease, &status));
    assert_int_equal(fake.bound_buffer, 16384);
    must(wf_lent_look(folder, &held, &status));
    must(wf_lent_read(held.folder, FAKE_INDEX, 2, lent, &status));
    assert_int_equal(lent->buffer, 16384);
    wf_lent_let_go(&held);
    free(lent);
}

static void who_has_the_queues_is_told(void **state)
{
    char words[64];
    struct wf_lease *second = NULL;

    (void)state;
    must(open_lease(&lease));
    fake.binding[3] = 77;
    snprintf(words, sizeof words, "(process %d of user %u)", getpid(), geteuid());
    refuses(-EBUSY, words, open_lease(&second));
    assert_non_null(strstr(status.text, "eth7: of 2 queues that are set aside none is free: queue 2 by "));
    assert_non_null(strstr(status.text, "queue 3 by a program without a lease"));
    fake.binding[3] = 0;
}

static void one_that_another_takes_meanwhile_is_passed_over(void **state)
{
    (void)state;
    fake.contested = 2;
    must(open_lease(&lease));
    assert_int_equal(wf_lease_queue(lease), 3);
    struct wf_lease *second = NULL;
    refuses(-EBUSY, "eth7: none of the queues that are set aside can be bound: bind-rx of queue 2",
            open_lease(&second));
}

static void what_is_in_the_way_of_the_card_is_told_first(void **state)
{
    (void)state;
    fake.admin = false;
    fake.split = WF_DEVMEM_SPLIT_OFF;
    refuses(-EOPNOTSUPP, "eth7: header split is off: 'weft nic prepare eth7' as root", open_lease(&lease));
    lease_set_card();
    fake.opened = 1;
    for (int i = 0; i < FAKE_RSS; i++)
        fake.rss[i] = (uint32_t)i % 4;
    refuses(-EOPNOTSUPP, "other traffic reaches all its queues, none is set aside", open_lease(&lease));
    refuses(-ENODEV, "no interface 'eth8'", wf_lease_open(&place, "eth8", 0, 0, &lease, &status));
    assert_int_equal(fake.writes, 0);
}

static void without_right_and_helper_the_remedy_is_told(void **state)
{
    (void)state;
    fake.admin = false;
    refuses(-EPERM, "eth7: this process has no CAP_NET_ADMIN, and no helper answers at /tmp/weft-lease.",
            open_lease(&lease));
    assert_non_null(strstr(status.text, "'weft nic serve' as root"));
    assert_null(lease);
}

static void no_queue_without_a_record(void **state)
{
    (void)state;
    chmod(folder, 0777);
    refuses(-EACCES, "a folder of this user alone", open_lease(&lease));
    chmod(folder, 0700);
    for (int i = 0; i < FAKE_QUEUES; i++)
        assert_int_equal(fake.binding[i], 0);
}

/* --- rules --- */

static void a_stream_is_led_to_the_queue(void **state)
{
    uint32_t rule = 99;
    struct sockaddr_in at;
    socklen_t length = sizeof at;

    (void)state;
    must(open_lease(&lease));
    must(wf_lease_steer(lease, streams[0], &rule, &status));
    assert_int_equal(rules(), 1);
    assert_int_equal(fake.rules[0].ring_cookie, 2);
    getpeername(streams[0], (struct sockaddr *)&at, &length);
    assert_int_equal(fake.rules[0].h_u.tcp_ip4_spec.psrc, at.sin_port);
    assert_int_equal(fake.rules[0].h_u.tcp_ip4_spec.ip4dst, htonl(INADDR_LOOPBACK));
    must(wf_lease_unsteer(lease, rule, &status));
    assert_int_equal(rules(), 0);
    refuses(-ENOENT, "no rule with the number", wf_lease_unsteer(lease, rule, &status));
    refuses(-ENOENT, "no rule with the number", wf_lease_unsteer(lease, UINT32_MAX, &status));
}

static void all_rules_go_with_the_lease(void **state)
{
    uint32_t rule;

    (void)state;
    must(open_lease(&lease));
    must(wf_lease_steer(lease, callers[0], &rule, &status));
    must(wf_lease_steer(lease, streams[0], &rule, &status));
    assert_int_equal(rules(), 2);
    wf_lease_close(lease);
    lease = NULL;
    assert_int_equal(rules(), 0);
    assert_int_equal(records(), 0);
}

static void only_streams_of_ones_own(void **state)
{
    int pair[2], idle = socket(AF_INET, SOCK_STREAM, 0);
    uint32_t rule;

    (void)state;
    must(open_lease(&lease));
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    refuses(-EINVAL, "no TCP socket", wf_lease_steer(lease, pair[0], &rule, &status));
    refuses(-EINVAL, "no TCP socket", wf_lease_steer(lease, -1, &rule, &status));
    refuses(-ENOTCONN, "not connected", wf_lease_steer(lease, idle, &rule, &status));
    assert_int_equal(rules(), 0);
    close(pair[0]);
    close(pair[1]);
    close(idle);
}

static void not_those_of_another_network(void **state)
{
    struct wf_devmem_flow flow;
    int ended = 0;

    (void)state;
    assert_int_equal(wf_lend_flow(streams[0], &flow, &status), 0);
    pid_t child = fork();
    if (child == 0) {
        if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
            _exit(77);
        _exit(wf_lend_flow(streams[0], &flow, &status) != -EINVAL || !strstr(status.text, "another network"));
    }
    assert_int_equal(waitpid(child, &ended, 0), child);
    if (WEXITSTATUS(ended) == 77)
        skip();
    assert_int_equal(ended, 0);
}

/* The packets of such a stream are IPv4's. */
static void a_socket_for_both_kinds_of_addresses(void **state)
{
    struct sockaddr_in6 at = {.sin6_family = AF_INET6};
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof at;
    int listener = socket(AF_INET6, SOCK_STREAM, 0), off = 0, from = socket(AF_INET, SOCK_STREAM, 0);
    struct wf_devmem_flow flow;

    (void)state;
    if (listener < 0 || setsockopt(listener, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) != 0 ||
        bind(listener, (struct sockaddr *)&at, sizeof at) != 0)
        skip();
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &length), 0);
    to.sin_port = at.sin6_port;
    assert_int_equal(connect(from, (struct sockaddr *)&to, sizeof to), 0);
    int stream = accept(listener, NULL, NULL);
    must(wf_lend_flow(stream, &flow, &status));
    assert_int_equal(flow.to.ss_family, AF_INET);
    assert_memory_equal(&flow.to, &to, sizeof to);
    close(stream);
    close(from);
    close(listener);
}

static void a_rule_that_cannot_be_set_is_in_no_record(void **state)
{
    struct wf_lent *lent = calloc(1, sizeof *lent);
    struct wf_lent_folder held;
    uint32_t rule;

    (void)state;
    must(open_lease(&lease));
    fake.forgets_rules = true;
    assert_int_equal(wf_lease_steer(lease, streams[0], &rule, &status), -EIO);
    must(wf_lent_look(folder, &held, &status));
    must(wf_lent_read(held.folder, FAKE_INDEX, 2, lent, &status));
    assert_int_equal(wf_lent_count_rules(lent), 0);
    wf_lent_let_go(&held);
    free(lent);
}

/* --- what is left --- */

static void the_next_one_takes_away_what_was_left(void **state)
{
    struct wf_lease *next = NULL;
    uint32_t rule;

    (void)state;
    must(open_lease(&lease));
    must(wf_lease_steer(lease, streams[0], &rule, &status));
    assert_int_equal(sweep(), 0);
    assert_int_equal(rules(), 1);
    die(lease);
    must(open_lease(&next));
    assert_int_equal(rules(), 0);
    assert_int_equal(wf_lease_queue(next), 2);
    wf_lease_close(next);
}

static void a_queue_that_another_has_now_is_none_of_the_dead_ones(void **state)
{
    uint32_t rule;

    (void)state;
    must(open_lease(&lease));
    must(wf_lease_steer(lease, streams[0], &rule, &status));
    die(lease);
    fake.binding[2] = 55;
    assert_int_equal(sweep(), 1);
    assert_int_equal(rules(), 0);
    fake.binding[2] = 0;
}

static void of_a_card_that_is_down_nothing_is_taken(void **state)
{
    uint32_t rule;

    (void)state;
    must(open_lease(&lease));
    must(wf_lease_steer(lease, streams[0], &rule, &status));
    fake.down = true;
    assert_int_equal(sweep(), 0);
    assert_int_equal(rules(), 1);
    fake.down = false;
}

static void a_record_is_read_as_it_was_written(void **state)
{
    struct wf_lent *lent = calloc(2, sizeof *lent);
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)&lent->rules[63].to;
    struct wf_lent_folder held;

    (void)state;
    lent->ifindex = FAKE_INDEX;
    lent->queue = 5;
    lent->binding = 4000000000u;
    lent->holder = (struct wf_lent_holder){.user = 4000000000u, .process = 12, .command = "two words"};
    six->sin6_family = lent->rules[63].from.ss_family = AF_INET6;
    six->sin6_port = htons(18515);
    six->sin6_addr.s6_addr[15] = 1;
    must(wf_lent_hold(folder, &held, &status));
    must(wf_lent_write(held.folder, lent, &status));
    must(wf_lent_read(held.folder, FAKE_INDEX, 5, lent + 1, &status));
    assert_memory_equal(lent, lent + 1, sizeof *lent);
    wf_lent_remove(held.folder, FAKE_INDEX, 5);
    assert_int_equal(wf_lent_read(held.folder, FAKE_INDEX, 5, lent, &status), -ENOENT);
    wf_lent_let_go(&held);
    free(lent);
}

static void whatever_is_no_record_is_none(void **state)
{
    static const char *const texts[] = {
        "",
        "weft-lease 2\n",
        "weft-lease 1\ninterface 7 queue 2 binding 1\nholder 0 1 a\n",
        "weft-lease 1\ninterface 7 queue 2 binding 1\nholder 0 1 a\nrule 64 1.2.3.4 5 1.2.3.4 6\nend\n",
        "weft-lease 1\ninterface 7 queue 2 binding 1\nholder 0 1 a\nrule 1 1.2.3.4 5 1.2.3.4 66666\nend\n",
        "weft-lease 1\ninterface 7 queue 2 binding 1\nholder 0 1 a\nrule 1 1.2.3 5 1.2.3.4 6\nend\n",
        "weft-lease 1\ninterface 7 queue 3 binding 1\nholder 0 1 a\nend\n"};
    struct wf_lent *lent = calloc(1, sizeof *lent);
    struct wf_lent_folder held;
    char path[160];

    (void)state;
    snprintf(path, sizeof path, "/proc/self/ns/net");
    struct stat there;
    assert_int_equal(stat(path, &there), 0);
    snprintf(path, sizeof path, "%s/lease.%llu.7.2", folder, (unsigned long long)there.st_ino);
    must(wf_lent_hold(folder, &held, &status));
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        FILE *file = fopen(path, "w");
        fputs(texts[i], file);
        fclose(file);
        refuses(-EINVAL, "is no record", wf_lent_read(held.folder, FAKE_INDEX, 2, lent, &status));
        assert_int_equal(records(), 0);
    }
    wf_lent_let_go(&held);
    free(lent);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, start, end)
    const struct CMUnitTest tests[] = {
        TEST(a_queue_that_is_set_aside_is_bound),
        TEST(larger_buffers_are_had_or_refused),
        TEST(who_has_the_queues_is_told),
        TEST(one_that_another_takes_meanwhile_is_passed_over),
        TEST(what_is_in_the_way_of_the_card_is_told_first),
        TEST(without_right_and_helper_the_remedy_is_told),
        TEST(no_queue_without_a_record),
        TEST(a_stream_is_led_to_the_queue),
        TEST(all_rules_go_with_the_lease),
        TEST(only_streams_of_ones_own),
        TEST(not_those_of_another_network),
        TEST(a_socket_for_both_kinds_of_addresses),
        TEST(a_rule_that_cannot_be_set_is_in_no_record),
        TEST(the_next_one_takes_away_what_was_left),
        TEST(a_queue_that_another_has_now_is_none_of_the_dead_ones),
        TEST(of_a_card_that_is_down_nothing_is_taken),
        TEST(a_record_is_read_as_it_was_written),
        TEST(whatever_is_no_record_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
