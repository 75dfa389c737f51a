/* Ping-pong on the first stream. */
#include <errno.h>
#include <poll.h>

#include "base/clock.h"
#include "parts.h"

static int send_message(struct raw_link *link)
{
    uint64_t left = link->plan.size;

    while (left) {
        int64_t moved = raw_send(link, &link->streams[0], left);
        if (moved == 0)
            moved = raw_idle_on(link, &link->streams[0], POLLOUT);
        if (moved < 0)
            return (int)moved;
        left -= (uint64_t)moved;
    }
    return 0;
}

/* Into the area that the next message goes out of: a ping-pong has one message under way. */
static int receive_message(struct raw_link *link)
{
    uint64_t left = link->plan.size;

    while (left) {
        int64_t moved = raw_receive(link, &link->streams[0], left);
        if (moved == 0)
            moved = raw_idle_on(link, &link->streams[0], POLLIN);
        if (moved < 0)
            return (int)moved;
        left -= (uint64_t)moved;
    }
    return 0;
}

int raw_ping(struct raw_link *link, uint64_t messages, double *times_ns)
{
    int64_t before = wf_clock_now(&wf_clock_monotonic);
    int result = 0;

    for (uint64_t i = 0; result == 0 && i < messages; i++) {
        result = send_message(link);
        if (result == 0)
            result = receive_message(link);
        int64_t now = wf_clock_now(&wf_clock_monotonic);
        if (times_ns)
            times_ns[i] = (double)(now - before) / 2;
        before = now;
    }
    return result;
}

int raw_pong(struct raw_link *link, uint64_t messages)
{
    int result = 0;

    for (uint64_t i = 0; result == 0 && i < messages; i++) {
        result = receive_message(link);
        if (result == 0)
            result = send_message(link);
    }
    return result;
}
