/*
 * The engine that encrypts what another one moves.
 *
 * SEND and RECV on a protected descriptor are not seen by the inner engine: it gets the operation of a lane
 * (wf_seal_lane.op) on the buffers of the wf_seal_socket. All other operations are posted to it as they are. The
 * posters' operations of both kinds come back through `finished`.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "io/attempt.h"
#include "io/seal_parts.h"

#define DEFAULT_CALL_BYTES (256u * 1024)
#define DRAIN_BATCH 16
#define DRAIN_WAIT_NS 1000000 /* until an inner engine that takes time to cancel is asked again */

static struct wf_seal_engine *seal_self(struct wf_engine *engine)
{
    return WF_CONTAINER(engine, struct wf_seal_engine, base);
}

static struct wf_seal_slot *seal_slot_of(struct wf_seal_engine *engine, int fd)
{
    WF_LIST_EACH (link, following, &engine->slots[(unsigned)fd % WF_SEAL_BUCKETS]) {
        struct wf_seal_slot *slot = WF_CONTAINER(link, struct wf_seal_slot, link);
        if (slot->writer.socket->fd == fd)
            return slot;
    }
    return NULL;
}

/* The lane of an operation of a poster; NULL: the inner engine has it as it is. */
static struct wf_seal_lane *seal_lane_of(struct wf_seal_engine *engine, const struct wf_op *op)
{
    bool moves = op->kind == WF_OP_SEND || op->kind == WF_OP_RECV;
    struct wf_seal_slot *slot = moves ? seal_slot_of(engine, op->fd) : NULL;
    return !slot ? NULL : op->kind == WF_OP_RECV ? &slot->reader : &slot->writer;
}

/* --- post, cancel, poll --- */

static bool seal_busy(const struct wf_seal_engine *engine)
{
    return !wf_list_empty(&engine->finished) || !wf_list_empty(&engine->ahead);
}

/* What the inner engine knows nothing of must not wait for it. */
static void seal_keep_awake(struct wf_seal_engine *engine)
{
    if (seal_busy(engine))
        engine->inner->ops->wake(engine->inner);
}

static void seal_post(struct wf_engine *engine_base, struct wf_op *op)
{
    struct wf_seal_engine *engine = seal_self(engine_base);
    struct wf_seal_lane *lane = seal_lane_of(engine, op);
    if (!lane) {
        engine->inner->ops->post(engine->inner, op);
        return;
    }
    assert(!lane->user && "one operation per direction");
    wf_around_keep(op);
    lane->user = op;
    if (op->kind == WF_OP_RECV)
        wf_seal_rx_start(engine, lane);
    else
        wf_seal_tx_start(engine, lane);
    seal_keep_awake(engine);
}

static void seal_cancel(struct wf_engine *engine_base, struct wf_op *op)
{
    struct wf_seal_engine *engine = seal_self(engine_base);
    if (!op->posted || op->finished)
        return;
    struct wf_seal_lane *lane = seal_lane_of(engine, op);
    if (!lane)
        engine->inner->ops->cancel(engine->inner, op);
    else if (op->kind == WF_OP_RECV)
        wf_seal_rx_cancel(engine, lane);
    else
        wf_seal_tx_cancel(engine, lane);
    seal_keep_awake(engine);
}

/* The inner engine has given back an operation: one of a lane's, or a poster's. */
static void returned(struct wf_seal_engine *engine, struct wf_op *op)
{
    struct wf_seal_slot *slot = seal_slot_of(engine, op->fd);
    if (slot && op == &slot->reader.op) {
        wf_seal_rx_returned(engine, &slot->reader);
    } else if (slot && op == &slot->writer.op) {
        wf_seal_tx_returned(engine, &slot->writer);
    } else {
        op->posted = true; /* still, for its poster */
        wf_seal_finish(engine, op, op->result);
    }
}

/* Polls the inner engine. Each lane whose operation has come back posts at most one more. */
static void turn(struct wf_seal_engine *engine, struct wf_op **room, int max, int64_t timeout_ns)
{
    int count = engine->inner->ops->poll(engine->inner, room, max, timeout_ns);
    for (int i = 0; i < count; i++)
        returned(engine, room[i]);
}

/* Only what was there before: a lane gets one batch ahead at a time. */
static void encrypt_ahead(struct wf_seal_engine *engine)
{
    struct wf_link *last = engine->ahead.head.prev, *link;
    bool more = !wf_list_empty(&engine->ahead);
    while (more && (link = wf_list_first(&engine->ahead))) {
        more = link != last;
        wf_seal_tx_ahead(engine, WF_CONTAINER(link, struct wf_seal_lane, link));
    }
}

static int seal_poll(struct wf_engine *engine_base, struct wf_op **finished, int max, int64_t timeout_ns)
{
    struct wf_seal_engine *engine = seal_self(engine_base);
    turn(engine, finished, max, seal_busy(engine) ? 0 : timeout_ns);
    encrypt_ahead(engine);
    int count = wf_ended_take(&engine->finished, finished, max);
    seal_keep_awake(engine);
    return count;
}

static void seal_wake(struct wf_engine *engine)
{
    struct wf_engine *inner = seal_self(engine)->inner;
    inner->ops->wake(inner);
}

static int seal_descriptor(struct wf_engine *engine)
{
    struct wf_engine *inner = seal_self(engine)->inner;
    return inner->ops->descriptor(inner);
}

/* What this engine has to do has rung the inner one's bell. */
static int seal_rest(struct wf_engine *engine, bool tell)
{
    struct wf_engine *inner = seal_self(engine)->inner;
    return inner->ops->rest(inner, tell);
}

/* --- attach and detach --- */

static void init_lane(struct wf_seal_lane *lane, struct wf_seal_socket *socket)
{
    lane->socket = socket;
    wf_link_init(&lane->link);
}

static int seal_attach(struct wf_engine *engine_base, int fd)
{
    struct wf_seal_engine *engine = seal_self(engine_base);
    int result = engine->inner->ops->attach(engine->inner, fd);
    struct wf_seal_socket *socket = result ? NULL : wf_seal_socket_of(engine->seal, fd);
    if (!socket)
        return result;
    struct wf_seal_slot *slot = calloc(1, sizeof *slot);
    if (!slot) {
        engine->inner->ops->detach(engine->inner, fd);
        return -ENOMEM;
    }
    init_lane(&slot->reader, socket);
    init_lane(&slot->writer, socket);
    wf_list_push_back(&engine->slots[(unsigned)fd % WF_SEAL_BUCKETS], &slot->link);
    return 0;
}

/* Takes back what is left of a cancelled SEND: the poster knows nothing of it, and the inner engine must not have it.
 */
static void drain(struct wf_seal_engine *engine, struct wf_seal_lane *writer)
{
    struct wf_op *room[DRAIN_BATCH];
    for (int64_t timeout_ns = 0; writer->op.posted; timeout_ns = DRAIN_WAIT_NS) {
        engine->inner->ops->cancel(engine->inner, &writer->op);
        turn(engine, room, DRAIN_BATCH, timeout_ns);
    }
    seal_keep_awake(engine);
}

static void seal_detach(struct wf_engine *engine_base, int fd)
{
    struct wf_seal_engine *engine = seal_self(engine_base);
    struct wf_seal_slot *slot = seal_slot_of(engine, fd);
    assert((!slot || (!slot->reader.user && !slot->writer.user)) && "no operation is posted");
    if (slot && slot->writer.op.posted)
        drain(engine, &slot->writer);
    engine->inner->ops->detach(engine->inner, fd);
    if (slot)
        wf_link_remove(&slot->link);
    free(slot);
}

/* --- open and close --- */

/* A batch is to leave in one call. */
static uint32_t inner_call(uint32_t call_bytes)
{
    return call_bytes + (call_bytes - 1) / WF_RECORD_MAX * WF_RECORD_OVERHEAD + WF_RECORD_OVERHEAD;
}

static int seal_open(void *host, const struct wf_engine_limits *limits, struct wf_engine **out,
                     struct wf_status *status)
{
    struct wf_seal *seal = host;
    struct wf_seal_engine *engine = calloc(1, sizeof *engine);
    if (!engine)
        return wf_fail(status, -ENOMEM, "encryption: out of memory");
    struct wf_engine_limits inner = {0};
    if (limits)
        inner = *limits;
    engine->call_bytes = inner.call_bytes ? inner.call_bytes : DEFAULT_CALL_BYTES;
    inner.call_bytes = inner_call(engine->call_bytes);
    inner.zero_copy = 0; /* a batch is encrypted anew soon: the kernel must not hold its memory */
    int result = seal->around.inner->open(seal->around.host, &inner, &engine->inner, status);
    if (result) {
        free(engine);
        return result;
    }
    engine->base.ops = &seal->around.ops;
    engine->seal = seal;
    for (int i = 0; i < WF_SEAL_BUCKETS; i++)
        wf_list_init(&engine->slots[i]);
    wf_list_init(&engine->finished);
    wf_list_init(&engine->ahead);
    *out = &engine->base;
    return 0;
}

static void seal_close(struct wf_engine *engine_base)
{
    struct wf_seal_engine *engine = seal_self(engine_base);
    engine->inner->ops->close(engine->inner);
    free(engine);
}

/* Without tells_start: it encrypts before the first call. */
static const struct wf_engine_ops seal_ops = {
    .open = seal_open,
    .close = seal_close,
    .attach = seal_attach,
    .detach = seal_detach,
    .post = seal_post,
    .cancel = seal_cancel,
    .poll = seal_poll,
    .wake = seal_wake,
    .descriptor = seal_descriptor,
    .rest = seal_rest,
    .shutdown = wf_seal_op_shutdown,
    .progress = wf_around_progress,
    .close_fd = wf_seal_op_close_fd,
    WF_AROUND_OPS,
};

const struct wf_engine_ops *wf_seal_around(struct wf_seal *seal, const struct wf_engine_ops *engine, void *host)
{
    return wf_around_set(&seal->around, &seal_ops, engine, host);
}

struct wf_engine *wf_seal_within(struct wf_engine *engine)
{
    return engine->ops->poll == seal_poll ? seal_self(engine)->inner : engine;
}
