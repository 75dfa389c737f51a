/*
 * vector.h: the part of an operation's vector that one call may take. For engines only: they own a posted vector.
 */
#ifndef WF_IO_VECTOR_H
#define WF_IO_VECTOR_H

#include "io/engine.h"

#define WF_PORTION_ENTRIES 64 /* most entries handed to one call, well below IOV_MAX */

/* Drops empty entries at the front: a vector with entries left has bytes left. */
static inline void wf_vector_skip_empty(struct wf_op *op)
{
    while (op->iov_count && !op->iov->iov_len) {
        op->iov++;
        op->iov_count--;
    }
}

/* True: a SEND or RECV without bytes. It ends at once. */
static inline bool wf_vector_is_empty(struct wf_op *op)
{
    if (op->kind != WF_OP_SEND && op->kind != WF_OP_RECV)
        return false;
    wf_vector_skip_empty(op);
    return !op->iov_count;
}

/* Counts `bytes` as moved and drops them from the front. */
static inline void wf_vector_advance(struct wf_op *op, size_t bytes)
{
    op->moved += bytes;
    wf_vector_skip_empty(op);
    while (bytes) {
        size_t step = bytes < op->iov->iov_len ? bytes : op->iov->iov_len;
        op->iov->iov_base = (char *)op->iov->iov_base + step;
        op->iov->iov_len -= step;
        bytes -= step;
        wf_vector_skip_empty(op);
    }
}

/* The front of a vector that one call may take. The entry at the limit is cut while the call runs. */
struct wf_portion {
    struct iovec *cut; /* NULL: none */
    size_t cut_length; /* the length of the entry before the cut */
    size_t bytes;
    int count;
};

static inline struct wf_portion wf_portion_take(struct wf_op *op, size_t limit)
{
    struct wf_portion portion = {0};
    while (portion.count < op->iov_count && portion.count < WF_PORTION_ENTRIES && portion.bytes < limit) {
        struct iovec *entry = &op->iov[portion.count++];
        if (entry->iov_len > limit - portion.bytes) {
            portion.cut = entry;
            portion.cut_length = entry->iov_len;
            entry->iov_len = limit - portion.bytes;
        }
        portion.bytes += entry->iov_len;
    }
    return portion;
}

static inline void wf_portion_give_back(const struct wf_portion *portion)
{
    if (portion->cut)
        portion->cut->iov_len = portion->cut_length;
}

#endif
