#include "io/uring_lane.h"

#include <errno.h>
#include <poll.h>

/* Linux 6.2; the headers of liburing 2.3 do not have them. */
#ifndef IORING_SEND_ZC_REPORT_USAGE
#define IORING_SEND_ZC_REPORT_USAGE (1U << 3)
#define IORING_NOTIF_USAGE_ZC_COPIED (1U << 31)
#endif

#define COPIED_ENOUGH 8 /* releases in a row that say "copied": it was no accident of one route */

bool wf_lane_lends(const struct wf_lane_rules *rules, const struct wf_lane *lane)
{
    const struct wf_op *op = lane->op;
    if (!rules->zero_copy || op->kind != WF_OP_SEND || lane->must_copy || lane->readiness || op->binding)
        return false;
    uint64_t bytes = 0;
    for (int i = 0; i < op->iov_count && i < WF_PORTION_ENTRIES && bytes < rules->zero_copy; i++)
        bytes += op->iov[i].iov_len;
    return bytes >= rules->zero_copy;
}

static void prepare_recv(struct wf_lane *lane, struct io_uring_sqe *entry)
{
    struct wf_op *op = lane->op;
    if (lane->portion.count > 1)
        io_uring_prep_recvmsg(entry, op->fd, &lane->message, 0);
    else
        io_uring_prep_recv(entry, op->fd, op->iov->iov_base, op->iov->iov_len, 0);
}

static void prepare_send(struct wf_lane *lane, struct io_uring_sqe *entry)
{
    struct wf_op *op = lane->op;
    bool one = lane->portion.count == 1;
#ifdef WEFT_URING_ZERO_COPY
    if (lane->lends && one)
        io_uring_prep_send_zc(entry, op->fd, op->iov->iov_base, op->iov->iov_len, MSG_NOSIGNAL, 0);
    else if (lane->lends)
        io_uring_prep_sendmsg_zc(entry, op->fd, &lane->message, MSG_NOSIGNAL);
    if (lane->lends && !lane->untold)
        entry->ioprio |= IORING_SEND_ZC_REPORT_USAGE;
    if (lane->lends)
        return;
#endif
    if (one)
        io_uring_prep_send(entry, op->fd, op->iov->iov_base, op->iov->iov_len, MSG_NOSIGNAL);
    else
        io_uring_prep_sendmsg(entry, op->fd, &lane->message, MSG_NOSIGNAL);
}

void wf_lane_prepare(const struct wf_lane_rules *rules, struct wf_lane *lane, struct io_uring_sqe *entry)
{
    struct wf_op *op = lane->op;
    bool reads = wf_op_reads(op);
    lane->lends = false;
    if (lane->readiness) {
        /* POLLERR, which tells of the error queue, comes unasked. */
        io_uring_prep_poll_add(entry, op->fd, reads ? POLLIN | POLLRDHUP : lane->lent ? 0 : POLLOUT);
        return;
    }
    wf_vector_skip_empty(op);
    lane->lends = wf_lane_lends(rules, lane);
    lane->portion = wf_portion_take(op, rules->call_bytes);
    lane->message = (struct msghdr){.msg_iov = op->iov, .msg_iovlen = (size_t)lane->portion.count};
    if (reads)
        prepare_recv(lane, entry);
    else
        prepare_send(lane, entry);
#ifdef WEFT_URING_5_19
    if (lane->dry && rules->poll_first)
        entry->ioprio |= IORING_RECVSEND_POLL_FIRST;
#endif
}

static enum wf_outcome digest_send(struct wf_lane *lane, int result)
{
    struct wf_op *op = lane->op;
    lane->dry = (size_t)result < lane->portion.bytes;
    wf_vector_advance(op, (size_t)result);
    return op->iov_count ? WF_AGAIN : wf_op_end(op, (int64_t)op->moved);
}

static enum wf_outcome digest_recv(struct wf_lane *lane, int result)
{
    lane->dry = result > 0 && (size_t)result < lane->portion.bytes;
    lane->op->moved = (uint64_t)result;
    return wf_op_end(lane->op, result);
}

/* Pinned pages count against the limit of locked memory, and not every socket takes them: a copy always works. */
static bool refuses_to_borrow(const struct wf_lane *lane, int result)
{
    return lane->lends && (result == -ENOMEM || result == -ENOBUFS || result == -EOPNOTSUPP || result == -EFAULT);
}

void wf_lane_released(struct wf_lane *lane, int result)
{
    bool copied = !lane->untold && ((uint32_t)result & IORING_NOTIF_USAGE_ZC_COPIED);
    lane->copied = copied ? lane->copied + 1 : 0;
    lane->must_copy |= lane->copied >= COPIED_ENOUGH;
}

/* Linux before 6.2 refuses to tell. */
static bool refuses_to_tell(const struct wf_lane *lane, int result)
{
    return lane->lends && !lane->untold && result == -EINVAL;
}

enum wf_outcome wf_lane_digest(struct wf_lane *lane, int result)
{
    struct wf_op *op = lane->op;
    if (!lane->readiness)
        wf_portion_give_back(&lane->portion);
    if (refuses_to_borrow(lane, result)) {
        lane->must_copy = true;
        return WF_AGAIN;
    }
    if (refuses_to_tell(lane, result)) {
        lane->untold = true;
        return WF_AGAIN;
    }
    switch (result) {
    case -ECANCELED: /* perhaps without our asking: the thread that submitted it has ended */
    case -EINTR:
        return WF_AGAIN;
    case -EAGAIN: /* a kernel that does not wait for descriptors which are non-blocking */
        lane->readiness = true;
        return WF_BLOCKED;
    default:
        if (result < 0)
            return wf_op_end(op, result);
        return wf_op_reads(op) ? digest_recv(lane, result) : digest_send(lane, result);
    }
}
