/* A card that leads no single stream to a queue, but all that come to an address and port: with a kernel that is
 * played. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "devmem/lend.h"
#include "lease_fixture.h"

static int start(void **state)
{
    int result = lease_start(state);

    fake.by_port = true;
    return result;
}

static void open_lease(void)
{
    must(wf_lease_open(&place, FAKE_NAME, 0, 0, &lease, &status));
}

static void it_is_found_out_when_the_queue_is_lent(void **state)
{
    (void)state;
    open_lease();
    assert_true(wf_lease_by_port(lease));
    assert_int_equal(rules(), 0);
    wf_lease_close(lease);
    lease = NULL;
    fake.by_port = false;
    open_lease();
    assert_false(wf_lease_by_port(lease));
    assert_int_equal(rules(), 0);
}

/* What a card says of a rule for another reason tells nothing of the kinds of rules that it takes. */
static void no_other_refusal_means_it(void **state)
{
    static const int refusals[] = {-ENOSPC, -EBUSY, -EOPNOTSUPP};

    (void)state;
    fake.by_port = false;
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        fake.ioctl_command = ETHTOOL_SRXCLSRLINS;
        fake.ioctl_result = refusals[i]; /* of rules of any kind */
        open_lease();
        fake.ioctl_command = 0;
        assert_false(wf_lease_by_port(lease));
        wf_lease_close(lease);
        lease = NULL;
    }
}

static void streams_of_one_port_have_one_rule(void **state)
{
    uint32_t rule[LEASE_STREAMS];
    struct sockaddr_in at;
    socklen_t length = sizeof at;

    (void)state;
    open_lease();
    for (int i = 0; i < LEASE_STREAMS; i++)
        must(wf_lease_steer(lease, streams[i], &rule[i], &status));
    assert_int_equal(rules(), 1);
    getsockname(streams[0], (struct sockaddr *)&at, &length);
    assert_int_equal(fake.rules[0].h_u.tcp_ip4_spec.pdst, at.sin_port);
    assert_int_equal(fake.rules[0].m_u.tcp_ip4_spec.psrc, 0);
    assert_int_equal(fake.rules[0].m_u.tcp_ip4_spec.ip4src, 0);
    for (int i = 0; i < LEASE_STREAMS; i++) {
        assert_int_equal(rules(), 1);
        must(wf_lease_unsteer(lease, rule[i], &status));
    }
    assert_int_equal(rules(), 0);
    assert_int_equal(wf_lease_unsteer(lease, rule[0], &status), -ENOENT);
}

static void streams_of_several_ports_have_one_each(void **state)
{
    uint32_t rule;

    (void)state;
    open_lease();
    for (int i = 0; i < LEASE_STREAMS; i++)
        must(wf_lease_steer(lease, callers[i], &rule, &status));
    assert_int_equal(rules(), LEASE_STREAMS);
    wf_lease_close(lease);
    lease = NULL;
    assert_int_equal(rules(), 0);
}

/* The record says that the rule is for any sender. */
static void what_a_dead_process_left_is_taken_away(void **state)
{
    struct wf_lent_folder held;
    struct wf_devmem *devmem;
    uint32_t rule;

    (void)state;
    open_lease();
    must(wf_lease_steer(lease, streams[0], &rule, &status));
    assert_int_equal(rules(), 1);
    fake.binding[wf_lease_queue(lease)] = 0; /* as when its process ends */
    must(wf_devmem_open(&fake.kernel, &devmem, &status));
    must(wf_lent_hold(folder, &held, &status));
    assert_int_equal(wf_lent_sweep(devmem, held.folder, &status), 1);
    wf_lent_let_go(&held);
    wf_devmem_close(devmem);
    assert_int_equal(rules(), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, start, lease_end)
    const struct CMUnitTest tests[] = {
        TEST(it_is_found_out_when_the_queue_is_lent), TEST(no_other_refusal_means_it),
        TEST(streams_of_one_port_have_one_rule),      TEST(streams_of_several_ports_have_one_each),
        TEST(what_a_dead_process_left_is_taken_away),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
