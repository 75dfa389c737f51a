/* What rails are made of lists of addresses as a kernel may give them: this program has a getifaddrs() of its own. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/rail.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define MOST 8

/* Interfaces that no machine has. "": no address; no mask: none. */
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
        all[i].ifa_flags = IFF_UP | IFF_RUNNING;
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

static int find(const struct row *given, size_t count, struct wf_rail *rails)
{
    struct wf_status status;
    rows = given;
    row_count = count;
    return wf_rails_find("", rails, MOST, &status);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_narrowest_subnet_counts),
        cmocka_unit_test(entries_without_address_or_mask_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
