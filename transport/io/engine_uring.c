/*
 * The io_uring engine.
 *
 * post tries an operation at once with a plain call. What cannot finish so is handed to the kernel by the next poll,
 * together with everything else that is due, in the system call that also waits: it then moves the bytes itself when
 * the descriptor is ready. A direction believed dry is told to wait first, so that no call is made in vain. ACCEPT and
 * CONNECT, which are rare, wait for readiness and are finished by a plain call; so is a send or receive that the kernel
 * refuses to wait for, and one of device memory.
 *
 * A lane is one direction of a descriptor. Its operation is in one of four places: `due` (something is to be
 * submitted), under way (the kernel has it, its completion comes), held (done, but a cancel of it is under way, or the
 * kernel still reads its memory), or in `finished`. An operation under way is never given back before its completion
 * has come.
 *
 * A send without a copy has no first try: it goes to the kernel at once as an entry. Its memory is lent until a second
 * completion says that it is released, which may take as long as the peer does; until then the operation is held.
 *
 * Work of the kernel for an operation is done by the thread that submitted it, also when another one drives by now; a
 * thread that ends takes its operations with it: they come back cancelled without our asking, and become due again.
 */
#include "io/engine.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "io/attempt.h"
#include "io/doorbell.h"
#include "io/ended.h"
#include "io/socket.h"
#include "io/uring_lane.h"
#include "io/uring_ring.h"

#define DEFAULT_CALL_BYTES (256u * 1024)

struct slot {
    struct wf_lane reader, writer;
};

/* What a completion's user data points at: a lane, with the reason in the lowest bits. */
enum tag { TAG_OPERATION, TAG_CANCEL, TAG_BELL, TAG_MASK = 3 };

/* Owner: the thread that drives the engine; the bell is shared with those who call wake. */
struct uring_engine {
    struct wf_engine base;
    struct wf_ring ring;
    struct wf_lane_rules rules;
    struct wf_read_ahead ahead;
    bool skipped;        /* the last poll submitted nothing */
    bool bell_armed;     /* the ring watches the bell */
    struct slot **slots; /* by descriptor; NULL: not attached */
    int slot_count;
    struct wf_list due, finished;
    struct wf_doorbell bell;
};

static struct uring_engine *uring_self(struct wf_engine *engine)
{
    return WF_CONTAINER(engine, struct uring_engine, base);
}

static struct wf_lane *uring_lane_of(struct uring_engine *engine, const struct wf_op *op)
{
    struct slot *slot = op->fd >= 0 && op->fd < engine->slot_count ? engine->slots[op->fd] : NULL;
    return !slot ? NULL : wf_op_reads(op) ? &slot->reader : &slot->writer;
}

/* --- where an operation is --- */

static void make_due(struct uring_engine *engine, struct wf_lane *lane)
{
    if (!wf_link_in_list(&lane->link))
        wf_list_push_back(&engine->due, &lane->link);
}

static void finish_lane(struct uring_engine *engine, struct wf_lane *lane)
{
    struct wf_op *op = lane->op;
    wf_link_remove(&lane->link);
    /* The answer to the cancel would meet the lane's next operation; and the memory is not the poster's yet. */
    lane->held = lane->cancel_under_way || lane->unreleased;
    if (lane->held)
        return;
    lane->op = NULL;
    op->finished = true;
    wf_list_push_back(&engine->finished, &op->link);
}

static void settle_lane(struct uring_engine *engine, struct wf_lane *lane, enum wf_outcome outcome)
{
    if (outcome != WF_DONE && lane->cancelling && lane->op->lent == 0)
        outcome = wf_op_end(lane->op, -ECANCELED);
    if (outcome == WF_DONE)
        finish_lane(engine, lane);
    else
        make_due(engine, lane);
    lane->lent = outcome == WF_LENT;
}

/* --- plain calls --- */

static enum wf_outcome attempt_connect(struct wf_op *op)
{
    int result = wf_socket_connect(op->fd, op->address);
    return result == -EINPROGRESS ? WF_BLOCKED : wf_op_end(op, result);
}

static enum wf_outcome attempt(struct uring_engine *engine, struct wf_lane *lane)
{
    struct wf_op *op = lane->op;
    switch (op->kind) {
    case WF_OP_ACCEPT:
        return wf_attempt_accept(op);
    case WF_OP_CONNECT:
        return wf_op_end(op, wf_socket_connected(op->fd));
    case WF_OP_RECV:
        return wf_attempt_recv(op, engine->rules.call_bytes, &lane->dry);
    case WF_OP_SEND:
        return wf_attempt_send(op, engine->rules.call_bytes, &engine->ahead, &lane->dry);
    }
    return wf_op_end(op, -EINVAL);
}

/* --- submitting --- */

static struct io_uring_sqe *next_entry(struct uring_engine *engine)
{
    struct io_uring_sqe *entry = io_uring_get_sqe(&engine->ring.uring);
    if (entry)
        return entry;
    (void)io_uring_submit(&engine->ring.uring);
    return io_uring_get_sqe(&engine->ring.uring);
}

static void set_target(struct io_uring_sqe *entry, void *target, enum tag tag)
{
    entry->user_data = (uint64_t)(uintptr_t)target | tag;
}

/* Everything that is due becomes an entry: calls, and cancels of those under way. */
static void prepare_due(struct uring_engine *engine)
{
    struct io_uring_sqe *entry;
    struct wf_link *link;
    while ((link = wf_list_first(&engine->due)) && (entry = next_entry(engine))) {
        struct wf_lane *lane = WF_CONTAINER(link, struct wf_lane, link);
        wf_link_remove(link);
        if (lane->under_way) {
            io_uring_prep_cancel(entry, lane, 0);
            set_target(entry, lane, TAG_CANCEL);
            lane->cancel_under_way = true;
        } else {
            wf_lane_prepare(&engine->rules, lane, entry);
            set_target(entry, lane, TAG_OPERATION);
            lane->under_way = true;
        }
    }
}

static void arm_bell(struct uring_engine *engine)
{
    struct io_uring_sqe *entry = engine->bell_armed ? NULL : next_entry(engine);
    if (!entry)
        return;
    io_uring_prep_poll_add(entry, engine->bell.fd, POLLIN);
    entry->len = IORING_POLL_ADD_MULTI;
    set_target(entry, NULL, TAG_BELL);
    engine->bell_armed = true;
}

/* --- post and cancel --- */

/* A send must leave although nobody polls afterwards. */
static void submit_now(struct uring_engine *engine)
{
    prepare_due(engine);
    (void)io_uring_submit(&engine->ring.uring);
}

static void uring_post(struct wf_engine *engine_base, struct wf_op *op)
{
    struct uring_engine *engine = uring_self(engine_base);
    struct wf_lane *lane = uring_lane_of(engine, op);
    assert(lane && !lane->op && "attached, and one operation per direction");

    wf_link_init(&op->link);
    op->posted = true;
    op->finished = false;
    op->result = 0;
    op->moved = op->read = 0;
    op->lent = op->copied = 0;
    op->segment = 0;
    lane->op = op;
    lane->cancelling = lane->held = lane->lent = false;
    lane->readiness = op->kind == WF_OP_ACCEPT || op->kind == WF_OP_CONNECT || op->control || op->binding;
    if (op->kind == WF_OP_CONNECT) {
        settle_lane(engine, lane, attempt_connect(op));
    } else if (wf_lane_lends(&engine->rules, lane)) {
        make_due(engine, lane);
        submit_now(engine);
    } else if (lane->dry && op->iov_count && op->iov->iov_len) {
        make_due(engine, lane);
    } else {
        settle_lane(engine, lane, attempt(engine, lane));
    }
}

static void uring_cancel(struct wf_engine *engine_base, struct wf_op *op)
{
    struct uring_engine *engine = uring_self(engine_base);
    struct wf_lane *lane = uring_lane_of(engine, op);
    if (!op->posted || op->finished || lane->cancelling || lane->held)
        return;
    if (op->lent > 0) { /* the memory is not the poster's yet: it ends once the kernel has let go */
        op->result = op->iov_count > 0 ? -ECANCELED : op->result;
        op->iov_count = 0;
        return;
    }
    lane->cancelling = true;
    if (lane->under_way)
        make_due(engine, lane);
    else
        settle_lane(engine, lane, WF_BLOCKED);
}

/* --- completions --- */

static enum wf_outcome digest(struct uring_engine *engine, struct wf_lane *lane, int result)
{
    if (lane->readiness && result >= 0)
        return lane->cancelling ? WF_BLOCKED : attempt(engine, lane);
    return wf_lane_digest(lane, result);
}

/* `more`: its memory is still lent, and another completion will say when it is released. */
static void operation_returned(struct uring_engine *engine, struct wf_lane *lane, int result, bool more)
{
    lane->under_way = false;
    lane->unreleased += more;
    settle_lane(engine, lane, digest(engine, lane, result));
}

static void cancel_returned(struct uring_engine *engine, struct wf_lane *lane, int result)
{
    lane->cancel_under_way = false;
    if (lane->held)
        finish_lane(engine, lane);
    else if (lane->under_way && result < 0)
        make_due(engine, lane); /* met in a moment when it could not be stopped */
}

static void memory_released(struct uring_engine *engine, struct wf_lane *lane, int result)
{
    lane->unreleased--;
    wf_lane_released(lane, result);
    if (lane->held)
        finish_lane(engine, lane);
}

static void collect(struct uring_engine *engine)
{
    struct io_uring *uring = &engine->ring.uring;
    struct io_uring_cqe *entry;
    /* Enters the kernel only where the ring says that it has something to deliver. */
    while (io_uring_peek_cqe(uring, &entry) == 0) {
        struct wf_lane *lane = (struct wf_lane *)(uintptr_t)(entry->user_data & ~(uint64_t)TAG_MASK);
        enum tag tag = (enum tag)(entry->user_data & TAG_MASK);
        int result = entry->res;
        uint32_t flags = entry->flags;
        io_uring_cqe_seen(uring, entry);
        if (tag == TAG_BELL)
            engine->bell_armed = flags & IORING_CQE_F_MORE;
        else if (tag == TAG_CANCEL)
            cancel_returned(engine, lane, result);
        else if (wf_lane_releases(flags))
            memory_released(engine, lane, result);
        else
            operation_returned(engine, lane, result, flags & IORING_CQE_F_MORE);
    }
}

/* --- poll --- */

static void wait_completion(struct uring_engine *engine, int64_t timeout_ns)
{
    arm_bell(engine);
    if (wf_doorbell_may_sleep(&engine->bell))
        wf_ring_wait(&engine->ring, timeout_ns);
    else
        (void)io_uring_submit(&engine->ring.uring);
}

static void look_at_ring(struct uring_engine *engine, int64_t timeout_ns)
{
    prepare_due(engine);
    if (timeout_ns != 0)
        wait_completion(engine, timeout_ns);
    else if (io_uring_sq_ready(&engine->ring.uring))
        (void)io_uring_submit(&engine->ring.uring);
    wf_doorbell_awake(&engine->bell);
}

static int uring_poll(struct wf_engine *engine_base, struct wf_op **finished, int max, int64_t timeout_ns)
{
    struct uring_engine *engine = uring_self(engine_base);
    bool has_finished = !wf_list_empty(&engine->finished);
    /* What finished within post needs nothing from the kernel; but twice in a row would keep the others waiting. */
    engine->skipped = has_finished && !engine->skipped;
    if (!engine->skipped)
        look_at_ring(engine, has_finished ? 0 : timeout_ns);
    collect(engine);
    return wf_ended_take(&engine->finished, finished, max);
}

static void uring_wake(struct wf_engine *engine)
{
    wf_doorbell_ring(&uring_self(engine)->bell);
}

/* --- attach and detach --- */

static int grow_slots(struct uring_engine *engine, int fd)
{
    if (fd < engine->slot_count)
        return 0;
    int count = fd + 1 > 2 * engine->slot_count ? fd + 16 : 2 * engine->slot_count;
    struct slot **slots = realloc(engine->slots, (size_t)count * sizeof *slots);
    if (!slots)
        return -ENOMEM;
    memset(slots + engine->slot_count, 0, (size_t)(count - engine->slot_count) * sizeof *slots);
    engine->slots = slots;
    engine->slot_count = count;
    return 0;
}

static int uring_attach(struct wf_engine *engine_base, int fd)
{
    struct uring_engine *engine = uring_self(engine_base);
    if (fd < 0)
        return -EBADF;
    int result = grow_slots(engine, fd);
    if (result)
        return result;
    if (engine->slots[fd])
        return -EEXIST;
    struct slot *slot = calloc(1, sizeof *slot); /* at a place of its own: the kernel keeps pointers into it */
    if (!slot)
        return -ENOMEM;
    wf_link_init(&slot->reader.link);
    wf_link_init(&slot->writer.link);
    engine->slots[fd] = slot;
    return 0;
}

static void uring_detach(struct wf_engine *engine_base, int fd)
{
    struct uring_engine *engine = uring_self(engine_base);
    struct slot *slot = fd >= 0 && fd < engine->slot_count ? engine->slots[fd] : NULL;
    if (!slot)
        return;
    assert(!slot->reader.op && !slot->writer.op && "no operation is posted");
    engine->slots[fd] = NULL;
    free(slot);
}

/* --- open and close --- */

static void uring_close(struct wf_engine *engine_base)
{
    struct uring_engine *engine = uring_self(engine_base);
    wf_ring_close(&engine->ring);
    wf_doorbell_fini(&engine->bell);
    free(engine->slots);
    free(engine);
}

static int uring_open(void *host, const struct wf_engine_limits *limits, struct wf_engine **out,
                      struct wf_status *status)
{
    (void)host;
    struct uring_engine *engine = aligned_alloc(WF_CACHE_LINE, sizeof *engine);
    if (!engine)
        return wf_fail(status, -ENOMEM, "io_uring engine: out of memory");
    memset(engine, 0, sizeof *engine);
    engine->base.ops = &wf_engine_uring;
    engine->bell.fd = -1;
    wf_list_init(&engine->due);
    wf_list_init(&engine->finished);
    int result = wf_ring_open(&engine->ring, limits && limits->pinned, status);
    if (!result && (result = wf_doorbell_init(&engine->bell)))
        (void)wf_fail(status, result, "eventfd: %s", wf_strerror(result));
    if (result) {
        uring_close(&engine->base);
        return result;
    }
    engine->rules = (struct wf_lane_rules){
        .call_bytes = limits && limits->call_bytes ? limits->call_bytes : DEFAULT_CALL_BYTES,
        .zero_copy = limits && engine->ring.zero_copy ? limits->zero_copy : 0,
        .poll_first = engine->ring.poll_first,
    };
    wf_read_ahead_init(&engine->ahead, limits ? limits->read_ahead : WF_READ_AHEAD_AUTO, &wf_clock_monotonic);
    *out = &engine->base;
    return 0;
}

static int uring_zero_copy(void *host, struct wf_status *status)
{
    (void)host;
    struct wf_ring ring = {0};
    int result = wf_ring_open(&ring, false, status);
    if (!result)
        result = wf_ring_check_zero_copy(&ring, status);
    wf_ring_close(&ring);
    return result;
}

static int uring_probe(void *host, struct wf_status *status)
{
    struct wf_engine *engine = NULL;
    int result = uring_open(host, NULL, &engine, status);
    if (!result)
        uring_close(engine);
    return result;
}

const struct wf_engine_ops wf_engine_uring = {
    .name = "uring",
    .probe = uring_probe,
    .zero_copy = uring_zero_copy,
    .open = uring_open,
    .close = uring_close,
    .attach = uring_attach,
    .detach = uring_detach,
    .post = uring_post,
    .cancel = uring_cancel,
    .poll = uring_poll,
    .wake = uring_wake,
    WF_SOCKET_OPS,
};
