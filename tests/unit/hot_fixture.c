#include "hot_fixture.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

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

int epoll_forgot = NO_FD, epoll_forgets, epoll_refuses, recv_calls, recv_interrupts;

int epoll_ctl(int epoll_fd, int how, int fd, struct epoll_event *event)
{
    if (how != EPOLL_CTL_DEL && epoll_refuses) {
        errno = epoll_refuses;
        return -1;
    }
    if (how == EPOLL_CTL_DEL) {
        epoll_forgot = fd;
        epoll_forgets += 1;
    } else if (how == EPOLL_CTL_ADD && fd == epoll_forgot) {
        epoll_forgot = NO_FD;
    }
    return (int)syscall(SYS_epoll_ctl, epoll_fd, how, fd, event);
}

ssize_t recv(int fd, void *data, size_t length, int flags)
{
    recv_calls += 1;
    if (recv_interrupts > 0) {
        recv_interrupts -= 1;
        errno = EINTR;
        return -1;
    }
    return syscall(SYS_recvfrom, fd, data, length, flags, NULL, NULL);
}

void make_pair(struct fixture *fixture, int fds[2])
{
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    int room = 4 * LARGE;
    (void)setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
    assert_int_equal(fixture->engine->ops->attach(fixture->engine, fds[0]), 0);
}

void end_pair(struct fixture *fixture, int fds[2])
{
    fixture->engine->ops->detach(fixture->engine, fds[0]);
    close(fds[0]);
    close(fds[1]);
}

int set_up(void **state)
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
    epoll_forgot = NO_FD;
    epoll_forgets = epoll_refuses = recv_calls = recv_interrupts = 0;
    *state = fixture;
    return 0;
}

int tear_down(void **state)
{
    struct fixture *fixture = *state;
    struct wf_op *finished[4];
    struct wf_engine *engine = fixture->engine;
    engine->ops->cancel(engine, &fixture->recv);
    engine->ops->cancel(engine, &fixture->send);
    while (engine->ops->poll(engine, finished, 4, 0) > 0)
        continue;
    end_pair(fixture, fixture->small);
    end_pair(fixture, fixture->large);
    engine->ops->close(engine);
    free(fixture->data);
    free(fixture);
    return 0;
}

void post_receive(struct fixture *fixture, bool urgent)
{
    fixture->small_piece = (struct iovec){fixture->bytes, sizeof(fixture->bytes)};
    fixture->recv = (struct wf_op){
        .kind = WF_OP_RECV, .fd = fixture->small[0], .iov = &fixture->small_piece, .iov_count = 1, .urgent = urgent};
    fixture->engine->ops->post(fixture->engine, &fixture->recv);
}

int poll_until_ended(struct fixture *fixture, struct wf_op *finished[4])
{
    int64_t end = wf_clock_now(&wf_clock_monotonic) + PATIENCE_NS;
    int count = 0;
    while (count == 0 && wf_clock_now(&wf_clock_monotonic) < end)
        count = fixture->engine->ops->poll(fixture->engine, finished, 4, 0);
    return count;
}

void receive(struct fixture *fixture, bool urgent)
{
    struct wf_op *finished[4];
    post_receive(fixture, urgent);
    assert_int_equal(write(fixture->small[1], "x", 1), 1);
    assert_int_equal(poll_until_ended(fixture, finished), 1);
    assert_int_equal(fixture->recv.result, 1);
    post_receive(fixture, urgent);
}

size_t send_large(struct fixture *fixture)
{
    struct wf_op *finished[4];
    static uint8_t sink[LARGE];
    int64_t end = wf_clock_now(&wf_clock_monotonic) + PATIENCE_NS;
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
