/* The epoll engine's hot descriptors: what makes one, what it does to large calls, that it is forgotten, and that one
 * the kernel is not asked about any more is read all the same. The calls are seen on their way to the kernel: this
 * program's send, sendmsg and epoll_ctl stand before the C library's. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "io/engine.h"

#define LARGE (1u << 20)
#define CALL (512u * 1024)
#define CUT (128u * 1024)
#define NO_FD (-1)
#define MANY 100 /* receives: more than it takes to mute a descriptor */

static size_t most_sent; /* the most that one call was asked to send */

ssize_t send(int fd, const void *data, size_t length, int flags)
{
    most_sent = length > most_sent ? length : most_sent;
    return syscall(SYS_sendto, fd, data, length, flags, NULL, 0);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    size_t length = 0;
    for (size_t i = 0; i < message->msg_iovlen; i++)
        length += message->msg_iov[i].iov_len;
    most_sent = length > most_sent ? length : most_sent;
    return syscall(SYS_sendmsg, fd, message, flags);
}

static int forgotten = NO_FD; /* the last descriptor that epoll was told to forget, if it was not told of it again */
static int refusal;           /* what an attempt to tell epoll of a descriptor gets; 0: the truth */

int epoll_ctl(int epoll_fd, int how, int fd, struct epoll_event *event)
{
    if (how != EPOLL_CTL_DEL && refusal) {
        errno = refusal;
        return -1;
    }
    if (how == EPOLL_CTL_DEL)
        forgotten = fd;
    else if (how == EPOLL_CTL_ADD && fd == forgotten)
        forgotten = NO_FD;
    return (int)syscall(SYS_epoll_ctl, epoll_fd, how, fd, event);
}

/* An engine, a stream for small messages and one for large ones; [0] is the engine's end. */
struct fixture {
    struct wf_engine *engine;
    int small[2], large[2];
    uint8_t *data;
    uint8_t bytes[2];
    struct iovec small_piece, large_piece;
    struct wf_op recv, send;
};

static void make_pair(struct fixture *fixture, int fds[2])
{
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    int room = 4 * LARGE;
    (void)setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
    assert_int_equal(fixture->engine->ops->attach(fixture->engine, fds[0]), 0);
}

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    struct wf_engine_limits limits = {.call_bytes = CALL, .read_ahead = WF_READ_AHEAD_OFF};
    struct wf_status status = {0};
    assert_non_null(fixture);
    assert_int_equal(wf_engine_epoll.open(NULL, &limits, &fixture->engine, &status), 0);
    fixture->data = calloc(1, LARGE);
    assert_non_null(fixture->data);
    make_pair(fixture, fixture->small);
    make_pair(fixture, fixture->large);
    most_sent = 0;
    forgotten = NO_FD;
    refusal = 0;
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    struct wf_op *finished[4];
    struct wf_engine *engine = fixture->engine;
    engine->ops->cancel(engine, &fixture->recv);
    engine->ops->cancel(engine, &fixture->send);
    while (engine->ops->poll(engine, finished, 4, 0) > 0)
        continue;
    for (int i = 0; i < 2; i++) {
        engine->ops->detach(engine, i == 0 ? fixture->small[0] : fixture->large[0]);
        close(fixture->small[i]);
        close(fixture->large[i]);
    }
    engine->ops->close(engine);
    free(fixture->data);
    free(fixture);
    return 0;
}

/* Asks for more than will come, as the read-ahead of a channel does. */
static void post_receive(struct fixture *fixture, bool urgent)
{
    fixture->small_piece = (struct iovec){fixture->bytes, sizeof(fixture->bytes)};
    fixture->recv = (struct wf_op){
        .kind = WF_OP_RECV, .fd = fixture->small[0], .iov = &fixture->small_piece, .iov_count = 1, .urgent = urgent};
    fixture->engine->ops->post(fixture->engine, &fixture->recv);
}

static int poll_until(struct fixture *fixture, int64_t end)
{
    struct wf_op *finished[4];
    int count = 0;
    while (count == 0 && wf_clock_now(&wf_clock_monotonic) < end)
        count = fixture->engine->ops->poll(fixture->engine, finished, 4, 0);
    return count;
}

/* A byte comes by an operation that is urgent or not, and another such operation waits for the next. */
static void receive(struct fixture *fixture, bool urgent)
{
    post_receive(fixture, urgent);
    assert_int_equal(write(fixture->small[1], "x", 1), 1);
    assert_int_equal(poll_until(fixture, wf_clock_now(&wf_clock_monotonic) + 5 * WF_NS_PER_S), 1);
    assert_int_equal(fixture->recv.result, 1);
    post_receive(fixture, urgent);
}

/* Sends a large message and tells the most that one call took of it. */
static size_t send_large(struct fixture *fixture)
{
    struct wf_op *finished[4];
    static uint8_t sink[LARGE];
    int64_t end = wf_clock_now(&wf_clock_monotonic) + 5 * WF_NS_PER_S;
    fixture->large_piece = (struct iovec){fixture->data, LARGE};
    fixture->send =
        (struct wf_op){.kind = WF_OP_SEND, .fd = fixture->large[0], .iov = &fixture->large_piece, .iov_count = 1};
    most_sent = 0;
    fixture->engine->ops->post(fixture->engine, &fixture->send);
    int count = 0;
    while (count == 0 && wf_clock_now(&wf_clock_monotonic) < end) {
        (void)!read(fixture->large[1], sink, sizeof(sink));
        count = fixture->engine->ops->poll(fixture->engine, finished, 4, 0);
    }
    assert_int_equal(count, 1);
    assert_int_equal(fixture->send.result, LARGE);
    while (read(fixture->large[1], sink, sizeof(sink)) > 0)
        continue;
    return most_sent;
}

static void what_is_not_urgent_cuts_nothing(void **state)
{
    receive(*state, false);
    assert_int_equal(send_large(*state), CALL);
}

static void what_is_urgent_cuts_large_calls(void **state)
{
    receive(*state, true);
    assert_int_equal(send_large(*state), CUT);
}

/* Nothing more comes: after some looks in vain large calls are whole again. */
static void it_cools(void **state)
{
    struct fixture *fixture = *state;
    struct wf_op *finished[4];
    receive(fixture, true);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(fixture->engine->ops->poll(fixture->engine, finished, 4, 0), 0);
    assert_int_equal(send_large(fixture), CALL);
}

/* The number may be another's next: nothing of it may stay behind. */
static void it_is_forgotten_at_detach(void **state)
{
    struct fixture *fixture = *state;
    struct wf_op *finished[4];
    struct wf_engine *engine = fixture->engine;
    receive(fixture, true);
    engine->ops->cancel(engine, &fixture->recv);
    assert_int_equal(engine->ops->poll(engine, finished, 4, 0), 1);
    engine->ops->detach(engine, fixture->small[0]);
    assert_int_equal(send_large(fixture), CALL);
    assert_int_equal(engine->ops->attach(engine, fixture->small[0]), 0);
    assert_int_equal(send_large(fixture), CALL);
}

/* So many messages that the descriptor is read without asking the kernel. A receive is posted. */
static void mute(struct fixture *fixture, bool urgent)
{
    struct wf_op *finished[4];
    receive(fixture, urgent);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(write(fixture->small[1], "x", 1), 1);
        assert_int_equal(poll_until(fixture, wf_clock_now(&wf_clock_monotonic) + 5 * WF_NS_PER_S), 1);
        post_receive(fixture, urgent);
    }
    assert_int_equal(fixture->engine->ops->poll(fixture->engine, finished, 4, 0), 0);
    assert_int_equal(forgotten, fixture->small[0]);
}

/* What comes next ends the posted receive. */
static void expect_byte(struct fixture *fixture)
{
    assert_int_equal(write(fixture->small[1], "y", 1), 1);
    assert_int_equal(poll_until(fixture, wf_clock_now(&wf_clock_monotonic) + 5 * WF_NS_PER_S), 1);
    assert_int_equal(fixture->recv.result, 1);
    assert_int_equal(fixture->bytes[0], 'y');
}

static void what_is_muted_is_read(void **state)
{
    mute(*state, true);
    expect_byte(*state);
    assert_int_equal(forgotten, ((struct fixture *)*state)->small[0]);
}

static void what_is_muted_is_read_beside_large_messages(void **state)
{
    struct fixture *fixture = *state;
    struct wf_op *finished[4];
    static uint8_t sink[LARGE];
    mute(fixture, true);
    fixture->large_piece = (struct iovec){fixture->data, LARGE};
    fixture->send =
        (struct wf_op){.kind = WF_OP_SEND, .fd = fixture->large[0], .iov = &fixture->large_piece, .iov_count = 1};
    fixture->engine->ops->post(fixture->engine, &fixture->send);
    assert_int_equal(write(fixture->small[1], "y", 1), 1);
    bool small = false, large = false;
    int64_t end = wf_clock_now(&wf_clock_monotonic) + 5 * WF_NS_PER_S;
    while (!(small && large) && wf_clock_now(&wf_clock_monotonic) < end) {
        (void)!read(fixture->large[1], sink, sizeof(sink));
        int count = fixture->engine->ops->poll(fixture->engine, finished, 4, 0);
        for (int i = 0; i < count; i++) {
            small |= finished[i] == &fixture->recv;
            large |= finished[i] == &fixture->send;
        }
    }
    assert_true(small && large);
}

static void *write_late(void *argument)
{
    struct fixture *fixture = argument;
    struct timespec while_it_sleeps = {.tv_nsec = 20 * WF_NS_PER_MS};
    nanosleep(&while_it_sleeps, NULL);
    assert_int_equal(write(fixture->small[1], "y", 1), 1);
    return NULL;
}

static void sleep_ends_for_what_was_muted(void **state)
{
    struct fixture *fixture = *state;
    struct wf_op *finished[4];
    pthread_t thread;
    mute(fixture, true);
    assert_int_equal(pthread_create(&thread, NULL, write_late, fixture), 0);
    int count = fixture->engine->ops->poll(fixture->engine, finished, 4, 5 * WF_NS_PER_S);
    for (int i = 0; count == 0 && i < 5; i++) /* a signal ends it early */
        count = fixture->engine->ops->poll(fixture->engine, finished, 4, 5 * WF_NS_PER_S);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(count, 1);
    assert_int_equal(fixture->recv.result, 1);
    assert_int_equal(forgotten, NO_FD);
}

static void sleep_does_not_begin_when_it_has_come(void **state)
{
    struct fixture *fixture = *state;
    struct wf_op *finished[4];
    mute(fixture, true);
    assert_int_equal(write(fixture->small[1], "y", 1), 1);
    int64_t begin = wf_clock_now(&wf_clock_monotonic);
    assert_int_equal(fixture->engine->ops->poll(fixture->engine, finished, 4, 60 * WF_NS_PER_S), 1);
    assert_true(wf_clock_now(&wf_clock_monotonic) - begin < 30 * WF_NS_PER_S);
}

/* Posted while the engine already knew it as muted. */
static void a_receive_posted_late_ends_sleep(void **state)
{
    struct fixture *fixture = *state;
    struct wf_engine *engine = fixture->engine;
    struct wf_op *finished[4];
    mute(fixture, true);
    engine->ops->cancel(engine, &fixture->recv);
    assert_int_equal(engine->ops->poll(engine, finished, 4, 0), 1);
    assert_int_equal(engine->ops->poll(engine, finished, 4, WF_NS_PER_MS), 0);
    post_receive(fixture, true);
    assert_int_equal(write(fixture->small[1], "y", 1), 1);
    assert_int_equal(engine->ops->poll(engine, finished, 4, 60 * WF_NS_PER_S), 1);
    assert_int_equal(fixture->recv.result, 1);
}

static void what_cools_is_muted_no_more(void **state)
{
    struct fixture *fixture = *state;
    struct wf_op *finished[4];
    mute(fixture, true);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(fixture->engine->ops->poll(fixture->engine, finished, 4, 0), 0);
    assert_int_equal(forgotten, NO_FD);
    expect_byte(fixture);
}

/* Where others are read as well it is not worth a look in vain. */
static void what_is_not_urgent_any_more_is_muted_no_more(void **state)
{
    struct fixture *fixture = *state;
    struct wf_op *finished[4];
    int other[2];
    make_pair(fixture, other);
    mute(fixture, true);
    expect_byte(fixture);
    post_receive(fixture, false);
    for (int i = 0; i < 4; i++)
        assert_int_equal(fixture->engine->ops->poll(fixture->engine, finished, 4, 0), 0);
    assert_int_equal(forgotten, NO_FD);
    expect_byte(fixture);
    fixture->engine->ops->detach(fixture->engine, other[0]);
    close(other[0]);
    close(other[1]);
}

static void what_is_not_urgent_is_muted_as_well(void **state)
{
    struct fixture *fixture = *state;
    mute(fixture, false);
    assert_int_equal(send_large(fixture), CALL);
    expect_byte(fixture);
}

static void beside_others_it_is_not(void **state)
{
    struct fixture *fixture = *state;
    int other[2];
    make_pair(fixture, other);
    for (int i = 0; i < MANY; i++) {
        receive(fixture, false);
        expect_byte(fixture);
    }
    assert_int_equal(forgotten, NO_FD);
    fixture->engine->ops->detach(fixture->engine, other[0]);
    close(other[0]);
    close(other[1]);
}

/* The kernel may have no memory for it by then: nobody is to wait for ever. */
static void a_refusal_ends_the_receive(void **state)
{
    struct fixture *fixture = *state;
    struct wf_op *finished[4];
    mute(fixture, true);
    refusal = ENOSPC;
    assert_int_equal(fixture->engine->ops->poll(fixture->engine, finished, 4, 60 * WF_NS_PER_S), 1);
    refusal = 0;
    assert_int_equal(fixture->recv.result, -ENOSPC);
    post_receive(fixture, true);
    expect_byte(fixture);
}

static void the_end_is_seen_of_what_is_muted(void **state)
{
    struct fixture *fixture = *state;
    mute(fixture, true);
    assert_int_equal(shutdown(fixture->small[1], SHUT_WR), 0);
    assert_int_equal(poll_until(fixture, wf_clock_now(&wf_clock_monotonic) + 5 * WF_NS_PER_S), 1);
    assert_int_equal(fixture->recv.result, 0);
}

/* An answer that finds no room waits for the kernel to tell of some. */
static void a_send_that_waits_is_told(void **state)
{
    struct fixture *fixture = *state;
    struct wf_engine *engine = fixture->engine;
    struct wf_op *finished[4];
    static uint8_t sink[LARGE];
    mute(fixture, true);
    while (write(fixture->small[0], sink, sizeof(sink)) > 0)
        continue;
    fixture->large_piece = (struct iovec){fixture->data, LARGE};
    fixture->send =
        (struct wf_op){.kind = WF_OP_SEND, .fd = fixture->small[0], .iov = &fixture->large_piece, .iov_count = 1};
    engine->ops->post(engine, &fixture->send);
    assert_int_equal(engine->ops->poll(engine, finished, 4, 0), 0);
    int64_t end = wf_clock_now(&wf_clock_monotonic) + 5 * WF_NS_PER_S;
    int count = 0;
    while (count == 0 && wf_clock_now(&wf_clock_monotonic) < end) {
        (void)!read(fixture->small[1], sink, sizeof(sink));
        count = engine->ops->poll(engine, finished, 4, WF_NS_PER_MS);
    }
    assert_int_equal(count, 1);
    assert_ptr_equal(finished[0], &fixture->send);
    expect_byte(fixture);
}

static void what_is_muted_is_forgotten_at_detach(void **state)
{
    struct fixture *fixture = *state;
    struct wf_engine *engine = fixture->engine;
    struct wf_op *finished[4];
    mute(fixture, true);
    assert_int_equal(engine->ops->attach(engine, fixture->small[0]), -EEXIST);
    engine->ops->cancel(engine, &fixture->recv);
    assert_int_equal(engine->ops->poll(engine, finished, 4, 0), 1);
    engine->ops->detach(engine, fixture->small[0]);
    assert_int_equal(engine->ops->attach(engine, fixture->small[0]), 0);
    post_receive(fixture, false);
    expect_byte(fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_not_urgent_cuts_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_urgent_cuts_large_calls, set_up, tear_down),
        cmocka_unit_test_setup_teardown(it_cools, set_up, tear_down),
        cmocka_unit_test_setup_teardown(it_is_forgotten_at_detach, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_muted_is_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_muted_is_read_beside_large_messages, set_up, tear_down),
        cmocka_unit_test_setup_teardown(sleep_ends_for_what_was_muted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(sleep_does_not_begin_when_it_has_come, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_receive_posted_late_ends_sleep, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_cools_is_muted_no_more, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_not_urgent_any_more_is_muted_no_more, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_not_urgent_is_muted_as_well, set_up, tear_down),
        cmocka_unit_test_setup_teardown(beside_others_it_is_not, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_refusal_ends_the_receive, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_end_is_seen_of_what_is_muted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_send_that_waits_is_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_muted_is_forgotten_at_detach, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
