/*
 * The engine that injects faults into another one.
 *
 * The inner engine never gets the poster's operation, but that of a lane (wf_fault_lane.op). So one send can become
 * several, a waiting operation can be taken back for the time of a stall, and only this engine reads and advances the
 * poster's vector. Where an operation can be: enum wf_fault_place.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "io/attempt.h"
#include "io/fault_parts.h"

static struct wf_fault_engine *fault_self(struct wf_engine *engine)
{
    return WF_CONTAINER(engine, struct wf_fault_engine, base);
}

static struct wf_fault_slot *fault_slot_of(struct wf_fault_engine *engine, int fd)
{
    WF_LIST_EACH (link, following, &engine->slots[(unsigned)fd % WF_FAULT_BUCKETS]) {
        struct wf_fault_slot *slot = WF_CONTAINER(link, struct wf_fault_slot, link);
        if (slot->socket->fd == fd)
            return slot;
    }
    return NULL;
}

static struct wf_fault_lane *fault_lane_of(struct wf_fault_engine *engine, const struct wf_op *op)
{
    struct wf_fault_slot *slot = fault_slot_of(engine, op->fd);
    return !slot ? NULL : wf_op_reads(op) ? &slot->reader : &slot->writer;
}

/* --- time, and connections that were reset --- */

/* Connected, or connecting: a drop can end it. */
static bool is_connected(const struct wf_fault_engine *engine, const struct wf_fault_slot *slot)
{
    struct sockaddr_storage peer;
    struct wf_fault *fault = engine->fault;
    const struct wf_op *writer = slot->writer.user;
    return (writer && writer->kind == WF_OP_CONNECT) || wf_around_address(fault, slot->socket->fd, true, &peer) == 0;
}

/* `before`: how the rails fared when this was last called. */
static void change_slot(struct wf_fault_engine *engine, struct wf_fault_slot *slot, const struct wf_fault_state *before)
{
    struct wf_fault *fault = engine->fault;
    const struct wf_fault_state *now = &engine->state;
    if (wf_fault_hits(slot->socket, now->dropped & ~before->dropped) && is_connected(engine, slot))
        wf_fault_cut(fault, slot->socket, &fault->counts.cut, "drop");
    if (wf_fault_hits(slot->socket, now->stalled & ~before->stalled)) {
        wf_fault_freeze(fault, slot->socket);
        wf_fault_lane_stall(engine, &slot->reader);
        wf_fault_lane_stall(engine, &slot->writer);
    }
    if (wf_fault_hits(slot->socket, before->stalled & ~now->stalled)) {
        wf_fault_lane_go_on(engine, &slot->reader);
        wf_fault_lane_go_on(engine, &slot->writer);
    }
}

static void end_slot(struct wf_fault_engine *engine, struct wf_fault_slot *slot, const struct wf_fault_state *unused)
{
    (void)unused;
    if (!atomic_load(&slot->socket->cut))
        return;
    wf_fault_lane_end(engine, &slot->reader);
    wf_fault_lane_end(engine, &slot->writer);
}

/* What has gone of sends under way can be read from them. */
static void tell_moved(struct wf_fault_engine *engine, struct wf_fault_slot *slot, const struct wf_fault_state *unused)
{
    struct wf_fault_lane *lane = &slot->writer;
    (void)engine;
    (void)unused;
    if (lane->place == WF_FAULT_WITH_INNER && lane->user->kind == WF_OP_SEND)
        lane->user->moved = lane->done + lane->op.moved;
}

static void each_slot(struct wf_fault_engine *engine,
                      void (*visit)(struct wf_fault_engine *, struct wf_fault_slot *, const struct wf_fault_state *),
                      const struct wf_fault_state *state)
{
    for (int i = 0; i < WF_FAULT_BUCKETS; i++) {
        WF_LIST_EACH (link, following, &engine->slots[i]) {
            visit(engine, WF_CONTAINER(link, struct wf_fault_slot, link), state);
        }
    }
}

/* Returns how long nothing will change; WF_NEVER: for good. */
static int64_t look_at_state(struct wf_fault_engine *engine)
{
    struct wf_fault *fault = engine->fault;
    bool timed = engine->state.until_ns != WF_NEVER;
    int64_t now = timed ? wf_clock_now(fault->clock) : 0;
    if (timed && now >= engine->state.until_ns) {
        struct wf_fault_state before = engine->state;
        engine->state = wf_fault_look_up(fault, now);
        wf_fault_tell_windows(fault, now);
        each_slot(engine, change_slot, &before);
    }
    uint32_t cuts = atomic_load(&fault->cuts);
    if (cuts != engine->cuts) {
        engine->cuts = cuts;
        each_slot(engine, end_slot, NULL);
    }
    return engine->state.until_ns == WF_NEVER ? WF_NEVER : engine->state.until_ns - now;
}

/* --- post, cancel, poll --- */

static bool fault_busy(const struct wf_fault_engine *engine)
{
    return !wf_list_empty(&engine->next) || !wf_list_empty(&engine->finished);
}

/* What the inner engine knows nothing of must not wait for it. */
static void fault_keep_awake(struct wf_fault_engine *engine)
{
    if (fault_busy(engine))
        engine->inner->ops->wake(engine->inner);
}

static void fault_post(struct wf_engine *engine_base, struct wf_op *op)
{
    struct wf_fault_engine *engine = fault_self(engine_base);
    struct wf_fault_lane *lane = fault_lane_of(engine, op);
    assert(lane && !lane->user && "attached, and one operation per direction");

    (void)look_at_state(engine);
    wf_around_keep(op);
    lane->user = op;
    lane->cancelling = lane->connected = false;
    lane->done = 0;
    wf_fault_lane_start(engine, lane);
    fault_keep_awake(engine);
}

static void fault_cancel(struct wf_engine *engine_base, struct wf_op *op)
{
    struct wf_fault_engine *engine = fault_self(engine_base);
    if (!op->posted || op->finished)
        return;
    wf_fault_lane_cancel(engine, fault_lane_of(engine, op));
    fault_keep_awake(engine);
}

/* Called behind the inner engine's poll, so that each of them gets one call in a poll, and not two. */
static void start_next(struct wf_fault_engine *engine)
{
    struct wf_link *last = engine->next.head.prev, *link;
    bool more = !wf_list_empty(&engine->next);
    while (more && (link = wf_list_pop_front(&engine->next))) {
        more = link != last;
        wf_fault_lane_start(engine, WF_CONTAINER(link, struct wf_fault_lane, link));
    }
}

static int hand_over(struct wf_fault_engine *engine, struct wf_op **finished, int max)
{
    int count = 0;
    struct wf_link *link;
    while (count < max && (link = wf_list_pop_front(&engine->finished))) {
        struct wf_fault_lane *lane = WF_CONTAINER(link, struct wf_fault_lane, link);
        struct wf_op *user = lane->user;
        lane->user = NULL;
        lane->place = WF_FAULT_NOWHERE;
        user->posted = user->finished = false;
        finished[count++] = user;
    }
    return count;
}

static int fault_poll(struct wf_engine *engine_base, struct wf_op **finished, int max, int64_t timeout_ns)
{
    struct wf_fault_engine *engine = fault_self(engine_base);
    int64_t unchanged = look_at_state(engine);
    if (fault_busy(engine))
        timeout_ns = 0;
    else if (unchanged != WF_NEVER && (timeout_ns < 0 || timeout_ns > unchanged))
        timeout_ns = unchanged;
    int count = engine->inner->ops->poll(engine->inner, finished, max, timeout_ns);
    start_next(engine);
    for (int i = 0; i < count; i++)
        wf_fault_lane_returned(engine, finished[i]->context);
    (void)look_at_state(engine);
    each_slot(engine, tell_moved, NULL);
    count = hand_over(engine, finished, max);
    fault_keep_awake(engine);
    return count;
}

static void fault_wake(struct wf_engine *engine)
{
    struct wf_engine *inner = fault_self(engine)->inner;
    inner->ops->wake(inner);
}

/* --- attach and detach --- */

static int fault_attach(struct wf_engine *engine_base, int fd)
{
    struct wf_fault_engine *engine = fault_self(engine_base);
    int result = engine->inner->ops->attach(engine->inner, fd);
    if (result)
        return result;
    struct wf_fault_slot *slot = calloc(1, sizeof *slot);
    if (slot)
        slot->socket = wf_fault_socket_of(engine->fault, fd);
    if (!slot || !slot->socket) {
        engine->inner->ops->detach(engine->inner, fd);
        free(slot);
        return -ENOMEM;
    }
    slot->reader.slot = slot->writer.slot = slot;
    wf_link_init(&slot->reader.link);
    wf_link_init(&slot->writer.link);
    wf_list_push_back(&engine->slots[(unsigned)fd % WF_FAULT_BUCKETS], &slot->link);
    return 0;
}

static void fault_detach(struct wf_engine *engine_base, int fd)
{
    struct wf_fault_engine *engine = fault_self(engine_base);
    struct wf_fault_slot *slot = fault_slot_of(engine, fd);
    assert((!slot || (!slot->reader.user && !slot->writer.user)) && "no operation is posted");
    engine->inner->ops->detach(engine->inner, fd);
    if (slot)
        wf_link_remove(&slot->link);
    free(slot);
}

/* --- open and close --- */

static void prepare_fault_engine(struct wf_fault_engine *engine, struct wf_fault *fault,
                                 const struct wf_engine_limits *limits)
{
    int64_t now = wf_clock_now(fault->clock);
    engine->base.ops = &fault->around.ops;
    engine->fault = fault;
    engine->set_up = limits && limits->set_up;
    for (int i = 0; i < WF_FAULT_BUCKETS; i++)
        wf_list_init(&engine->slots[i]);
    wf_list_init(&engine->next);
    wf_list_init(&engine->finished);
    engine->state = wf_fault_look_up(fault, now);
    wf_fault_tell_windows(fault, now);
    engine->cuts = atomic_load(&fault->cuts);
}

static int fault_open(void *host, const struct wf_engine_limits *limits, struct wf_engine **out,
                      struct wf_status *status)
{
    struct wf_fault *fault = host;
    struct wf_fault_engine *engine = calloc(1, sizeof *engine);
    if (!engine)
        return wf_fail(status, -ENOMEM, "fault: out of memory");
    int result = fault->around.inner->open(fault->around.host, limits, &engine->inner, status);
    if (result) {
        free(engine);
        return result;
    }
    prepare_fault_engine(engine, fault, limits);
    pthread_mutex_lock(&fault->lock);
    wf_list_push_back(&fault->engines, &engine->link);
    pthread_mutex_unlock(&fault->lock);
    *out = &engine->base;
    return 0;
}

static void fault_close(struct wf_engine *engine_base)
{
    struct wf_fault_engine *engine = fault_self(engine_base);
    struct wf_fault *fault = engine->fault;
    pthread_mutex_lock(&fault->lock);
    wf_link_remove(&engine->link);
    pthread_mutex_unlock(&fault->lock);
    engine->inner->ops->close(engine->inner);
    free(engine);
}

static const struct wf_engine_ops fault_ops = {
    .zero_copy = wf_around_zero_copy,
    .open = fault_open,
    .close = fault_close,
    .attach = fault_attach,
    .detach = fault_detach,
    .post = fault_post,
    .cancel = fault_cancel,
    .poll = fault_poll,
    .wake = fault_wake,
    .shutdown = wf_around_shutdown,
    .progress = wf_fault_op_progress,
    .close_fd = wf_fault_op_close_fd,
    WF_AROUND_OPS,
};

const struct wf_engine_ops *wf_fault_around(struct wf_fault *fault, const struct wf_engine_ops *engine, void *host)
{
    return wf_around_set(&fault->around, &fault_ops, engine, host);
}

struct wf_engine *wf_fault_within(struct wf_engine *engine)
{
    return engine->ops->poll == fault_poll ? fault_self(engine)->inner : engine;
}
