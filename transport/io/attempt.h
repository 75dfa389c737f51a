/*
 * attempt.h: one plain, non-blocking system call for an operation. What the engines have in common.
 */
#ifndef WF_IO_ATTEMPT_H
#define WF_IO_ATTEMPT_H

#include "io/engine.h"
#include "io/read_ahead.h"

enum wf_outcome {
    WF_DONE,    /* the operation is finished, `result` set */
    WF_AGAIN,   /* another turn may get on at once */
    WF_BLOCKED, /* nothing to be had until the descriptor is ready */
};

static inline enum wf_outcome wf_op_end(struct wf_op *op, int64_t result)
{
    op->result = result;
    return WF_DONE;
}

/* `dry`, written always: the call moved less than it was asked to, or was refused; a further one would be in vain. */
enum wf_outcome wf_attempt_send(struct wf_op *op, uint32_t call_bytes, struct wf_read_ahead *ahead, bool *dry);
enum wf_outcome wf_attempt_recv(struct wf_op *op, uint32_t call_bytes, bool *dry);
enum wf_outcome wf_attempt_accept(struct wf_op *op);

/* Reads it (ACCEPT, RECV), or writes? */
static inline bool wf_op_reads(const struct wf_op *op)
{
    return op->kind == WF_OP_ACCEPT || op->kind == WF_OP_RECV;
}

#endif
