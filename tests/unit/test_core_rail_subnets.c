/* What rails are made of lists of addresses as a kernel may give them: this program has a getifaddrs() of its own. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/rail/candidate.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define MOST 8

/* Interfaces that no machine has. "": no address; no mask: none. A name that begins with "down" is of one that is. */
struct row {
    const char *name, *address, *mask;
};

static const struct row *rows;
static size_t row_count;

static struct sockaddr *address_of(const char *text)
{
    struct sockaddr_in6 *six = calloc(1, sizeof(*six));
    struct sockaddr_in *four = (struct sockaddr_in *)six;
    assert_non_null(six);
    if (inet_pton(AF_INET, text, &four->sin_addr) == 1) {
        four->sin_family = AF_INET;
    } else {
        assert_int_equal(inet_pton(AF_INET6, text, &six->sin6_addr), 1);
        six->sin6_family = AF_INET6;
    }
    return (struct sockaddr *)six;
}

int getifaddrs(struct ifaddrs **out)
{
    struct ifaddrs *all = calloc(MOST, sizeof(*all));
    assert_non_null(all);
    assert_in_range(row_count, 1, MOST);
    for (size_t i = 0; i < row_count; i++) {
        all[i].ifa_next = i + 1 < row_count ? &all[i + 1] : NULL;
        all[i].ifa_name = strdup(rows[i].name);
        all[i].ifa_flags = strncmp(rows[i].name, "down", 4) == 0 ? 0 : IFF_UP | IFF_RUNNING;
        all[i].ifa_addr = rows[i].address[0] ? address_of(rows[i].address) : NULL;
        all[i].ifa_netmask = rows[i].mask ? address_of(rows[i].mask) : NULL;
    }
    *out = all;
    return 0;
}

void freeifaddrs(struct ifaddrs *all)
{
    for (struct ifaddrs *one = all; one; one = one->ifa_next) {
        free(one->ifa_name);
        free(one->ifa_addr);
        free(one->ifa_netmask);
    }
    free(all);
}

static int find_listed(const struct row *given, size_t count, const char *list, const char *alias,
                       struct wf_rail *rails, struct wf_status *status)
{
    rows = given;
    row_count = count;
    return wf_rails_find(list, alias, AF_UNSPEC, rails, MOST, status);
}

static void write_names(const struct wf_rail *rails, int count, char *text, size_t room)
{
    text[0] = '\0';
    for (int i = 0; i < count; i++)
        snprintf(text + strlen(text), room - strlen(text), "%s%s", i ? "," : "", rails[i].name);
}

static int find(const struct row *given, size_t count, struct wf_rail *rails)
{
    struct wf_status status;
    return find_listed(given, count, "", NULL, rails, &status);
}

/* Of several subnets of one interface that hold the address, the kernel goes by the narrowest. */
static void the_narrowest_subnet_counts(void **state)
{
    static const struct row wide_last[] = {{"wx0", "10.0.1.1", "255.255.255.0"}, {"wx0", "10.0.0.1", "255.0.0.0"}};
    static const struct row wide_first[] = {{"wx0", "10.0.1.1", "255.0.0.0"}, {"wx0", "10.0.1.9", "255.255.255.0"}};
    struct wf_rail rails[MOST];

    (void)state;
    assert_int_equal(find(wide_last, COUNT(wide_last), rails), 1);
    assert_int_equal(rails[0].prefix, 24);
    assert_int_equal(find(wide_first, COUNT(wide_first), rails), 1);
    assert_int_equal(rails[0].prefix, 24);
}

static void entries_without_address_or_mask_do_no_harm(void **state)
{
    static const struct row some[] = {
        {"wx0", "", NULL},
        {"wx0", "10.0.1.1", NULL},
        {"wx1", "10.0.2.1", "255.255.255.255"},
        {"wx2", "fd00::1", NULL},
        {"wx3", "fd01::1", "ffff:ffff:ffff:ffff::"},
    };
    static const int prefixes[] = {0, 32, 0, 64};
    struct wf_rail rails[MOST];

    (void)state;
    assert_int_equal(find(some, COUNT(some), rails), COUNT(prefixes));
    for (size_t i = 0; i < COUNT(prefixes); i++) {
        assert_int_equal(rails[i].prefix, prefixes[i]);
        assert_false(rails[i].crowded);
    }
}

/* What is taken together, the best first; the last row's address decides what the others are worth. */
static void only_the_best_are_taken(void **state)
{
    static const struct row all[] = {{"lo", "127.0.0.1", NULL},    {"docker9", "172.17.0.1", NULL},
                                     {"veth9ab", "fe80::1", NULL}, {"wx0", "fe80::2", NULL},
                                     {"wx1", "fe80::3", NULL},     {"wg9", "10.9.0.1", NULL},
                                     {"wx2", "10.0.2.1", NULL},    {"wx3", "fd00::1", NULL}};
    static const struct {
        size_t first, count;
        const char *taken;
        enum wf_rail_rule rule;
    } cases[] = {
        {0, 8, "wx2,wx3", WF_RULE_CARD},   {0, 6, "wx0,wx1", WF_RULE_LINK_LOCAL}, {0, 3, "docker9", WF_RULE_VIRTUAL},
        {0, 1, "lo", WF_RULE_LOOPBACK},    {1, 2, "docker9", WF_RULE_VIRTUAL},    {4, 4, "wx2,wx3", WF_RULE_CARD},
        {4, 2, "wx1", WF_RULE_LINK_LOCAL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct wf_rail rails[MOST];
        char taken[128] = "";
        int count = find(&all[cases[i].first], cases[i].count, rails);
        for (int k = 0; k < count; k++) {
            snprintf(taken + strlen(taken), sizeof(taken) - strlen(taken), "%s%s", k ? "," : "", rails[k].name);
            assert_int_equal(rails[k].rule, cases[i].rule);
        }
        assert_string_equal(taken, cases[i].taken);
    }
}

static void a_port_with_a_link_local_address_is_none(void **state)
{
    static const struct row all[] = {{"veth9ab", "fe80::1", NULL}};
    struct wf_rail rails[MOST];

    (void)state;
    assert_int_equal(find(all, COUNT(all), rails), -ENETDOWN);
}

static const struct row some_down[] = {
    {"lo", "127.0.0.1", NULL}, {"docker9", "172.17.0.1", NULL}, {"wx0", "10.0.0.1", NULL},
    {"wx1", "10.0.1.1", NULL}, {"down0", "10.0.3.1", NULL},     {"wx4", "", NULL},
    {"wy0", "10.0.9.1", NULL},
};

/* A variable of another program may have been set for a whole cluster. */
static void of_an_alias_all_is_taken_that_matches(void **state)
{
    static const struct {
        const char *list, *taken;
    } cases[] = {
        {"eth*,wx*,en*,bond*", "wx0,wx1"},
        {"wx*,wx0*", "wx0,wx1"},
        {"wx1*,wx*", "wx1,wx0"},
        {"down*,wx4*,wy*", "wy0"},
        {"wx0,wx9,down0,wx0", "wx0"},
        {"lo*,docker*", "lo,docker9"},
        {"fe80::1,wx1", "wx1"},
        {"10.0.1.7,wx1", "wx1"},
        {"w*,w*,w*,w*,w*,w*,w*,w*,w*", "wx0,wx1,wy0"},
        {"^wx*,eth*", "wy0"},
        {"^wx0,wx1", "wy0"},
        {"", "wx0,wx1,wy0"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct wf_rail rails[MOST];
        struct wf_status status = {0};
        char taken[128];
        int count = find_listed(some_down, COUNT(some_down), cases[i].list, "NCCL_SOCKET_IFNAME", rails, &status);
        if (count < 0)
            fail_msg("%s: %s", cases[i].list, status.text);
        write_names(rails, count, taken, sizeof(taken));
        assert_string_equal(taken, cases[i].taken);
    }
}

static void of_an_alias_no_more_are_taken_than_allowed(void **state)
{
    struct wf_rail rails[MOST];
    struct wf_status status;

    (void)state;
    rows = some_down;
    row_count = COUNT(some_down);
    assert_int_equal(wf_rails_find("wx1*,wx*,wy*", "NCCL_SOCKET_IFNAME", AF_UNSPEC, rails, 2, &status), 2);
    assert_string_equal(rails[0].name, "wx1");
    assert_string_equal(rails[1].name, "wx0");
}

/* A list that fails, how its text begins, and its error. */
struct refusal {
    const char *list, *said;
    int code;
};

static void assert_refused(const struct refusal *refusal, const char *alias)
{
    struct wf_rail rails[MOST];
    struct wf_status status = {0};
    assert_int_equal(find_listed(some_down, COUNT(some_down), refusal->list, alias, rails, &status), refusal->code);
    assert_memory_equal(status.text, refusal->said, strlen(refusal->said));
    if (alias) {
        assert_non_null(strstr(status.text, refusal->list));
        assert_non_null(strstr(status.text, "docker9 ("));
    }
}

static void an_alias_of_which_nothing_is_left_fails(void **state)
{
    static const struct refusal cases[] = {
        {"eth*,en*", "NCCL_SOCKET_IFNAME: rails = 'eth*,en*' matches no interface", -ENODEV},
        {"eth*,down*", "NCCL_SOCKET_IFNAME: rails = 'eth*,down*' matches no interface", -ENETDOWN},
        {"^w*,docker*,lo*", "NCCL_SOCKET_IFNAME: no network interface is taken unasked", -ENETDOWN},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_refused(&cases[i], "NCCL_SOCKET_IFNAME");
}

static void what_weft_is_told_itself_is_taken_strictly(void **state)
{
    static const struct refusal cases[] = {
        {"wx*,eth*", "rail 'eth*' (setting rails) is not here", -ENODEV},
        {"wx0,down0", "rail 'down0' (setting rails) is down, or has no address", -ENETDOWN},
        {"wx*,wx0", "rails names rail 'wx0' twice", -EINVAL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_refused(&cases[i], NULL);
}

static void a_prefix_adds_what_is_not_named_before_it(void **state)
{
    struct wf_rail rails[MOST];
    struct wf_status status = {0};
    char taken[128];

    (void)state;
    int count = find_listed(some_down, COUNT(some_down), "wx1,w*", NULL, rails, &status);
    assert_int_equal(count, 3);
    write_names(rails, count, taken, sizeof(taken));
    assert_string_equal(taken, "wx1,wx0,wy0");
    assert_int_equal(find_listed(some_down, COUNT(some_down), "wy0,wy*", NULL, rails, &status), 1);
    assert_int_equal(find_listed(some_down, COUNT(some_down), "wx*,wx0", NULL, rails, &status), -EINVAL);
    assert_non_null(strstr(status.text, "rail 'wx0' twice"));
}

static void more_than_allowed_are_refused(void **state)
{
    struct wf_rail rails[MOST];
    struct wf_status status = {0};

    (void)state;
    rows = some_down;
    row_count = COUNT(some_down);
    assert_int_equal(wf_rails_find("w*", NULL, AF_UNSPEC, rails, 2, &status), -E2BIG);
    assert_non_null(strstr(status.text, "more than 2 rails"));
    assert_int_equal(wf_rails_find("wx0,wx1,wy0", NULL, AF_UNSPEC, rails, 2, &status), -E2BIG);
    assert_int_equal(wf_rails_find("wx*", NULL, AF_UNSPEC, rails, 2, &status), 2);
    assert_int_equal(wf_rails_find("wx1,wx*", NULL, AF_UNSPEC, rails, 2, &status), 2);
}

static void makers_of_interfaces_are_known_by_their_names(void **state)
{
    static const char *const theirs[] = {"docker0", "br-0a1b2c3d4e5f", "veth12ab", "virbr0", "vnet3",
                                         "cni0",    "flannel.1",       "cali0123", "tun0",   "tap1",
                                         "wg0",     "tailscale0",      "lxcbr0",   "podman0"};
    static const char *const cards[] = {"eth0", "ens5",  "enp6s0f1np1", "bond0", "team0",  "eth0.100", "ib0",
                                        "br0",  "vmbr0", "macvlan0",    "wlan0", "dummy0", "lo",       "lab0"};

    (void)state;
    for (size_t i = 0; i < COUNT(theirs); i++)
        assert_true(wf_interface_is_virtual(theirs[i]));
    for (size_t i = 0; i < COUNT(cards); i++)
        assert_false(wf_interface_is_virtual(cards[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_narrowest_subnet_counts),
        cmocka_unit_test(entries_without_address_or_mask_do_no_harm),
        cmocka_unit_test(only_the_best_are_taken),
        cmocka_unit_test(a_port_with_a_link_local_address_is_none),
        cmocka_unit_test(of_an_alias_all_is_taken_that_matches),
        cmocka_unit_test(of_an_alias_no_more_are_taken_than_allowed),
        cmocka_unit_test(an_alias_of_which_nothing_is_left_fails),
        cmocka_unit_test(what_weft_is_told_itself_is_taken_strictly),
        cmocka_unit_test(a_prefix_adds_what_is_not_named_before_it),
        cmocka_unit_test(more_than_allowed_are_refused),
        cmocka_unit_test(makers_of_interfaces_are_known_by_their_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
