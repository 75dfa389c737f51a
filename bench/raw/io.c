/* Moving bytes between the ring and the sockets: one system call each. */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/clock.h"
#include "parts.h"

#define PIECES_MAX 64      /* of the ring, in one call */
#define LINE_BYTES 64      /* of a cache */
#define LOOK_AFTER 4096ull /* empty rounds between two looks at the clock */

/* A call waits in the kernel only where there is one stream: with more, nobody knows which will move first. */
int raw_call_flags(const struct raw_link *link)
{
    return link->plan.block && link->stream_count == 1 ? 0 : MSG_DONTWAIT;
}

/* What a call returned, as a count or -errno. */
static int64_t outcome(struct raw_link *link, ssize_t moved, bool receiving)
{
    if (moved > 0) {
        link->moved = true;
        return moved;
    }
    if (moved == 0)
        return receiving ? -ECONNRESET : 0;
    if (errno == EINTR)
        return 0;
    if (errno == EAGAIN || errno == EWOULDBLOCK)
        return raw_call_flags(link) ? 0 : -ETIMEDOUT; /* SO_RCVTIMEO and SO_SNDTIMEO are the plan's time */
    return errno == EPIPE ? -ECONNRESET : -errno;
}

/* The next `bytes` of the ring from `place` on, which may lead over its end more than once. Returns the pieces. */
static int pieces_of(const struct raw_link *link, uint64_t place, uint64_t bytes, struct iovec *pieces)
{
    int count = 0;

    while (bytes && count < PIECES_MAX) {
        uint64_t run = link->ring_bytes - place < bytes ? link->ring_bytes - place : bytes;
        pieces[count].iov_base = link->ring + place;
        pieces[count++].iov_len = run;
        bytes -= run;
        place = 0;
    }
    return count;
}

/* Reads what the next call may take, except what a call before it left over: plain sockets may do so, too. */
static void read_ahead(const struct raw_link *link, struct raw_stream *stream, uint64_t bytes)
{
    while (stream->ahead < bytes) {
        uint64_t from = (stream->place + stream->ahead) % link->ring_bytes, rest = bytes - stream->ahead;
        uint64_t run = link->ring_bytes - from < rest ? link->ring_bytes - from : rest;
        for (const uint8_t *at = link->ring + from; at < link->ring + from + run; at += LINE_BYTES)
            (void)*(const volatile uint8_t *)at;
        stream->ahead += run;
    }
}

static void advance(struct raw_link *link, struct raw_stream *stream, uint64_t bytes)
{
    stream->ahead -= stream->ahead < bytes ? stream->ahead : bytes;
    stream->place += bytes;
    if (stream->place >= link->ring_bytes)
        stream->place %= link->ring_bytes;
}

int64_t raw_send(struct raw_link *link, struct raw_stream *stream, uint64_t bytes)
{
    int flags = raw_call_flags(link) | MSG_NOSIGNAL;
    int64_t moved;

    if (link->read_ahead)
        read_ahead(link, stream, bytes);
    if (stream->place + bytes <= link->ring_bytes) {
        moved = outcome(link, send(stream->fd, link->ring + stream->place, bytes, flags), false);
    } else {
        struct iovec pieces[PIECES_MAX];
        struct msghdr message = {.msg_iov = pieces};
        message.msg_iovlen = (size_t)pieces_of(link, stream->place, bytes, pieces);
        moved = outcome(link, sendmsg(stream->fd, &message, flags), false);
    }
    if (moved > 0)
        advance(link, stream, (uint64_t)moved);
    return moved;
}

int64_t raw_receive(struct raw_link *link, struct raw_stream *stream, uint64_t bytes)
{
    int flags = raw_call_flags(link);
    int64_t moved;

    if (stream->place + bytes <= link->ring_bytes) {
        moved = outcome(link, recv(stream->fd, link->ring + stream->place, bytes, flags), true);
    } else {
        struct iovec pieces[PIECES_MAX];
        struct msghdr message = {.msg_iov = pieces};
        message.msg_iovlen = (size_t)pieces_of(link, stream->place, bytes, pieces);
        moved = outcome(link, recvmsg(stream->fd, &message, flags), true);
    }
    if (moved > 0)
        advance(link, stream, (uint64_t)moved);
    return moved;
}

int raw_put(struct raw_link *link, struct raw_stream *stream, const void *from, uint64_t bytes)
{
    const char *at = from;
    int64_t moved = 0;

    while (bytes && moved >= 0) {
        moved = outcome(link, send(stream->fd, at, bytes, raw_call_flags(link) | MSG_NOSIGNAL), false);
        if (moved == 0)
            moved = raw_idle_on(link, stream, POLLOUT);
        if (moved > 0) {
            at += moved;
            bytes -= (uint64_t)moved;
        }
    }
    return moved < 0 ? (int)moved : 0;
}

int raw_get(struct raw_link *link, struct raw_stream *stream, void *to, uint64_t bytes)
{
    char *at = to;
    int64_t moved = 0;

    while (bytes && moved >= 0) {
        moved = outcome(link, recv(stream->fd, at, bytes, raw_call_flags(link)), true);
        if (moved == 0)
            moved = raw_idle_on(link, stream, POLLIN);
        if (moved > 0) {
            at += moved;
            bytes -= (uint64_t)moved;
        }
    }
    return moved < 0 ? (int)moved : 0;
}

bool raw_sending(const struct raw_link *link)
{
    for (int i = 0; i < link->stream_count; i++)
        if (link->streams[i].left)
            return true;
    return false;
}

static int wait_in_poll(struct raw_link *link, struct pollfd *polled, int count)
{
    int ready = poll(polled, (nfds_t)count, (int)link->plan.timeout_s * 1000);

    if (ready == 0)
        return -ETIMEDOUT;
    return ready < 0 && errno != EINTR ? -errno : 0;
}

int raw_idle(struct raw_link *link, short events)
{
    struct pollfd polled[RAW_ASKED_MAX];

    if (!link->plan.block)
        return raw_spin(link);
    bool sending = raw_sending(link);

    for (int i = 0; i < link->stream_count; i++) {
        /* A stream with nothing to send would always be ready for it; what it waits for is credit. */
        bool spare = sending && link->streams[i].left == 0;
        polled[i] = (struct pollfd){.fd = link->streams[i].fd, .events = spare ? POLLIN : events};
    }
    return wait_in_poll(link, polled, link->stream_count);
}

int raw_idle_on(struct raw_link *link, const struct raw_stream *stream, short events)
{
    struct pollfd polled = {.fd = stream->fd, .events = events};

    return link->plan.block ? wait_in_poll(link, &polled, 1) : raw_spin(link);
}

int raw_spin(struct raw_link *link)
{
    if (link->yield)
        sched_yield();
    if (++link->idle_rounds % LOOK_AFTER != 0)
        return 0;
    int64_t now = wf_clock_now(&wf_clock_monotonic);
    if (link->moved || link->moved_ns == 0)
        link->moved_ns = now;
    link->moved = false;
    return now - link->moved_ns > (int64_t)link->plan.timeout_s * WF_NS_PER_S ? -ETIMEDOUT : 0;
}
