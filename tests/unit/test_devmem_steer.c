/* Rules that lead streams to queues, with a kernel that is played. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "devmem_fixture.h"

static struct fake_kernel fake;
static struct wf_devmem *devmem;
static struct wf_devmem_flow flow;
static struct wf_status status;
static uint32_t place;

static void set_address(struct sockaddr_storage *at, const char *text, uint16_t port)
{
    struct sockaddr_in *four = (struct sockaddr_in *)at;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)at;

    memset(at, 0, sizeof *at);
    if (strchr(text, ':')) {
        six->sin6_family = AF_INET6;
        six->sin6_port = htons(port);
        assert_int_equal(inet_pton(AF_INET6, text, &six->sin6_addr), 1);
    } else {
        four->sin_family = AF_INET;
        four->sin_port = htons(port);
        assert_int_equal(inet_pton(AF_INET, text, &four->sin_addr), 1);
    }
}

static int start(void **state)
{
    (void)state;
    fake_kernel_init(&fake);
    set_address(&flow.from, "10.0.0.1", 40000);
    set_address(&flow.to, "10.0.0.2", 18515);
    place = 99;
    return wf_devmem_open(&fake.kernel, &devmem, &status);
}

static int end(void **state)
{
    (void)state;
    wf_devmem_close(devmem);
    return fake.opened;
}

static int steer(uint32_t queue)
{
    return wf_devmem_steer(devmem, FAKE_NAME, &flow, queue, &place, &status);
}

static int unsteer(uint32_t queue)
{
    return wf_devmem_unsteer(devmem, FAKE_NAME, &flow, queue, place, &status);
}

static void a_stream_is_led_to_a_queue(void **state)
{
    const struct ethtool_rx_flow_spec *rule = &fake.rules[0];

    (void)state;
    assert_int_equal(steer(3), 0);
    assert_int_equal(place, 0);
    assert_int_equal(rule->flow_type, TCP_V4_FLOW);
    assert_int_equal(rule->ring_cookie, 3);
    assert_int_equal(rule->h_u.tcp_ip4_spec.ip4src, inet_addr("10.0.0.1"));
    assert_int_equal(rule->h_u.tcp_ip4_spec.ip4dst, inet_addr("10.0.0.2"));
    assert_int_equal(rule->h_u.tcp_ip4_spec.psrc, htons(40000));
    assert_int_equal(rule->h_u.tcp_ip4_spec.pdst, htons(18515));
    assert_int_equal(rule->m_u.tcp_ip4_spec.ip4src, UINT32_MAX);
    assert_int_equal(rule->m_u.tcp_ip4_spec.psrc, UINT16_MAX);
    assert_int_equal(rule->m_u.tcp_ip4_spec.tos, 0);
    assert_int_equal(unsteer(3), 0);
    assert_false(fake.used[0]);
}

static void any_sender_or_any_port(void **state)
{
    const struct ethtool_tcpip4_spec *mask = &fake.rules[0].m_u.tcp_ip4_spec;

    (void)state;
    set_address(&flow.from, "10.0.0.1", 0);
    assert_int_equal(steer(1), 0);
    assert_true(mask->ip4src == UINT32_MAX && mask->psrc == 0);
    assert_int_equal(unsteer(1), 0);
    memset(&flow.from, 0, sizeof flow.from);
    assert_int_equal(steer(1), 0);
    assert_true(mask->ip4src == 0 && mask->psrc == 0 && mask->ip4dst == UINT32_MAX && mask->pdst == UINT16_MAX);
}

static void ipv6_too(void **state)
{
    const struct ethtool_rx_flow_spec *rule = &fake.rules[0];

    (void)state;
    set_address(&flow.from, "fd00::1", 40000);
    assert_int_equal(steer(2), -EAFNOSUPPORT);
    set_address(&flow.to, "fd00::2", 18515);
    assert_int_equal(steer(2), 0);
    assert_int_equal(rule->flow_type, TCP_V6_FLOW);
    assert_memory_equal(rule->h_u.tcp_ip6_spec.ip6dst, &((struct sockaddr_in6 *)&flow.to)->sin6_addr, 16);
    assert_int_equal(rule->m_u.tcp_ip6_spec.ip6src[3], UINT32_MAX);
    assert_int_equal(unsteer(2), 0);
}

static void where_the_driver_finds_no_place_one_is_found(void **state)
{
    (void)state;
    fake.anywhere = false;
    fake.used[3] = fake.used[1] = true;
    assert_int_equal(steer(1), 0);
    assert_int_equal(place, 2);
    assert_int_equal(steer(1), 0);
    assert_int_equal(place, 0);
    assert_int_equal(steer(1), -ENOSPC);
    assert_int_equal(place, 0);
    assert_non_null(strstr(status.text, "full"));
    fake.used[1] = false;
    fake.size_told_late = true;
    assert_int_equal(steer(1), 0);
    assert_int_equal(place, 1);
}

static void a_full_table_is_told(void **state)
{
    (void)state;
    memset(fake.used, 1, sizeof fake.used);
    assert_int_equal(steer(1), -ENOSPC);
    assert_non_null(strstr(status.text, "its table of rules is full"));
    assert_int_equal(place, 99);
}

static void what_is_not_there_as_it_was_added_is_taken_away(void **state)
{
    (void)state;
    fake.crooked_rules = true;
    assert_int_equal(steer(1), -EIO);
    assert_false(fake.used[0]);
    fake.crooked_rules = false;
    fake.forgets_rules = true;
    assert_int_equal(steer(1), -EIO);
    assert_int_equal(place, 99);
}

static void the_rule_of_another_stays(void **state)
{
    (void)state;
    assert_int_equal(steer(1), 0);
    fake.rules[place].h_u.tcp_ip4_spec.pdst = htons(80);
    assert_int_equal(unsteer(1), -ENOENT);
    assert_true(fake.used[place]);
    fake.used[place] = false;
    assert_int_equal(unsteer(1), -ENOENT);
}

static void refusals_are_told(void **state)
{
    (void)state;
    fake.admin = false;
    assert_int_equal(steer(1), -EPERM);
    assert_non_null(strstr(status.text, "CAP_NET_ADMIN"));
    fake.ioctl_command = ETHTOOL_GRXCLSRLCNT;
    fake.ioctl_result = -EOPNOTSUPP;
    assert_int_equal(steer(1), -EOPNOTSUPP);
    assert_int_equal(wf_devmem_steer(devmem, "eth8", &flow, 1, &place, &status), -ENODEV);
    flow.to.ss_family = AF_UNIX;
    assert_int_equal(steer(1), -EAFNOSUPPORT);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, start, end)
    const struct CMUnitTest tests[] = {
        TEST(a_stream_is_led_to_a_queue),
        TEST(any_sender_or_any_port),
        TEST(ipv6_too),
        TEST(where_the_driver_finds_no_place_one_is_found),
        TEST(a_full_table_is_told),
        TEST(what_is_not_there_as_it_was_added_is_taken_away),
        TEST(the_rule_of_another_stays),
        TEST(refusals_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
