/* What the kernel tells of memory that a send without a copy has lent it. Loopback copies such memory, and says so. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "io/device_call.h"

/* A connected pair on loopback. */
static void connect_pair(int fds[2])
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    fds[0] = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(fds[0], (struct sockaddr *)&address, size), 0);
    fds[1] = accept(listener, NULL, NULL);
    assert_true(fds[1] >= 0);
    close(listener);
}

static void copies_are_counted(void **state)
{
    static uint8_t bytes[5000], heard[sizeof bytes];
    int fds[2];
    (void)state;
    connect_pair(fds);
    if (setsockopt(fds[0], SOL_SOCKET, SO_ZEROCOPY, &(int){1}, sizeof(int)) < 0)
        skip();
    struct wf_op op = {.kind = WF_OP_SEND, .fd = fds[0]};
    for (int i = 0; i < 3; i++, op.lent++)
        assert_int_equal(send(fds[0], bytes, sizeof bytes, MSG_ZEROCOPY), sizeof bytes);
    for (int i = 0; i < 3; i++)
        assert_int_equal(recv(fds[1], heard, sizeof heard, MSG_WAITALL), sizeof heard);
    while (op.lent > 0) {
        struct pollfd told = {.fd = fds[0]}; /* POLLERR */
        assert_int_equal(poll(&told, 1, 10000), 1);
        assert_int_equal(wf_device_released(&op), 0);
    }
    assert_int_equal(op.copied, 3);
    close(fds[0]);
    close(fds[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(copies_are_counted)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
