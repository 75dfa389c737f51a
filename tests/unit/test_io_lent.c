/* Sends of device memory with a kernel that is played: no room for one more loan, errors while memory is lent, and what
 * the error queue says of it. Loopback has no device memory, and the kernel of a guest refuses only what it likes. */
#include <time.h> /* before errqueue.h, which needs it */

#include <errno.h>
#include <linux/errqueue.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "io/attempt.h"
#include "io/engine.h"

#define FD 77
#define PIECE 1000
#define ANSWERS 8

/* What the next calls of sendmsg() return: bytes, or -errno. */
static int64_t sends[ANSWERS];
/* What is in the error queue: a range of calls that has ended. */
static struct told {
    uint32_t first, last;
    uint8_t origin, code;
    uint32_t error;
} queue[ANSWERS];
static int sent, told, queued; /* calls of sendmsg(), read from the queue, in the queue */
static int queue_error;        /* of an empty one */
static bool is_real;           /* FD is a stream: the kernel's own queue is read */

ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *message, int flags);
int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t length);
ssize_t __real_recvmsg(int fd, struct msghdr *message, int flags);
int __real_setsockopt(int fd, int level, int name, const void *value, socklen_t length);

ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags)
{
    (void)message;
    assert_int_equal(fd, FD);
    assert_true(flags & MSG_ZEROCOPY);
    assert_true(sent < ANSWERS);
    int64_t answer = sends[sent++];
    if (answer >= 0)
        return (ssize_t)answer;
    errno = (int)-answer;
    return -1;
}

ssize_t __wrap_recvmsg(int fd, struct msghdr *message, int flags)
{
    assert_int_equal(fd, FD);
    assert_true(flags & MSG_ERRQUEUE);
    if (is_real)
        return __real_recvmsg(fd, message, flags);
    if (told == queued) {
        errno = queue_error;
        return -1;
    }
    const struct told *next = &queue[told++];
    struct sock_extended_err error = {.ee_errno = next->error,
                                      .ee_origin = next->origin,
                                      .ee_code = next->code,
                                      .ee_info = next->first,
                                      .ee_data = next->last};
    struct cmsghdr *one = CMSG_FIRSTHDR(message);
    one->cmsg_level = SOL_IP;
    one->cmsg_type = 11; /* IP_RECVERR */
    one->cmsg_len = CMSG_LEN(sizeof error);
    memcpy(CMSG_DATA(one), &error, sizeof error);
    message->msg_controllen = CMSG_SPACE(sizeof error);
    return 0;
}

int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t length)
{
    (void)value, (void)length;
    assert_int_equal(fd, FD);
    assert_int_equal(level, SOL_SOCKET);
    assert_int_equal(name, SO_ZEROCOPY);
    return 0;
}

static struct wf_op op;
static struct iovec pieces[4];
static struct wf_read_ahead none;

/* An operation of so many calls. */
static void begin(int calls)
{
    memset(sends, 0, sizeof sends);
    memset(queue, 0, sizeof queue);
    sent = told = queued = 0;
    queue_error = EAGAIN;
    for (int i = 0; i < calls; i++)
        pieces[i] = (struct iovec){(void *)(uintptr_t)(4096 * i), PIECE}; /* offsets in a dma-buf */
    op = (struct wf_op){.kind = WF_OP_SEND, .fd = FD, .binding = 3, .iov = pieces, .iov_count = calls};
}

static void tell(uint32_t first, uint32_t last)
{
    queue[queued++] = (struct told){.first = first, .last = last, .origin = SO_EE_ORIGIN_ZEROCOPY};
}

/* One look of an engine: calls until nothing can move. */
static enum wf_outcome look(void)
{
    enum wf_outcome outcome;
    bool dry;
    do {
        outcome = wf_attempt_send(&op, PIECE, &none, &dry);
        assert_true((outcome != WF_BLOCKED && outcome != WF_LENT) || dry);
    } while (outcome == WF_AGAIN);
    return outcome;
}

static void test_it_ends_when_all_is_given_back(void **state)
{
    (void)state;
    begin(3);
    sends[0] = sends[1] = sends[2] = PIECE;
    assert_int_equal(look(), WF_LENT);
    assert_int_equal(op.lent, 3);
    tell(1, 2); /* in any order */
    assert_int_equal(look(), WF_LENT);
    assert_int_equal(op.lent, 1);
    tell(0, 0);
    assert_int_equal(look(), WF_DONE);
    assert_int_equal(op.result, 3 * PIECE);
    assert_int_equal(op.copied, 0);
    assert_int_equal(sent, 3);
}

/* ENOBUFS: the socket's memory for notices (net.core.optmem_max) is full. */
static void test_no_room_for_one_more_loan(void **state)
{
    (void)state;
    begin(3);
    sends[0] = PIECE;
    sends[1] = sends[2] = -ENOBUFS;
    assert_int_equal(look(), WF_LENT); /* for as long as nothing is given back */
    assert_int_equal(look(), WF_LENT);
    assert_int_equal(sent, 3);
    tell(0, 0);
    sends[3] = -ENOBUFS;
    sends[4] = sends[5] = PIECE;
    assert_int_equal(look(), WF_LENT); /* it goes on with the bytes that were refused */
    assert_int_equal(op.lent, 2);
    tell(1, 2);
    assert_int_equal(look(), WF_DONE);
    assert_int_equal(op.result, 3 * PIECE);
    assert_int_equal(sent, 6);
}

/* Nothing would ever come back that made room. */
static void test_no_room_for_the_first_loan(void **state)
{
    (void)state;
    begin(1);
    sends[0] = -ENOBUFS;
    assert_int_equal(look(), WF_DONE);
    assert_int_equal(op.result, -ENOBUFS);
}

static void test_an_error_waits_for_what_is_lent(void **state)
{
    (void)state;
    begin(3);
    sends[0] = sends[1] = PIECE;
    sends[2] = -EPIPE;
    assert_int_equal(look(), WF_LENT); /* the kernel may still read the memory of two */
    tell(0, 0);
    assert_int_equal(look(), WF_LENT);
    tell(1, 1);
    assert_int_equal(look(), WF_DONE);
    assert_int_equal(op.result, -EPIPE);
    assert_int_equal(op.lent, 0);
    assert_int_equal(sent, 3);
}

/* An error of the stream, or a time stamp, gives nothing back. */
static void test_what_else_the_queue_tells(void **state)
{
    (void)state;
    begin(1);
    sends[0] = PIECE;
    queue[queued++] = (struct told){.first = 0, .last = 0, .origin = SO_EE_ORIGIN_ICMP, .error = EHOSTUNREACH};
    queue[queued++] = (struct told){.first = 0, .last = 0, .origin = SO_EE_ORIGIN_ZEROCOPY, .error = EIO};
    queue[queued++] = (struct told){.first = 0, .last = 0, .origin = SO_EE_ORIGIN_TIMESTAMPING};
    assert_int_equal(look(), WF_LENT);
    assert_int_equal(told, 3);
    assert_int_equal(op.lent, 1);
    tell(0, 0);
    assert_int_equal(look(), WF_DONE);
    assert_int_equal(op.result, PIECE);
}

static void test_copies_are_counted(void **state)
{
    (void)state;
    begin(3);
    sends[0] = sends[1] = sends[2] = PIECE;
    tell(0, 0);
    tell(1, 2);
    queue[1].code = SO_EE_CODE_ZEROCOPY_COPIED;
    assert_int_equal(look(), WF_DONE);
    assert_int_equal(op.copied, 2);
}

/* More than was lent. */
static void test_a_range_that_is_too_long(void **state)
{
    (void)state;
    begin(1);
    sends[0] = PIECE;
    tell(0, 1000);
    assert_int_equal(look(), WF_DONE);
    assert_int_equal(op.lent, 0);
    assert_int_equal(op.result, PIECE);
}

static void test_a_queue_that_cannot_be_read(void **state)
{
    (void)state;
    begin(1);
    sends[0] = PIECE;
    queue_error = EBADF;
    assert_int_equal(look(), WF_DONE);
    assert_int_equal(op.result, -EBADF);
}

/* Of two calls the second finds no room; then room comes back. */
static void test_some_are_given_back(void **state)
{
    (void)state;
    begin(3);
    sends[0] = sends[1] = PIECE;
    sends[2] = -ENOBUFS;
    sends[3] = PIECE;
    tell(0, 0); /* there is room, though not all is given back: nothing is waited for */
    assert_int_equal(look(), WF_LENT);
    assert_int_equal(sent, 4);
    assert_int_equal(op.lent, 2);
    tell(1, 2);
    assert_int_equal(look(), WF_DONE);
}

/* --- engines --- */

/* A stream, whose one end is FD. The other one. */
static int connect_stream(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0), end = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    assert_int_equal(connect(end, (struct sockaddr *)&address, size), 0);
    assert_int_equal(dup2(end, FD), FD);
    int other = accept(listener, NULL, NULL);
    assert_true(other >= 0);
    close(end);
    close(listener);
    return other;
}

/* The kernel lets go of what one call has lent it, and its queue says so. */
static void let_go(int other)
{
    struct pollfd told_of = {.fd = FD};
    static uint8_t byte, heard;
    assert_int_equal(send(FD, &byte, 1, MSG_ZEROCOPY), 1);
    assert_int_equal(recv(other, &heard, 1, MSG_WAITALL), 1);
    assert_int_equal(poll(&told_of, 1, 10000), 1);
    assert_true(told_of.revents & POLLERR);
}

static int look_again(struct wf_engine *engine, int times)
{
    struct wf_op *finished[1];
    for (int i = 0; i < times; i++)
        if (engine->ops->poll(engine, finished, 1, 1000000) == 1)
            return 1;
    return 0;
}

/* The stream takes bytes, and the kernel no more loans: the engine makes no call before one has ended. */
static void waits_for_room(const struct wf_engine_ops *ops)
{
    struct wf_engine *engine;
    struct wf_status status;
    if (ops->probe(NULL, &status) < 0) {
        print_message("skipped: %s: %s\n", ops->name, status.text);
        return;
    }
    int other = connect_stream();
    assert_int_equal(__real_setsockopt(FD, SOL_SOCKET, SO_ZEROCOPY, &(int){1}, sizeof(int)), 0);
    assert_int_equal(ops->open(NULL, &(struct wf_engine_limits){.call_bytes = PIECE}, &engine, &status), 0);
    assert_int_equal(ops->attach(engine, FD), 0);
    begin(2);
    is_real = true;
    sends[0] = PIECE;
    for (int i = 1; i < ANSWERS; i++)
        sends[i] = -ENOBUFS;
    wf_link_init(&op.link);
    ops->post(engine, &op);
    assert_int_equal(look_again(engine, 4), 0); /* at most once because it can be written to */
    int before = sent;
    assert_int_equal(op.lent, 1);
    assert_int_equal(look_again(engine, 20), 0);
    assert_int_equal(sent, before);
    sends[sent] = PIECE;
    let_go(other);
    assert_int_equal(look_again(engine, 4), 0);
    assert_int_equal(sent, before + 1);
    assert_int_equal(op.lent, 1);
    let_go(other);
    assert_int_equal(look_again(engine, 1000), 1);
    assert_int_equal(op.result, 2 * PIECE);
    assert_int_equal(sent, before + 1);
    is_real = false;
    ops->detach(engine, FD);
    ops->close(engine);
    close(FD);
    close(other);
}

static void test_engines_wait_for_room(void **state)
{
    (void)state;
    waits_for_room(&wf_engine_epoll);
    waits_for_room(&wf_engine_uring);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_ends_when_all_is_given_back),
        cmocka_unit_test(test_no_room_for_one_more_loan),
        cmocka_unit_test(test_no_room_for_the_first_loan),
        cmocka_unit_test(test_an_error_waits_for_what_is_lent),
        cmocka_unit_test(test_what_else_the_queue_tells),
        cmocka_unit_test(test_copies_are_counted),
        cmocka_unit_test(test_a_range_that_is_too_long),
        cmocka_unit_test(test_a_queue_that_cannot_be_read),
        cmocka_unit_test(test_some_are_given_back),
        cmocka_unit_test(test_engines_wait_for_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
