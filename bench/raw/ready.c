/*
 * Which of many streams can move. epoll tells once when a stream has something to read, or room, after it had none
 * (edge-triggered); the queue holds the streams that can move as far as is known, in the order of their turns. So no
 * call is spent on a stream that is idle, and none is passed over.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "parts.h"

int raw_ready_open(struct raw_link *link, uint32_t events, struct wf_status *status)
{
    struct raw_ready *ready = &link->ready;

    ready->queue = calloc((size_t)link->stream_count, sizeof(struct raw_stream *));
    if (!ready->queue)
        return wf_fail(status, -ENOMEM, "no memory for %d streams", link->stream_count);
    ready->places = link->stream_count;
    ready->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (ready->epoll < 0)
        return wf_fail(status, -errno, "cannot open an epoll: %s", wf_strerror(errno));
    for (int i = 0; i < link->stream_count; i++) {
        struct epoll_event event = {.events = events | EPOLLRDHUP | EPOLLET, .data.ptr = &link->streams[i]};
        if (epoll_ctl(ready->epoll, EPOLL_CTL_ADD, link->streams[i].fd, &event) != 0)
            return wf_fail(status, -errno, "cannot watch a stream: %s", wf_strerror(errno));
    }
    return 0;
}

void raw_ready_close(struct raw_ready *ready)
{
    if (ready->epoll >= 0)
        close(ready->epoll);
    free(ready->queue);
    *ready = (struct raw_ready){.epoll = -1};
}

struct raw_stream *raw_ready_take(struct raw_ready *ready)
{
    struct raw_stream *stream = ready->queue[ready->first];

    ready->first = (ready->first + 1) % ready->places;
    ready->count--;
    stream->queued = false;
    return stream;
}

void raw_ready_put(struct raw_ready *ready, struct raw_stream *stream, bool before)
{
    if (stream->queued)
        return;
    if (before)
        ready->first = (ready->first + ready->places - 1) % ready->places;
    ready->queue[before ? ready->first : (ready->first + ready->count) % ready->places] = stream;
    ready->count++;
    stream->queued = true;
}

/* 0, or what has ended a stream. No side closes one while messages are under way, and what has come before the end
 * would hide it: a call that takes less than it might is not repeated. */
static int end_of(const struct epoll_event *event)
{
    const struct raw_stream *stream = event->data.ptr;
    int code = 0;
    socklen_t length = sizeof code;

    if (!(event->events & (EPOLLERR | EPOLLHUP | EPOLLRDHUP)))
        return 0;
    if (getsockopt(stream->fd, SOL_SOCKET, SO_ERROR, &code, &length) == 0 && code && code != EPIPE)
        return -code;
    return -ECONNRESET;
}

int raw_ready_look(struct raw_link *link, bool idle, struct epoll_event events[RAW_EVENTS])
{
    int wait_ms = idle && link->plan.block ? (int)link->plan.timeout_s * 1000 : 0;
    int count = epoll_wait(link->ready.epoll, events, RAW_EVENTS, wait_ms);

    if (count < 0)
        return errno == EINTR ? 0 : -errno;
    if (count == 0 && idle)
        return link->plan.block ? -ETIMEDOUT : raw_spin(link);
    for (int i = 0; i < count; i++) {
        int result = end_of(&events[i]);
        if (result)
            return result;
    }
    return count;
}
