/* Addresses as text: what is read, what is refused and with which words, that what is printed reads back; what travels.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "core/rail/address.h"

#define PORT 18555 /* where the text names none */

/* Every machine has the interface lo, so it stands for the interface of a link-local address. */
static unsigned lo(void)
{
    return if_nametoindex("lo");
}

static const struct sockaddr_in6 *six(const struct sockaddr_storage *address)
{
    return (const struct sockaddr_in6 *)address;
}

/* Read, and printed again: with the port, and the host alone. */
static void test_accepted(void **state)
{
    static const struct {
        const char *text, *printed, *host;
        bool passive;
        int family;
    } cases[] = {
        {"127.0.0.1", "127.0.0.1:18555", "127.0.0.1", false, AF_INET},
        {"127.0.0.1:80", "127.0.0.1:80", "127.0.0.1", false, AF_INET},
        {"192.0.2.7:0", "192.0.2.7:0", "192.0.2.7", true, AF_INET},
        {"0.0.0.0:65535", "0.0.0.0:65535", "0.0.0.0", true, AF_INET},
        {"80", "*:80", "*", true, AF_UNSPEC},
        {":80", "*:80", "*", true, AF_UNSPEC},
        {"", "*:18555", "*", true, AF_UNSPEC},
        {"::1", "[::1]:18555", "::1", false, AF_INET6},
        {"[::1]", "[::1]:18555", "::1", false, AF_INET6},
        {"[::1]:80", "[::1]:80", "::1", false, AF_INET6},
        {"::", "[::]:18555", "::", true, AF_INET6},
        {"[::]:80", "[::]:80", "::", true, AF_INET6},
        {"2001:db8::1:80", "[2001:db8::1:80]:18555", "2001:db8::1:80", false,
         AF_INET6}, /* without brackets there is no port */
        {"2001:DB8:0:0::7", "[2001:db8::7]:18555", "2001:db8::7", false, AF_INET6},
        {"[2001:db8:1111:2222:3333:4444:5555:6666]:1", "[2001:db8:1111:2222:3333:4444:5555:6666]:1",
         "2001:db8:1111:2222:3333:4444:5555:6666", false, AF_INET6},
        {"::ffff:192.0.2.7", "192.0.2.7:18555", "192.0.2.7", false, AF_INET},
        {"[::ffff:192.0.2.7]:80", "192.0.2.7:80", "192.0.2.7", false, AF_INET},
        {"fe80::7%lo", "[fe80::7%lo]:18555", "fe80::7%lo", false, AF_INET6},
        {"[fe80::7%lo]", "[fe80::7%lo]:18555", "fe80::7%lo", false, AF_INET6},
        {"[fe80::7%lo]:80", "[fe80::7%lo]:80", "fe80::7%lo", true, AF_INET6},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sockaddr_storage address, again;
        struct wf_status status = {0};
        char text[80];
        print_message("'%s'\n", cases[i].text);
        assert_int_equal(wf_address_parse(cases[i].text, PORT, cases[i].passive, &address, &status), 0);
        assert_int_equal(address.ss_family, cases[i].family);
        assert_string_equal(wf_address_text(&address, false, text, sizeof text), cases[i].host);
        assert_string_equal(wf_address_text(&address, true, text, sizeof text), cases[i].printed);
        if (cases[i].family == AF_UNSPEC)
            continue;
        assert_int_equal(wf_address_parse(text, 0, cases[i].passive, &again, &status), 0);
        assert_memory_equal(&again, &address, sizeof again);
    }
}

static void test_scope_by_number(void **state)
{
    struct sockaddr_storage address;
    struct wf_status status = {0};
    char text[80];

    (void)state;
    snprintf(text, sizeof text, "[fe80::7%%%u]:80", lo());
    assert_int_equal(wf_address_parse(text, PORT, false, &address, &status), 0);
    assert_int_equal(six(&address)->sin6_scope_id, lo());
    assert_string_equal(wf_address_text(&address, true, text, sizeof text), "[fe80::7%lo]:80");
    wf_address_set_scope(&address, 4000000000u); /* an interface that is gone has no name, and still a number */
    assert_string_equal(wf_address_text(&address, false, text, sizeof text), "fe80::7%4000000000");
}

static void test_refused(void **state)
{
    static const struct {
        const char *text;
        int code;
        const char *words;
        bool passive;
    } cases[] = {
        {"", -EINVAL, "is not an address", false},
        {":80", -EINVAL, "is not an address", false},
        {"127.0.0.1:", -EINVAL, "is not an address", false},
        {"127.0.0.1:x", -EINVAL, "is not an address", false},
        {"127.0.0.1:65536", -EINVAL, "is not an address", false},
        {"127.0.0.1:+80", -EINVAL, "is not an address", false},
        {"127.0.0.1: 80", -EINVAL, "is not an address", false},
        {"65536", -EINVAL, "is not an address", true},
        {"[]:80", -EINVAL, "is not an address", true},
        {"[::1", -EINVAL, "is not an address", false},
        {"[::1]80", -EINVAL, "is not an address", false},
        {"[::1]:", -EINVAL, "is not an address", false},
        {"[::1]:-1", -EINVAL, "is not an address", false},
        {"fe80::7", -EINVAL, "fe80::7%eth0", false},
        {"[fe80::7]:80", -EINVAL, "fe80::7%eth0", true},
        {"fe80::7%", -ENODEV, "the interface ''", false},
        {"fe80::7%weft-none0", -ENODEV, "the interface 'weft-none0'", false},
        {"[fe80::7%4000000000]:80", -ENODEV, "the interface '4000000000'", false},
        {"2001:db8::7%lo", -EINVAL, "takes no interface", false},
        {"192.0.2.7%lo", -EINVAL, "takes no interface", false},
        {"::1:18555", -EINVAL, "an IPv6 address with a port is written [::1]:18555", false},
        {"::1:18555", -EINVAL, "an IPv6 address with a port is written [::1]:18555", true},
        {"2001:db8::7:65535", -EINVAL, "is written [2001:db8::7]:65535", false},
        {"fe80::7%lo:18555", -EINVAL, "is written [fe80::7%lo]:18555", false},
        {"2001:db8:0:0:1:2:3:4:80", -EINVAL, "is written [2001:db8:0:0:1:2:3:4]:80", false},
        {"::1:65536", -EINVAL, "is not an IPv6 address, which with a port is written [V6ADDR]:PORT", false},
        {"10.0.0.1:80:90", -EINVAL, "is not an IPv6 address, which with a port is written [V6ADDR]:PORT", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sockaddr_storage address = {0}, untouched = {0};
        struct wf_status status = {0};
        print_message("'%s'\n", cases[i].text);
        assert_int_equal(wf_address_parse(cases[i].text, PORT, cases[i].passive, &address, &status), cases[i].code);
        assert_non_null(strstr(status.text, cases[i].words));
        assert_memory_equal(&address, &untouched, sizeof address);
    }
}

static void test_numeric(void **state)
{
    static const struct {
        const char *text;
        int code;
    } cases[] = {
        {"127.0.0.1", 0},
        {"::1", 0},
        {"[::1]", 0},
        {"fe80::1%lo", 0},
        {"[fe80::1%lo]", 0},
        {"eth0", -EINVAL},
        {"eth*", -EINVAL},
        {"", -EINVAL},
        {"[]", -EINVAL},
        {"[", -EINVAL},
        {"[127.0.0.1]", -EINVAL},
        {"[eth0]", -EINVAL},
        {"::1%lo", -EINVAL},
        {"::1]", -EINVAL},
        {"fe80::1", -EDESTADDRREQ},
        {"[fe80::1]", -EDESTADDRREQ},
        {"fe80::1%weft-none0", -ENODEV},
        {"1111:2222:3333:4444:5555:6666:7777:8888:1111:2222:3333:4444:5555:6666:7777:8888", -EINVAL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sockaddr_storage address;
        print_message("'%s'\n", cases[i].text);
        assert_int_equal(wf_address_numeric(cases[i].text, &address), cases[i].code);
    }
}

static struct sockaddr_storage of(const char *text)
{
    struct sockaddr_storage address;
    assert_int_equal(wf_address_numeric(text, &address), 0);
    return address;
}

static void test_compared(void **state)
{
    struct sockaddr_storage here = of("fe80::1%lo"), there = here, four = of("127.0.0.1"), mapped = {0};

    (void)state;
    wf_address_set_scope(&there, lo() + 1);
    assert_true(wf_address_same_host(&here, &here));
    assert_false(wf_address_same_host(&here, &there)); /* the same text on another link is another host */
    wf_address_set_port(&there, 7);
    wf_address_set_scope(&there, lo());
    assert_true(wf_address_same_host(&here, &there));
    mapped.ss_family = AF_INET6;
    assert_int_equal(inet_pton(AF_INET6, "::ffff:127.0.0.1", &((struct sockaddr_in6 *)&mapped)->sin6_addr), 1);
    assert_true(wf_address_same_host(&four, &mapped));

    struct sockaddr_storage one = of("::1"), global = of("2001:db8::1");
    assert_true(wf_address_is_loopback(&one) && wf_address_is_local(&one) && !wf_address_is_link_local(&one));
    assert_true(wf_address_is_link_local(&here) && !wf_address_is_loopback(&here));
    assert_false(wf_address_is_link_local(&global) || wf_address_is_link_local(&four));
    wf_address_set_scope(&global, lo());
    assert_int_equal(six(&global)->sin6_scope_id, 0); /* only link-local addresses have one */
}

static void test_travels(void **state)
{
    static const struct {
        const char *text, *arrived;
    } cases[] = {
        {"127.0.0.1", "127.0.0.1:9"},
        {"::1", "[::1]:9"},
        {"::ffff:192.0.2.7", "192.0.2.7:9"},
        {"fe80::7%lo", "[fe80::7]:9"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sockaddr_storage address = of(cases[i].text), arrived;
        struct wf_wire_address wire;
        char text[80];
        wf_address_set_port(&address, 9);
        wf_address_to_wire(&address, "name", &wire);
        wf_address_from_wire(&wire, &arrived);
        assert_string_equal(wf_address_text(&arrived, true, text, sizeof text), cases[i].arrived);
    }
}

/* A name may have several addresses: the dialler gets all of them. */
static void test_names(void **state)
{
    struct sockaddr_storage all[4];
    struct wf_status status = {0};

    (void)state;
    int count = wf_address_parse_all("localhost:80", PORT, all, 4, &status);
    if (count < 0)
        skip(); /* not known on this machine */
    assert_in_range(count, 1, 4);
    for (int i = 0; i < count; i++) {
        assert_true(wf_address_is_loopback(&all[i]));
        assert_int_equal(wf_address_port(&all[i]), 80);
    }
    assert_int_equal(wf_address_parse_known("localhost:80", PORT, all, 4, &status), 0); /* nobody is asked */
    assert_int_equal(wf_address_port(&all[0]), 80);
    assert_int_equal(wf_address_parse_known("localhost", PORT, all, 4, &status), 0);
    assert_int_equal(wf_address_port(&all[0]), PORT);
    assert_int_equal(wf_address_parse_known("127.0.0.1:81", PORT, all, 4, &status), 1);
    assert_int_equal(wf_address_port(&all[0]), 81);
    assert_int_equal(wf_address_parse_known("localhost:80000", PORT, all, 4, &status), -EINVAL);
    assert_int_equal(wf_address_parse_known("no blanks", PORT, all, 4, &status), -EINVAL);
    assert_int_equal(wf_address_parse_all("[::1]:80", PORT, all, 4, &status), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accepted), cmocka_unit_test(test_scope_by_number), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_numeric),  cmocka_unit_test(test_compared),        cmocka_unit_test(test_travels),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
