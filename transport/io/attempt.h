/*
 * attempt.h: one plain, non-blocking system call for an operation. Shared by the real engines.
 */
#ifndef WF_IO_ATTEMPT_H
#define WF_IO_ATTEMPT_H

#include "io/engine.h"
#include "io/read_ahead.h"

enum wf_outcome {
    WF_DONE,    /* the operation is finished, `result` set */
    WF_AGAIN,   /* the next call may move bytes at once */
    WF_BLOCKED, /* no call can move bytes until the descriptor is ready */
    WF_LENT,    /* the same until the kernel lets go of memory that was lent to it: its error queue tells (POLLERR) */
};

static inline enum wf_outcome wf_op_end(struct wf_op *op, int64_t result)
{
    op->result = result;
    return WF_DONE;
}

/* `*dry`, always written: the call moved less than its limit, or got -EAGAIN: a further call would move nothing. */
enum wf_outcome wf_attempt_send(struct wf_op *op, uint32_t call_bytes, struct wf_read_ahead *ahead, bool *dry);
enum wf_outcome wf_attempt_recv(struct wf_op *op, uint32_t call_bytes, bool *dry);
enum wf_outcome wf_attempt_accept(struct wf_op *op);

/* True: the operation reads (ACCEPT, RECV); false: it writes. */
static inline bool wf_op_reads(const struct wf_op *op)
{
    return op->kind == WF_OP_ACCEPT || op->kind == WF_OP_RECV;
}

#endif
