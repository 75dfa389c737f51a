/*
 * Messages one way. A stream that has room takes the next of them, so that none waits for a slower one; all have the
 * same size, so that the receiver needs no header to count them.
 *
 * Few streams are asked in rounds whether they can move: that takes the fewest calls where most of them can. Of many,
 * most cannot, and a call on each of them would cost more than the messages: ready.c knows which can.
 */
#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "parts.h"

/* The bytes that come back. */
enum { SIGN_CREDIT = 'c', SIGN_ALL_THERE = 'd' };
#define SIGNS_MOST 256 /* of one call */

/* How far a phase has come. Owner: the measuring thread. */
struct progress {
    uint64_t messages; /* of the phase */
    uint64_t given;    /* sender: messages that a stream has been given */
    uint64_t done;     /* sender: bytes sent; receiver: messages there */
    uint64_t credits;  /* bytes of SIGN_CREDIT that came or went */
    bool all_there;    /* SIGN_ALL_THERE has come */
};

static bool is_many(const struct raw_link *link)
{
    return link->ready.epoll >= 0;
}

/* What one stream takes at a time. */
static uint64_t items(const struct raw_plan *plan)
{
    return plan->mode == RAW_RATE ? plan->batch : 1;
}

/* The most of one call, of messages that are under way. */
static uint64_t call_bytes(const struct raw_plan *plan, uint64_t bytes)
{
    return plan->mode != RAW_RATE && plan->call < bytes ? plan->call : bytes;
}

/* --- sender --- */

/* Gives `stream` what it sends next, as far as the window is open. */
static void give(const struct raw_link *link, struct raw_stream *stream, struct progress *at)
{
    const struct raw_plan *plan = &link->plan;
    uint64_t count = items(plan), rest = at->messages - at->given;

    if (count > rest)
        count = rest;
    if (plan->inflight && at->given + count - at->credits * plan->batch > plan->inflight)
        return;
    at->given += count;
    stream->left = count * plan->size;
}

/* One call for what `stream` has left. The bytes that it moved, or -errno. */
static int64_t send_some(struct raw_link *link, struct raw_stream *stream, uint64_t bytes, struct progress *at)
{
    int64_t sent = raw_send(link, stream, bytes);

    if (sent > 0) {
        stream->left -= (uint64_t)sent;
        at->done += (uint64_t)sent;
    }
    return sent;
}

/* Sends what can be sent. The number of streams that moved, or -errno. */
static int send_round(struct raw_link *link, struct progress *at)
{
    int moved = 0;

    for (int i = 0; i < link->stream_count; i++) {
        struct raw_stream *stream = &link->streams[i];
        if (stream->left == 0)
            give(link, stream, at);
        if (stream->left == 0)
            continue;
        int64_t sent = send_some(link, stream, call_bytes(&link->plan, stream->left), at);
        if (sent < 0)
            return (int)sent;
        moved += sent > 0;
    }
    return moved;
}

/* One call on each of many streams that may have room. A stream in the middle of a message stands before all that have
 * none: where one with none is given none, the window is closed, and nothing is left to send. */
static int send_ready(struct raw_link *link, struct progress *at)
{
    struct raw_ready *ready = &link->ready;
    int moved = 0;

    for (int turns = ready->count; turns > 0; turns--) {
        struct raw_stream *stream = raw_ready_take(ready);
        if (stream->left == 0)
            give(link, stream, at);
        if (stream->left == 0) {
            raw_ready_put(ready, stream, true);
            break;
        }
        uint64_t bytes = call_bytes(&link->plan, stream->left);
        int64_t sent = send_some(link, stream, bytes, at);
        if (sent < 0)
            return (int)sent;
        if ((uint64_t)sent == bytes) /* else it is full, and an event tells when it is no longer */
            raw_ready_put(ready, stream, stream->left > 0);
        moved += sent > 0;
    }
    return moved;
}

/* Takes signs that have come on `stream`; in a call that waits, where the plan says so. Their number, or -errno. */
static int take_some(struct raw_link *link, struct raw_stream *stream, struct progress *at)
{
    char signs[SIGNS_MOST];
    int flags = raw_call_flags(link);
    ssize_t count = recv(stream->fd, signs, sizeof signs, flags);

    if (count == 0)
        return -ECONNRESET;
    if (count < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
        return -errno;
    if (count < 0 && flags == 0 && errno != EINTR)
        return -ETIMEDOUT;
    for (ssize_t i = 0; i < count; i++) {
        if (signs[i] == SIGN_ALL_THERE)
            at->all_there = true;
        else
            at->credits++;
    }
    link->moved |= count > 0;
    return count > 0 ? (int)count : 0;
}

static int take_signs(struct raw_link *link, struct progress *at)
{
    int taken = 0;

    for (int i = 0; i < link->stream_count; i++) {
        int count = take_some(link, &link->streams[i], at);
        if (count < 0)
            return count;
        taken += count;
    }
    return taken;
}

/* Takes all signs of those of many streams that have some, and notes which have room again. */
static int take_events(struct raw_link *link, bool idle, struct progress *at)
{
    struct epoll_event events[RAW_EVENTS];
    int count = raw_ready_look(link, idle, events);

    for (int i = 0; i < count; i++) {
        struct raw_stream *stream = events[i].data.ptr;
        int taken = events[i].events & EPOLLIN ? SIGNS_MOST : 0;
        while (taken == SIGNS_MOST)
            taken = take_some(link, stream, at);
        if (taken < 0)
            return taken;
        if (events[i].events & EPOLLOUT)
            raw_ready_put(&link->ready, stream, stream->left > 0);
    }
    return count < 0 ? count : 0;
}

/* Until the server has said that all is there, and nothing is left that the next phase would take for its own. */
static int take_last_signs(struct raw_link *link, struct progress *at)
{
    uint64_t credits = link->plan.inflight ? at->messages / link->plan.batch : 0;

    while (!at->all_there || at->credits < credits) {
        int result = is_many(link) ? take_events(link, true, at) : take_signs(link, at);
        if (result == 0 && !is_many(link))
            result = raw_idle(link, POLLIN);
        if (result < 0)
            return result;
    }
    return 0;
}

static int send_to_many(struct raw_link *link, struct progress *at)
{
    while (at->done < at->messages * link->plan.size) {
        int result = send_ready(link, at);
        if (result >= 0)
            result = take_events(link, result == 0, at);
        if (result < 0)
            return result;
    }
    return take_last_signs(link, at);
}

int raw_flow_send(struct raw_link *link, uint64_t messages)
{
    struct progress at = {.messages = messages};

    if (is_many(link))
        return send_to_many(link, &at);
    while (at.done < messages * link->plan.size) {
        int result = send_round(link, &at);
        if (result == 0 && (link->stream_count > 1 || !raw_sending(link)))
            result = take_signs(link, &at);
        if (result == 0)
            result = raw_idle(link, raw_sending(link) ? POLLOUT : POLLIN);
        if (result < 0)
            return result;
    }
    return take_last_signs(link, &at);
}

/* --- receiver --- */

/* A byte for each batch that has become complete. */
static int return_credits(struct raw_link *link, struct raw_stream *stream, struct progress *at)
{
    static const char signs[16] = {'c', 'c', 'c', 'c', 'c', 'c', 'c', 'c', 'c', 'c', 'c', 'c', 'c', 'c', 'c', 'c'};
    uint64_t due = at->done / link->plan.batch - at->credits;
    int result = 0;

    while (due && result == 0) {
        uint64_t count = due < sizeof signs ? due : sizeof signs;
        result = raw_put(link, stream, signs, count);
        at->credits += count;
        due -= count;
    }
    return result;
}

/* The most that one call may take: to the end of a message, or, where messages come in batches, all there can be. */
static uint64_t wanted(const struct raw_link *link, const struct raw_stream *stream)
{
    const struct raw_plan *plan = &link->plan;

    if (plan->mode == RAW_RATE)
        return (plan->inflight ? plan->inflight : plan->batch) * plan->size;
    return call_bytes(plan, plan->size - stream->partial);
}

/* One call for what may have come on `stream`. The bytes that it moved, or -errno. */
static int64_t receive_some(struct raw_link *link, struct raw_stream *stream, uint64_t bytes, struct progress *at)
{
    int64_t got = raw_receive(link, stream, bytes);

    if (got <= 0)
        return got;
    stream->partial += (uint64_t)got;
    at->done += stream->partial / link->plan.size;
    stream->partial %= link->plan.size;
    int result = link->plan.inflight ? return_credits(link, stream, at) : 0;
    return result ? result : got;
}

static int receive_round(struct raw_link *link, struct progress *at)
{
    int moved = 0;

    for (int i = 0; i < link->stream_count; i++) {
        struct raw_stream *stream = &link->streams[i];
        int64_t got = receive_some(link, stream, wanted(link, stream), at);
        if (got < 0)
            return (int)got;
        moved += got > 0;
    }
    return moved;
}

/* One call on each of many streams that may have something. */
static int receive_ready(struct raw_link *link, struct progress *at)
{
    struct raw_ready *ready = &link->ready;
    int moved = 0;

    for (int turns = ready->count; turns > 0; turns--) {
        struct raw_stream *stream = raw_ready_take(ready);
        uint64_t bytes = wanted(link, stream);
        int64_t got = receive_some(link, stream, bytes, at);
        if (got < 0)
            return (int)got;
        if ((uint64_t)got == bytes) /* else it is empty, and an event tells when it is no longer */
            raw_ready_put(ready, stream, false);
        moved += got > 0;
    }
    return moved;
}

static int receive_from_many(struct raw_link *link, struct progress *at)
{
    struct epoll_event events[RAW_EVENTS];

    while (at->done < at->messages) {
        int moved = receive_ready(link, at);
        int count = moved < 0 ? moved : raw_ready_look(link, moved == 0, events);
        for (int i = 0; i < count; i++)
            raw_ready_put(&link->ready, events[i].data.ptr, false);
        if (count < 0)
            return count;
    }
    return 0;
}

int raw_flow_receive(struct raw_link *link, uint64_t messages)
{
    struct progress at = {.messages = messages};

    if (is_many(link))
        return receive_from_many(link, &at);
    while (at.done < messages) {
        int result = receive_round(link, &at);
        if (result == 0)
            result = raw_idle(link, POLLIN);
        if (result < 0)
            return result;
    }
    return 0;
}

int raw_flow_confirm(struct raw_link *link)
{
    static const char sign = SIGN_ALL_THERE;

    return raw_put(link, &link->streams[0], &sign, 1);
}
