#include "io/attempt.h"

#include <errno.h>
#include <stdatomic.h>

#include "io/device_call.h"
#include "io/socket.h"
#include "io/vector.h"

/* One call with the front of the vector: the bytes it moved, or -errno. */
static ssize_t move_some(struct wf_op *op, size_t call_bytes, bool *dry)
{
    struct wf_portion portion = wf_portion_take(op, call_bytes);
    struct msghdr message = {.msg_iov = op->iov, .msg_iovlen = (size_t)portion.count};
    bool one = portion.count == 1;
    ssize_t n;
    if (op->control)
        n = wf_device_receive(op, &message);
    else if (op->binding)
        n = wf_device_send(op, &message);
    else if (wf_op_reads(op))
        n = one ? recv(op->fd, op->iov->iov_base, op->iov->iov_len, MSG_DONTWAIT)
                : recvmsg(op->fd, &message, MSG_DONTWAIT);
    else
        n = one ? send(op->fd, op->iov->iov_base, op->iov->iov_len, MSG_NOSIGNAL | MSG_DONTWAIT)
                : sendmsg(op->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && !op->control && !op->binding)
        n = -errno;
    wf_portion_give_back(&portion);
    /* A call never brings device memory and ordinary bytes both: there may be more. */
    *dry = n < 0 ? n == -EAGAIN : !op->control && (size_t)n < portion.bytes;
    return n;
}

static enum wf_outcome refused_op(struct wf_op *op, ssize_t error)
{
    return error == -EINTR ? WF_AGAIN : error == -EAGAIN ? WF_BLOCKED : wf_op_end(op, error);
}

/* Sets `*op->began_ns`: the time before the first call is not counted into the rate of the channel. */
static void note_start(const struct wf_op *op, const struct wf_clock *clock)
{
    if (op->began_ns && atomic_load_explicit(op->began_ns, memory_order_relaxed) == 0)
        atomic_store_explicit(op->began_ns, wf_clock_now(clock), memory_order_relaxed);
}

/* There is nothing more to send, but the kernel may still read what was sent. `op->result`: why it ends early; or 0. */
static enum wf_outcome sent_all(struct wf_op *op, bool *dry)
{
    int result = op->lent > 0 ? wf_device_released(op) : 0;
    if (result == 0 && op->lent > 0) {
        *dry = true;
        return WF_LENT;
    }
    return wf_op_end(op, result < 0 ? result : op->result < 0 ? op->result : (int64_t)op->moved);
}

/* The call was refused. What the operation lent before is in use: it ends after that, or goes on where the kernel only
 * has no room to note one more loan (-ENOBUFS). */
static enum wf_outcome refused_send(struct wf_op *op, ssize_t error, bool *dry)
{
    if (op->lent > 0 && error == -EAGAIN) { /* what lies in the error queue would wake the engine again and again */
        int released = wf_device_released(op);
        return released < 0 ? wf_op_end(op, released) : WF_BLOCKED;
    }
    if (op->lent == 0 || error == -EINTR)
        return refused_op(op, error);
    if (error != -ENOBUFS) {
        op->result = error;
        op->iov_count = 0;
        return sent_all(op, dry);
    }
    uint32_t lent = op->lent;
    int result = wf_device_released(op);
    *dry = op->lent == lent;
    return result < 0 ? wf_op_end(op, result) : *dry ? WF_LENT : WF_AGAIN;
}

enum wf_outcome wf_attempt_send(struct wf_op *op, uint32_t call_bytes, struct wf_read_ahead *ahead, bool *dry)
{
    *dry = false;
    wf_vector_skip_empty(op);
    if (!op->iov_count)
        return sent_all(op, dry);
    note_start(op, ahead->clock);
    size_t limit = op->binding ? call_bytes : wf_read_ahead_before(ahead, op, call_bytes);
    ssize_t n = move_some(op, limit, dry);
    if (!op->binding)
        wf_read_ahead_after(ahead, n);
    if (n < 0)
        return refused_send(op, n, dry);
    wf_vector_advance(op, (size_t)n);
    if (!op->iov_count)
        return sent_all(op, dry);
    return *dry ? WF_BLOCKED : WF_AGAIN;
}

enum wf_outcome wf_attempt_recv(struct wf_op *op, uint32_t call_bytes, bool *dry)
{
    *dry = false;
    wf_vector_skip_empty(op);
    if (!op->iov_count)
        return wf_op_end(op, -EINVAL); /* 0 would read as the end of the stream */
    ssize_t n = move_some(op, call_bytes, dry);
    if (n < 0)
        return refused_op(op, n);
    op->moved = (uint64_t)n;
    return wf_op_end(op, n);
}

enum wf_outcome wf_attempt_accept(struct wf_op *op)
{
    int result = wf_socket_accept(op->fd);
    switch (result) {
    case -EAGAIN:
        return WF_BLOCKED;
    /* accept reports what went wrong with one connection before it was taken; the listener is fine. */
    case -ECONNABORTED:
    case -EINTR:
    case -EPROTO:
    case -EPERM:
    case -ENETDOWN:
    case -ENOPROTOOPT:
    case -EHOSTDOWN:
    case -ENONET:
    case -EHOSTUNREACH:
    case -ENETUNREACH:
        return WF_AGAIN;
    default:
        return wf_op_end(op, result);
    }
}
