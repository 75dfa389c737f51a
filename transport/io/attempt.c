#include "io/attempt.h"

#include <errno.h>

#include "io/socket.h"
#include "io/vector.h"

enum wf_outcome wf_attempt_send(struct wf_op *op, uint32_t call_bytes, bool *dry)
{
    *dry = false;
    wf_vector_skip_empty(op);
    if (!op->iov_count)
        return wf_op_end(op, (int64_t)op->moved);
    struct wf_portion portion = wf_portion_take(op, call_bytes);
    struct msghdr message = {.msg_iov = op->iov, .msg_iovlen = (size_t)portion.count};
    ssize_t n = portion.count == 1 ? send(op->fd, op->iov->iov_base, op->iov->iov_len, MSG_NOSIGNAL | MSG_DONTWAIT)
                                   : sendmsg(op->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    int error = errno;
    wf_portion_give_back(&portion);
    if (n < 0 && error == EINTR)
        return WF_AGAIN;
    *dry = n < 0 ? error == EAGAIN : (size_t)n < portion.bytes;
    if (n < 0)
        return *dry ? WF_BLOCKED : wf_op_end(op, -error);
    wf_vector_advance(op, (size_t)n);
    if (!op->iov_count)
        return wf_op_end(op, (int64_t)op->moved);
    return *dry ? WF_BLOCKED : WF_AGAIN;
}

enum wf_outcome wf_attempt_recv(struct wf_op *op, uint32_t call_bytes, bool *dry)
{
    *dry = false;
    wf_vector_skip_empty(op);
    if (!op->iov_count)
        return wf_op_end(op, -EINVAL); /* 0 would read as the end of the stream */
    struct wf_portion portion = wf_portion_take(op, call_bytes);
    struct msghdr message = {.msg_iov = op->iov, .msg_iovlen = (size_t)portion.count};
    ssize_t n = portion.count == 1 ? recv(op->fd, op->iov->iov_base, op->iov->iov_len, MSG_DONTWAIT)
                                   : recvmsg(op->fd, &message, MSG_DONTWAIT);
    int error = errno;
    wf_portion_give_back(&portion);
    if (n < 0 && error == EINTR)
        return WF_AGAIN;
    *dry = n < 0 ? error == EAGAIN : (size_t)n < portion.bytes;
    if (n < 0)
        return *dry ? WF_BLOCKED : wf_op_end(op, -error);
    op->moved = (uint64_t)n;
    return wf_op_end(op, n);
}

enum wf_outcome wf_attempt_accept(struct wf_op *op)
{
    int rc = wf_socket_accept(op->fd);
    switch (rc) {
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
        return wf_op_end(op, rc);
    }
}
