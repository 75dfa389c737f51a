/* What the kernel says of interfaces and addresses: what is read, what concerns a rail, and when a rail can be used. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <linux/if.h>
#include <linux/rtnetlink.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/rail/address.h"
#include "core/rail/state.h"

#define RUNS (IFF_UP | IFF_RUNNING | IFF_LOWER_UP)

/* --- messages as the kernel makes them --- */

struct messages {
    alignas(8) uint8_t bytes[1024];
    size_t length;
};

static struct nlmsghdr *start(struct messages *messages, uint16_t type, const void *about, size_t size)
{
    struct nlmsghdr *message = (struct nlmsghdr *)(messages->bytes + messages->length);
    *message = (struct nlmsghdr){.nlmsg_type = type, .nlmsg_len = (uint32_t)NLMSG_SPACE(size)};
    memcpy(NLMSG_DATA(message), about, size);
    messages->length += message->nlmsg_len;
    return message;
}

static void attribute(struct messages *messages, struct nlmsghdr *message, uint16_t type, const void *data, size_t size)
{
    struct rtattr *one = (struct rtattr *)(messages->bytes + messages->length);
    *one = (struct rtattr){.rta_type = type, .rta_len = (uint16_t)RTA_LENGTH(size)};
    memcpy(RTA_DATA(one), data, size);
    message->nlmsg_len += (uint32_t)RTA_SPACE(size);
    messages->length += RTA_SPACE(size);
}

static void add_interface(struct messages *messages, uint16_t type, int index, uint32_t flags, const char *name)
{
    struct ifinfomsg about = {.ifi_index = index, .ifi_flags = flags};
    struct nlmsghdr *message = start(messages, type, &about, sizeof about);
    uint32_t mtu = 9000;
    if (name)
        attribute(messages, message, IFLA_IFNAME, name, strlen(name) + 1);
    attribute(messages, message, IFLA_MTU, &mtu, sizeof mtu);
}

static void add_bytes(struct messages *messages, struct nlmsghdr *message, uint16_t type, const char *text)
{
    uint8_t bytes[16];
    int family = strchr(text, ':') ? AF_INET6 : AF_INET;
    assert_int_equal(inet_pton(family, text, bytes), 1);
    attribute(messages, message, type, bytes, family == AF_INET ? 4 : 16);
}

/* `peer`: the address at the other end, or NULL. `turned`: the order of the attributes. */
static void add_address(struct messages *messages, uint16_t type, int index, uint32_t flags, const char *text,
                        int prefix, const char *peer, bool turned)
{
    bool six = strchr(text, ':');
    struct ifaddrmsg about = {.ifa_family = six ? AF_INET6 : AF_INET,
                              .ifa_index = (uint32_t)index,
                              .ifa_flags = (uint8_t)flags,
                              .ifa_prefixlen = (uint8_t)prefix};
    struct nlmsghdr *message = start(messages, type, &about, sizeof about);
    bool local = peer || !six;
    if (turned && local)
        add_bytes(messages, message, IFA_LOCAL, text);
    add_bytes(messages, message, IFA_ADDRESS, peer ? peer : text);
    if (!turned && local)
        add_bytes(messages, message, IFA_LOCAL, text);
    attribute(messages, message, IFA_FLAGS, &flags, sizeof flags);
}

static struct wf_rail rail_of(const char *device, uint32_t index, const char *address)
{
    struct wf_rail rail = {.index = index};
    char text[80];
    /* Link-local with any interface that is here: which one it is, the index says. */
    snprintf(text, sizeof text, "%s%s", address, strncmp(address, "fe80:", 5) == 0 ? "%lo" : "");
    assert_int_equal(wf_address_numeric(text, &rail.address), 0);
    wf_address_set_scope(&rail.address, index);
    snprintf(rail.device, sizeof rail.device, "%s", device);
    return rail;
}

/* --- reading --- */

static void test_interfaces_are_read(void **state)
{
    struct messages messages = {0};
    struct wf_interface got;

    (void)state;
    add_interface(&messages, RTM_NEWLINK, 7, RUNS, "eth0");
    assert_true(wf_interface_read((struct nlmsghdr *)messages.bytes, &got));
    assert_int_equal(got.index, 7);
    assert_int_equal(got.flags, RUNS);
    assert_string_equal(got.name, "eth0");

    messages.length = 0;
    add_interface(&messages, RTM_NEWLINK, 7, RUNS, NULL);
    assert_false(wf_interface_read((struct nlmsghdr *)messages.bytes, &got));
    messages.length = 0;
    add_interface(&messages, RTM_NEWROUTE, 7, RUNS, "eth0");
    assert_false(wf_interface_read((struct nlmsghdr *)messages.bytes, &got));
}

static void test_addresses_are_read(void **state)
{
    static const struct {
        const char *text, *peer;
        int prefix;
        uint32_t flags;
    } cases[] = {
        {"192.0.2.7", NULL, 24, IFA_F_PERMANENT},
        {"192.0.2.8", NULL, 24, IFA_F_SECONDARY},
        {"192.0.2.7", "192.0.2.9", 32, 0},
        {"2001:db8::7", NULL, 64, IFA_F_TENTATIVE},
        {"2001:db8::7", "2001:db8::9", 128, 0},
        {"2001:db8::7", NULL, 64, IFA_F_NOPREFIXROUTE}, /* does not fit into the eight bits of the fixed part */
        {"fe80::7", NULL, 64, 0},
    };

    (void)state;
    for (size_t i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
        struct messages messages = {0};
        struct wf_held got;
        struct wf_rail same = rail_of("eth0", 7, cases[i / 2].text);
        print_message("'%s', peer '%s'\n", cases[i / 2].text, cases[i / 2].peer ? cases[i / 2].peer : "");
        add_address(&messages, RTM_NEWADDR, 7, cases[i / 2].flags, cases[i / 2].text, cases[i / 2].prefix,
                    cases[i / 2].peer, i % 2);
        assert_true(wf_held_read((struct nlmsghdr *)messages.bytes, &got));
        assert_int_equal(got.index, 7);
        assert_int_equal(got.flags, cases[i / 2].flags);
        assert_int_equal(got.prefix, cases[i / 2].prefix);
        assert_true(wf_address_same_host(&got.address, &same.address));
    }
}

/* Whatever is missing at the end, nothing behind it is read, and it may be about any rail. */
static void test_cut_short(void **state)
{
    struct messages both[2] = {0};
    struct wf_rail rail = rail_of("eth0", 7, "192.0.2.7");
    struct wf_interface interface;
    struct wf_held held;

    (void)state;
    add_interface(&both[0], RTM_NEWLINK, 8, RUNS, "eth1");
    add_address(&both[1], RTM_NEWADDR, 8, 0, "192.0.2.8", 24, NULL, false);
    for (int i = 0; i < 2; i++) {
        assert_false(wf_rail_news(both[i].bytes, both[i].length, &rail, 1));
        for (size_t length = 1; length < both[i].length; length++) {
            void *cut = malloc(length); /* at its size: a sanitizer sees what is read behind it */
            assert_non_null(cut);
            memcpy(cut, both[i].bytes, length);
            assert_true(wf_rail_news(cut, length, &rail, 1));
            if (length >= sizeof(struct nlmsghdr)) {
                ((struct nlmsghdr *)cut)->nlmsg_len = (uint32_t)length;
                (void)wf_interface_read(cut, &interface);
                (void)wf_held_read(cut, &held);
            }
            free(cut);
        }
    }
    assert_false(wf_rail_news("", 0, &rail, 1));
}

static void test_news(void **state)
{
    static const struct {
        uint16_t type;
        int index;
        const char *name; /* of an interface; NULL: an address */
        bool concerns;
    } cases[] = {
        {RTM_NEWLINK, 7, "eth0", true},   {RTM_DELLINK, 7, "eth0", true}, {RTM_NEWLINK, 7, "other", true}, /* renamed */
        {RTM_NEWLINK, 12, "eth0", true}, /* made anew */
        {RTM_NEWLINK, 8, "eth01", false}, {RTM_DELLINK, 8, "eth", false}, {RTM_NEWADDR, 7, NULL, true},
        {RTM_DELADDR, 7, NULL, true},     {RTM_NEWADDR, 8, NULL, false},  {RTM_DELADDR, 8, NULL, false},
        {RTM_NEWROUTE, 7, "eth0", false}, {NLMSG_DONE, 7, "eth0", false},
    };
    struct wf_rail rails[] = {rail_of("eth5", 5, "192.0.2.5"), rail_of("eth0", 7, "192.0.2.7")};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct messages messages = {0};
        print_message("type %d, interface %d\n", cases[i].type, cases[i].index);
        add_interface(&messages, RTM_NEWLINK, 1, RUNS, "lo"); /* behind another that does not matter */
        if (cases[i].name)
            add_interface(&messages, cases[i].type, cases[i].index, RUNS, cases[i].name);
        else
            add_address(&messages, cases[i].type, cases[i].index, 0, "192.0.2.77", 24, NULL, false);
        assert_int_equal(wf_rail_news(messages.bytes, messages.length, rails, 2), cases[i].concerns);
        assert_false(wf_rail_news(messages.bytes, messages.length, rails, 0));
    }
}

/* --- verdicts --- */

static void test_holding(void **state)
{
    static const struct {
        const char *rail, *held;
        int prefix;
        uint32_t index, flags, loopback;
        enum wf_hold hold;
    } cases[] = {
        {"192.0.2.7", "192.0.2.7", 24, 7, IFA_F_PERMANENT, 0, WF_HOLD_FULLY},
        {"192.0.2.7", "192.0.2.7", 24, 7, IFA_F_SECONDARY, 0, WF_HOLD_FULLY},
        {"192.0.2.7", "192.0.2.7", 24, 7, IFA_F_DEPRECATED, 0, WF_HOLD_FULLY},
        {"192.0.2.7", "192.0.2.7", 24, 8, IFA_F_PERMANENT, 0, WF_HOLD_NOT}, /* on another interface */
        {"192.0.2.7", "192.0.2.8", 24, 7, IFA_F_PERMANENT, 0, WF_HOLD_NOT},
        {"192.0.2.7", "2001:db8::7", 64, 7, 0, 0, WF_HOLD_NOT},
        {"2001:db8::7", "192.0.2.7", 24, 7, 0, 0, WF_HOLD_NOT},
        {"2001:db8::7", "2001:db8::7", 64, 7, 0, 0, WF_HOLD_FULLY},
        {"2001:db8::7", "2001:db8::8", 64, 7, 0, 0, WF_HOLD_NOT},
        {"2001:db8::7", "2001:db8::7", 64, 7, IFA_F_TENTATIVE, 0, WF_HOLD_TENTATIVE},
        {"2001:db8::7", "2001:db8::7", 64, 7, IFA_F_TENTATIVE | IFA_F_OPTIMISTIC, 0, WF_HOLD_FULLY},
        {"2001:db8::7", "2001:db8::7", 64, 7, IFA_F_TENTATIVE | IFA_F_DADFAILED, 0, WF_HOLD_TENTATIVE},
        {"2001:db8::7", "2001:db8::7", 64, 7, IFA_F_DADFAILED, 0, WF_HOLD_TENTATIVE},
        {"fe80::7", "fe80::7", 64, 7, 0, 0, WF_HOLD_FULLY},
        {"fe80::7", "fe80::7", 64, 8, 0, 0, WF_HOLD_NOT}, /* the same on another link */
        {"127.0.0.1", "127.0.0.1", 8, 7, 0, 1, WF_HOLD_FULLY},
        {"127.4.5.6", "127.0.0.1", 8, 7, 0, 1, WF_HOLD_FULLY}, /* listed nowhere, and usable all the same */
        {"127.4.5.6", "127.0.0.1", 8, 8, 0, 1, WF_HOLD_NOT},
        {"127.4.5.6", "127.0.0.1", 32, 7, 0, 1, WF_HOLD_NOT},
        {"127.4.5.6", "192.0.2.7", 24, 7, 0, 1, WF_HOLD_NOT},
        {"127.4.5.6", "192.0.2.7", 0, 7, 0, 1, WF_HOLD_NOT},
        {"127.4.5.6", "::1", 128, 7, 0, 1, WF_HOLD_NOT},
        {"192.0.2.7", "192.0.2.1", 24, 7, 0, 1, WF_HOLD_FULLY}, /* that holds for every address of such an interface, */
        {"192.0.2.7", "192.0.2.1", 24, 7, 0, 0, WF_HOLD_NOT},   /* and for no other */
        {"::1", "::1", 128, 7, 0, 1, WF_HOLD_FULLY},
        {"::1", "127.0.0.1", 8, 7, 0, 1, WF_HOLD_NOT},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct messages messages = {0};
        struct wf_held held;
        struct wf_interface interface = {.index = 7, .flags = RUNS | (cases[i].loopback ? IFF_LOOPBACK : 0)};
        struct wf_interface none = {0};
        /* Known by another number: the interface may have been made anew since. */
        struct wf_rail rail = rail_of("eth0", 3, cases[i].rail);
        print_message("%s, and %s/%d on %u\n", cases[i].rail, cases[i].held, cases[i].prefix, cases[i].index);
        add_address(&messages, RTM_NEWADDR, (int)cases[i].index, cases[i].flags, cases[i].held, cases[i].prefix, NULL,
                    false);
        assert_true(wf_held_read((struct nlmsghdr *)messages.bytes, &held));
        assert_int_equal(wf_rail_hold(&rail, &interface, &held), cases[i].hold);
        assert_int_equal(wf_rail_hold(&rail, &none, &held), WF_HOLD_NOT);
    }
}

static void test_verdicts(void **state)
{
    static const struct {
        uint32_t index, flags;
        enum wf_hold hold;
        enum wf_rail_trouble before, now;
    } cases[] = {
        {7, RUNS, WF_HOLD_FULLY, WF_RAIL_FINE, WF_RAIL_FINE},
        {7, RUNS | IFF_LOOPBACK, WF_HOLD_FULLY, WF_RAIL_FINE, WF_RAIL_FINE},
        {7, RUNS, WF_HOLD_FULLY, WF_RAIL_GONE, WF_RAIL_FINE},
        {7, RUNS, WF_HOLD_NOT, WF_RAIL_FINE, WF_RAIL_NO_ADDRESS},
        {7, RUNS, WF_HOLD_TENTATIVE, WF_RAIL_FINE, WF_RAIL_TENTATIVE},
        {0, 0, WF_HOLD_NOT, WF_RAIL_FINE, WF_RAIL_GONE},
        {7, 0, WF_HOLD_FULLY, WF_RAIL_FINE, WF_RAIL_SHUT},
        {7, IFF_RUNNING | IFF_LOWER_UP, WF_HOLD_FULLY, WF_RAIL_FINE, WF_RAIL_SHUT},
        {7, 0, WF_HOLD_NOT, WF_RAIL_FINE, WF_RAIL_SHUT}, /* IPv6 addresses go with it */
        {7, IFF_UP, WF_HOLD_FULLY, WF_RAIL_FINE, WF_RAIL_NO_CARRIER},
        /* Some virtual interfaces know of no carrier. */
        {7, IFF_UP | IFF_RUNNING, WF_HOLD_FULLY, WF_RAIL_FINE, WF_RAIL_FINE},
        /* It has its carrier, which has not got about yet: good enough to go on, not to come back. */
        {7, IFF_UP | IFF_LOWER_UP, WF_HOLD_FULLY, WF_RAIL_FINE, WF_RAIL_FINE},
        {7, IFF_UP | IFF_LOWER_UP, WF_HOLD_NOT, WF_RAIL_FINE, WF_RAIL_NO_ADDRESS},
        {7, IFF_UP | IFF_LOWER_UP, WF_HOLD_FULLY, WF_RAIL_SHUT, WF_RAIL_NO_CARRIER},
        {7, IFF_UP | IFF_LOWER_UP | IFF_DORMANT, WF_HOLD_FULLY, WF_RAIL_FINE, WF_RAIL_NO_CARRIER},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wf_interface interface = {.index = cases[i].index, .flags = cases[i].flags};
        print_message("case %zu: flags 0x%x\n", i, cases[i].flags);
        enum wf_rail_trouble got = wf_rail_judge(&interface, cases[i].hold, cases[i].before);
        assert_int_equal(got, cases[i].now);
        assert_non_null(wf_rail_trouble_text(got));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_interfaces_are_read),
        cmocka_unit_test(test_addresses_are_read),
        cmocka_unit_test(test_cut_short),
        cmocka_unit_test(test_news),
        cmocka_unit_test(test_holding),
        cmocka_unit_test(test_verdicts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
