/*
 * Messages one way. A stream that has room takes the next of them, so that none waits for a slower one; all have the
 * same size, so that the receiver needs no header to count them.
 */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "raw.h"

/* The bytes that come back. */
enum { SIGN_CREDIT = 'c', SIGN_ALL_THERE = 'd' };

/* How far a phase has come. Owner: the measuring thread. */
struct progress {
    uint64_t messages; /* of the phase */
    uint64_t given;    /* sender: messages that a stream has been given */
    uint64_t done;     /* sender: bytes sent; receiver: messages there */
    uint64_t credits;  /* bytes of SIGN_CREDIT that came or went */
    bool all_there;    /* SIGN_ALL_THERE has come */
};

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
        int64_t sent = raw_send(link, stream, call_bytes(&link->plan, stream->left));
        if (sent < 0)
            return (int)sent;
        stream->left -= (uint64_t)sent;
        at->done += (uint64_t)sent;
        moved += sent > 0;
    }
    return moved;
}

/* Takes the signs that have come; in a call that waits, where the plan says so. Their number, or -errno. */
static int take_signs(struct raw_link *link, struct progress *at)
{
    char signs[256];
    int flags = raw_call_flags(link), taken = 0;

    for (int i = 0; i < link->stream_count; i++) {
        ssize_t count = recv(link->streams[i].fd, signs, sizeof signs, flags);
        if (count == 0)
            return -ECONNRESET;
        if (count < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
            return -errno;
        if (count < 0 && flags == 0 && errno != EINTR)
            return -ETIMEDOUT;
        for (ssize_t j = 0; j < count; j++) {
            if (signs[j] == SIGN_ALL_THERE)
                at->all_there = true;
            else
                at->credits++;
        }
        taken += count > 0 ? (int)count : 0;
    }
    link->moved |= taken > 0;
    return taken;
}

/* Until the server has said that all is there, and nothing is left that the next phase would take for its own. */
static int take_last_signs(struct raw_link *link, struct progress *at)
{
    uint64_t credits = link->plan.inflight ? at->messages / link->plan.batch : 0;

    while (!at->all_there || at->credits < credits) {
        int result = take_signs(link, at);
        if (result == 0)
            result = raw_idle(link, POLLIN);
        if (result < 0)
            return result;
    }
    return 0;
}

int raw_flow_send(struct raw_link *link, uint64_t messages)
{
    struct progress at = {.messages = messages};

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

static int receive_round(struct raw_link *link, struct progress *at)
{
    int moved = 0;

    for (int i = 0; i < link->stream_count; i++) {
        struct raw_stream *stream = &link->streams[i];
        int64_t got = raw_receive(link, stream, wanted(link, stream));
        if (got < 0)
            return (int)got;
        stream->partial += (uint64_t)got;
        at->done += stream->partial / link->plan.size;
        stream->partial %= link->plan.size;
        moved += got > 0;
        if (got && link->plan.inflight) {
            int result = return_credits(link, stream, at);
            if (result)
                return result;
        }
    }
    return moved;
}

int raw_flow_receive(struct raw_link *link, uint64_t messages)
{
    struct progress at = {.messages = messages};

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
