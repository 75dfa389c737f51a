/* What the options of a socket come to: its congestion control, its port. */
#include <errno.h>
#include <netinet/tcp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "io/socket.h"

static void expect_congestion(int fd, const char *name)
{
    char got[16] = "";
    socklen_t size = sizeof got;
    assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, got, &size), 0);
    assert_string_equal(got, name);
}

/* reno is in every kernel, and for every user. */
static void sets_the_congestion_control(void **state)
{
    (void)state;
    struct wf_socket_options options = {.congestion = "reno"};
    options.local.ss_family = AF_INET;
    ((struct sockaddr_in *)&options.local)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    struct wf_status status = {0};
    assert_int_equal(wf_socket_congestion("reno", &status), 0);

    int listener = wf_socket_listen(NULL, &options, 1);
    assert_true(listener >= 0);
    struct sockaddr_storage address;
    assert_int_equal(wf_socket_address(NULL, listener, false, &address), 0);
    int dialer = wf_socket_open(NULL, AF_INET, &options, NULL);
    assert_true(dialer >= 0);
    expect_congestion(dialer, "reno");
    int rc = wf_socket_connect(dialer, &address);
    assert_true(rc == 0 || rc == -EINPROGRESS);
    int accepted;
    while ((accepted = wf_socket_accept(listener)) == -EAGAIN)
        ;
    assert_true(accepted >= 0);
    expect_congestion(accepted, "reno");
    wf_socket_close(NULL, accepted);
    wf_socket_close(NULL, dialer);
    wf_socket_close(NULL, listener);
}

static void names_what_the_kernel_has(void **state)
{
    (void)state;
    struct wf_status status = {0};
    assert_int_equal(wf_socket_congestion("nonesuch", &status), -ENOENT);
    assert_non_null(strstr(status.text, "nonesuch"));
    assert_non_null(strstr(status.text, "reno"));
}

static int port_before_connect(bool own)
{
    struct wf_socket_options options = {.own_port = own};
    struct sockaddr_storage address;
    options.local.ss_family = AF_INET;
    ((struct sockaddr_in *)&options.local)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = wf_socket_open(NULL, AF_INET, &options, NULL);
    assert_true(fd >= 0);
    assert_int_equal(wf_socket_address(NULL, fd, false, &address), 0);
    wf_socket_close(NULL, fd);
    return ntohs(((struct sockaddr_in *)&address)->sin_port);
}

/* A port that connect() chooses may be another connection's, too. */
static void a_port_of_ones_own_is_chosen_before_connect(void **state)
{
    (void)state;
    assert_int_equal(port_before_connect(false), 0);
    assert_true(port_before_connect(true) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sets_the_congestion_control),
        cmocka_unit_test(names_what_the_kernel_has),
        cmocka_unit_test(a_port_of_ones_own_is_chosen_before_connect),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
