/*
 * The epoll engine: completions made of readiness.
 *
 * What the edges said is remembered per descriptor (interest.h): a direction is believed ready until a call moved less
 * than it was asked to, or was refused.
 *
 * An operation is in one of three places: waiting in its descriptor's slot alone, also in `runnable`, or in `finished`.
 */
#include "io/epoll_parts.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "io/attempt.h"
#include "io/doorbell.h"
#include "io/ended.h"
#include "io/hot.h"
#include "io/interest.h"
#include "io/socket.h"
#include "io/vector.h"

#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441 /* the same number on all architectures */
#endif

#define READ_EVENTS (EPOLLIN | EPOLLRDHUP)
#define LARGE_BYTES (64 * 1024)     /* a call that may move so much takes its time */
#define HOT_CALL_BYTES (128 * 1024) /* the most in one call while something urgent is expected */
#define HOT_TRIES 15                /* calls of poll that only try the hot ones, before one that asks for all */

/* May one call with it move a lot? */
static bool is_large(const struct wf_op *op)
{
    size_t bytes = 0;
    for (int i = 0; i < op->iov_count && bytes < LARGE_BYTES; i++)
        bytes += op->iov[i].iov_len;
    return bytes >= LARGE_BYTES && (op->kind == WF_OP_SEND || op->kind == WF_OP_RECV);
}

static void finish_op(struct wf_epoll_engine *engine, struct wf_fd_slot *slot, struct wf_op *op)
{
    if (slot->reader == op)
        slot->reader = NULL;
    if (slot->writer == op)
        slot->writer = NULL;
    wf_link_remove(&op->link);
    wf_ended_add(&engine->finished, op);
}

/* Has the kernel tell of these events of an unfinished operation's descriptor, or ends the operation. */
static void add_interest(struct wf_epoll_engine *engine, struct wf_fd_slot *slot, struct wf_op *op)
{
    struct wf_hot *hot = slot->muted ? wf_hot_find(&engine->hot, op->fd) : NULL;
    if (hot)
        hot->hits = 0;
    int result = wf_interest_add(&engine->interest, op->fd, wf_op_reads(op) ? READ_EVENTS : EPOLLOUT);
    if (!result)
        return;
    op->result = result;
    finish_op(engine, slot, op);
}

/* --- hot descriptors --- */

/* What is not urgent is not worth to look for in vain, while others wait to be read. */
static bool may_be_hot(const struct wf_epoll_engine *engine, const struct wf_op *op)
{
    return op->urgent || engine->interest.attached <= WF_HOT_COUNT;
}

/* The kernel tells of it again. */
static void unmute(struct wf_epoll_engine *engine, struct wf_hot *hot)
{
    struct wf_fd_slot *slot = wf_interest_of(&engine->interest, hot->fd);
    hot->hits = 0;
    if (slot && slot->muted && slot->reader)
        add_interest(engine, slot, slot->reader);
}

static void unmute_all(struct wf_epoll_engine *engine)
{
    for (int i = 0; i < WF_HOT_COUNT; i++)
        unmute(engine, &engine->hot.entries[i]);
}

static void make_hot(struct wf_epoll_engine *engine, struct wf_fd_slot *slot, const struct wf_op *op)
{
    if (!may_be_hot(engine, op))
        return;
    struct wf_hot *hot = wf_hot_entry(&engine->hot, op->fd);
    engine->again = engine->hot.entries[0].fd == op->fd;
    if (hot->fd != op->fd)
        unmute(engine, hot);
    hot = wf_hot_hit(&engine->hot, hot, op->fd, op->urgent);
    if (hot->hits >= WF_HOT_HITS && !slot->ended && !slot->writer)
        wf_interest_mute(&engine->interest, op->fd);
}

/* It was looked for in vain. */
static void cool(struct wf_epoll_engine *engine, struct wf_hot *hot)
{
    if (!wf_hot_miss(hot))
        return;
    unmute(engine, hot);
    wf_hot_clear(hot);
}

/* --- the four kinds: one system call each --- */

static uint32_t most_bytes(const struct wf_epoll_engine *engine)
{
    return wf_hot_expects_urgent(&engine->hot) && engine->call_bytes > HOT_CALL_BYTES ? HOT_CALL_BYTES
                                                                                      : engine->call_bytes;
}

static enum wf_outcome try_send(struct wf_epoll_engine *engine, struct wf_fd_slot *slot, struct wf_op *op)
{
    bool dry;
    uint32_t most = op->urgent ? engine->call_bytes : most_bytes(engine);
    enum wf_outcome outcome = wf_attempt_send(op, most, &engine->ahead, &dry);
    slot->can_write = !dry;
    return outcome;
}

static enum wf_outcome try_recv(struct wf_epoll_engine *engine, struct wf_fd_slot *slot, struct wf_op *op)
{
    bool dry;
    enum wf_outcome outcome = wf_attempt_recv(op, most_bytes(engine), &dry);
    if (outcome == WF_BLOCKED)
        slot->ended = false;
    /* Less than asked for: the queue was empty, and what comes next makes an edge, unless its edge is behind us. */
    slot->can_read = !dry || slot->ended;
    if (outcome == WF_DONE && dry && op->result > 0)
        make_hot(engine, slot, op);
    return outcome;
}

static enum wf_outcome try_accept(struct wf_fd_slot *slot, struct wf_op *op)
{
    enum wf_outcome outcome = wf_attempt_accept(op);
    if (outcome == WF_BLOCKED)
        slot->can_read = slot->ended = false;
    return outcome;
}

/* --- bytes that gather --- */

/* A RECV begins to wait. The mark is set by the thread that goes to sleep, not before: one that looks again and again
 * reads what there is while it is in the cache. */
static void note_gathering(struct wf_epoll_engine *engine, struct wf_fd_slot *slot, const struct wf_op *op)
{
    if (slot->low_water > 1 && slot->low_water > op->gather)
        wf_interest_low_water(&engine->interest, op->fd, op->gather > 1 ? op->gather : 1);
    int count = engine->gathering_count;
    bool noted = count > 0 && engine->gathering[count - 1] == op->fd; /* it is looked at again and again */
    if (op->gather > 1 && !noted && count < WF_EPOLL_BATCH)
        engine->gathering[engine->gathering_count++] = op->fd;
}

static void let_gather(struct wf_epoll_engine *engine)
{
    for (int i = 0; i < engine->gathering_count; i++) {
        struct wf_fd_slot *slot = wf_interest_of(&engine->interest, engine->gathering[i]);
        if (slot && slot->reader && slot->reader->gather > 1 && !slot->can_read)
            wf_interest_low_water(&engine->interest, engine->gathering[i], slot->reader->gather);
    }
    engine->gathering_count = 0;
}

/* --- where an operation is --- */

/* Leaves the operation to the next edge, which comes at once if the direction is ready by now. What is hot and muted is
 * read without one. */
static void arm(struct wf_epoll_engine *engine, struct wf_fd_slot *slot, struct wf_op *op)
{
    if (op->kind == WF_OP_RECV)
        note_gathering(engine, slot, op);
    if (!wf_op_reads(op) || !slot->muted || !wf_hot_find(&engine->hot, op->fd))
        add_interest(engine, slot, op);
}

static void settle_op(struct wf_epoll_engine *engine, struct wf_fd_slot *slot, struct wf_op *op,
                      enum wf_outcome outcome)
{
    switch (outcome) {
    case WF_DONE:
        finish_op(engine, slot, op);
        break;
    case WF_AGAIN:
        wf_list_push_back(&engine->runnable, &op->link);
        break;
    case WF_BLOCKED:
    case WF_LENT: /* an edge comes with EPOLLERR, too */
        arm(engine, slot, op);
        break;
    }
}

/* One turn, one system call. The operation is in no list. */
static void run(struct wf_epoll_engine *engine, struct wf_fd_slot *slot, struct wf_op *op)
{
    enum wf_outcome outcome = WF_DONE;
    bool is_cut = wf_hot_expects_urgent(&engine->hot) && is_large(op);
    uint64_t before = op->moved;
    switch (op->kind) {
    case WF_OP_ACCEPT:
        outcome = try_accept(slot, op);
        break;
    case WF_OP_CONNECT:
        outcome = wf_op_end(op, wf_socket_connected(op->fd));
        break;
    case WF_OP_RECV:
        outcome = try_recv(engine, slot, op);
        break;
    case WF_OP_SEND:
        outcome = try_send(engine, slot, op);
        break;
    }
    if (is_cut)
        wf_hot_pass(&engine->hot, (size_t)(op->moved - before));
    settle_op(engine, slot, op, outcome);
}

static void connect_slot(struct wf_epoll_engine *engine, struct wf_fd_slot *slot, struct wf_op *op)
{
    int result = wf_socket_connect(op->fd, op->address);
    /* Whatever the edges said about the unconnected socket is void. */
    slot->can_write = slot->can_read = result == 0;
    slot->ended = false;
    settle_op(engine, slot, op, result == -EINPROGRESS ? WF_BLOCKED : wf_op_end(op, result));
}

static void epoll_post(struct wf_engine *engine_base, struct wf_op *op)
{
    struct wf_epoll_engine *engine = wf_epoll_self(engine_base);
    struct wf_fd_slot *slot = wf_interest_of(&engine->interest, op->fd);
    struct wf_op **holder = !slot ? NULL : wf_op_reads(op) ? &slot->reader : &slot->writer;
    assert(holder && !*holder && "attached, and one operation per direction");

    wf_link_init(&op->link);
    op->posted = true;
    op->finished = false;
    op->result = 0;
    op->moved = op->read = 0;
    op->lent = op->copied = 0;
    op->segment = 0;
    *holder = op;
    if (op->kind == WF_OP_CONNECT)
        connect_slot(engine, slot, op);
    else if (!((wf_op_reads(op) ? slot->can_read : slot->can_write) || wf_vector_is_empty(op)))
        arm(engine, slot, op);
    else if (wf_hot_expects_urgent(&engine->hot) && is_large(op) && !(op->kind == WF_OP_SEND && op->urgent))
        /* in its turn: not between two small ones */
        wf_list_push_back(&engine->runnable, &op->link);
    else
        run(engine, slot, op);
}

static void epoll_cancel(struct wf_engine *engine_base, struct wf_op *op)
{
    struct wf_epoll_engine *engine = wf_epoll_self(engine_base);
    if (!op->posted || op->finished)
        return;
    if (op->lent > 0) { /* the memory is not the poster's yet: it ends once the kernel has let go */
        op->result = op->iov_count > 0 ? -ECANCELED : op->result;
        op->iov_count = 0;
        return;
    }
    op->result = -ECANCELED;
    finish_op(engine, wf_interest_of(&engine->interest, op->fd), op);
}

/* --- poll --- */

static int wait_call(struct wf_epoll_engine *engine, int64_t timeout_ns)
{
    if (timeout_ns > 0 && engine->has_pwait2) {
        struct timespec wait = {.tv_sec = timeout_ns / WF_NS_PER_S, .tv_nsec = timeout_ns % WF_NS_PER_S};
        return (int)syscall(SYS_epoll_pwait2, engine->interest.epoll_fd, engine->events, WF_EPOLL_BATCH, &wait, NULL,
                            0);
    }
    if (timeout_ns > 0) { /* milliseconds are too coarse: copies of a GPU take microseconds */
        struct timespec wait = {.tv_sec = timeout_ns / WF_NS_PER_S, .tv_nsec = timeout_ns % WF_NS_PER_S};
        struct pollfd any = {.fd = engine->interest.epoll_fd, .events = POLLIN};
        if (ppoll(&any, 1, &wait, NULL) <= 0)
            return 0;
    }
    return epoll_wait(engine->interest.epoll_fd, engine->events, WF_EPOLL_BATCH, timeout_ns < 0 ? -1 : 0);
}

static int wait_events(struct wf_epoll_engine *engine, int64_t timeout_ns)
{
    if (timeout_ns != 0 && !wf_doorbell_may_sleep(&engine->bell))
        timeout_ns = 0;
    int count = wait_call(engine, timeout_ns);
    wf_doorbell_awake(&engine->bell);
    return count < 0 ? 0 : count; /* a signal ends the wait early, and nobody is told */
}

static void make_runnable(struct wf_epoll_engine *engine, struct wf_op *op)
{
    if (op && !wf_link_in_list(&op->link))
        wf_list_push_back(&engine->runnable, &op->link);
}

static void note_event(struct wf_epoll_engine *engine, const struct epoll_event *event)
{
    struct wf_fd_slot *slot = wf_interest_of(&engine->interest, event->data.fd);
    if (!slot)
        return; /* the eventfd: never read, each write of it is an edge */
    uint32_t what = event->events;
    if (what & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
        slot->ended = true;
    if (what & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) {
        slot->can_read = true;
        make_runnable(engine, slot->reader);
    }
    if (what & (EPOLLOUT | EPOLLHUP | EPOLLERR)) {
        slot->can_write = true;
        make_runnable(engine, slot->writer);
    }
}

/* Reads the hot descriptors, or those that bring something urgent. True: there was one. */
static bool try_hot(struct wf_epoll_engine *engine, bool urgent)
{
    bool tried = false;
    for (int i = 0; i < WF_HOT_COUNT; i++) {
        struct wf_hot *hot = &engine->hot.entries[i];
        struct wf_fd_slot *slot = wf_interest_of(&engine->interest, hot->fd);
        struct wf_op *op = slot ? slot->reader : NULL;
        if (op)
            hot->urgent = op->urgent;
        if (urgent && !hot->urgent)
            continue;
        bool may = op && may_be_hot(engine, op);
        if (op && !may)
            unmute(engine, hot);
        if (!may || slot->can_read) { /* nobody reads it, or it is about to be read anyway */
            cool(engine, hot);
            continue;
        }
        tried = true;
        wf_link_remove(&op->link); /* its turn in this round, if it has one, is now */
        run(engine, slot, op);
        if (!op->finished)
            cool(engine, hot);
    }
    return tried;
}

/* A caller that spins for a small answer gets it with one call instead of two. True: no need to ask for events. */
static bool look_at_hot(struct wf_epoll_engine *engine)
{
    return engine->hot_tries++ < HOT_TRIES && try_hot(engine, false);
}

/* Everything runnable once, oldest first; what wants more goes to the end of the next round. Behind a large call the
 * small ones get a turn, and what they brought does not wait for the next large one. */
static void run_round(struct wf_epoll_engine *engine)
{
    struct wf_link *end = &engine->round_end, *link;
    wf_list_push_back(&engine->runnable, end);
    while ((link = wf_list_pop_front(&engine->runnable)) != end) {
        struct wf_op *op = WF_CONTAINER(link, struct wf_op, link);
        bool large = is_large(op);
        run(engine, wf_interest_of(&engine->interest, op->fd), op);
        bool more = wf_list_first(&engine->runnable) != end;
        if (more && large && try_hot(engine, true) && !wf_list_empty(&engine->finished))
            break;
    }
    wf_link_remove(end);
}

/* Asks the kernel for events. Of muted descriptors it knows none: they are read, or before sleep muted no more. */
static void look_for_events(struct wf_epoll_engine *engine, int64_t timeout_ns)
{
    if (timeout_ns != 0) {
        unmute_all(engine);
        let_gather(engine);
    }
    for (int i = 0; i < WF_HOT_COUNT; i++) {
        struct wf_fd_slot *slot = wf_interest_of(&engine->interest, engine->hot.entries[i].fd);
        if (slot && slot->muted)
            make_runnable(engine, slot->reader);
    }
    int count = wait_events(engine, wf_list_empty(&engine->finished) ? timeout_ns : 0);
    for (int i = 0; i < count; i++)
        note_event(engine, &engine->events[i]);
}

static int epoll_poll(struct wf_engine *engine_base, struct wf_op **finished, int max, int64_t timeout_ns)
{
    struct wf_epoll_engine *engine = wf_epoll_self(engine_base);
    bool has_finished = !wf_list_empty(&engine->finished);
    /* What finished within post needs no news from the kernel; but twice in a row would keep news waiting. */
    engine->skipped = has_finished && !engine->skipped;
    bool busy = has_finished || !wf_list_empty(&engine->runnable);
    if (!engine->skipped && (busy || timeout_ns != 0 || !look_at_hot(engine))) {
        engine->hot_tries = 0;
        look_for_events(engine, busy ? 0 : timeout_ns);
    }
    run_round(engine);
    return wf_ended_take(&engine->finished, finished, max);
}

static void epoll_wake(struct wf_engine *engine)
{
    wf_doorbell_ring(&wf_epoll_self(engine)->bell);
}

/* --- sleep outside of poll --- */

static int epoll_descriptor(struct wf_engine *engine)
{
    return wf_epoll_self(engine)->interest.epoll_fd;
}

static int epoll_rest(struct wf_engine *engine_base, bool tell)
{
    struct wf_epoll_engine *engine = wf_epoll_self(engine_base);
    unmute_all(engine);
    let_gather(engine);
    engine->hot_tries = engine->again ? HOT_TRIES - 1 : HOT_TRIES; /* what ends the rest is an event */
    bool rung = !wf_doorbell_may_sleep(&engine->bell);
    if (!rung && wf_list_empty(&engine->finished) && wf_list_empty(&engine->runnable))
        return 0;
    if (tell) /* the kernel knows nothing of it */
        wf_doorbell_write(&engine->bell);
    return -EAGAIN;
}

const struct wf_engine_ops wf_engine_epoll = {
    .name = "epoll",
    .cuts_calls = true,
    .tells_start = true,
    .probe = wf_epoll_probe,
    .open = wf_epoll_open,
    .close = wf_epoll_close,
    .attach = wf_epoll_attach,
    .detach = wf_epoll_detach,
    .post = epoll_post,
    .cancel = epoll_cancel,
    .poll = epoll_poll,
    .wake = epoll_wake,
    .descriptor = epoll_descriptor,
    .rest = epoll_rest,
    WF_SOCKET_OPS,
};
