/*
 * uring_lane.h: one direction of a descriptor in the io_uring engine: what the kernel is asked to do for its operation,
 * and what the answer means.
 */
#ifndef WF_IO_URING_LANE_H
#define WF_IO_URING_LANE_H

#include <liburing.h>

#include "io/attempt.h"
#include "io/vector.h"

/* What holds for all lanes of an engine. */
struct wf_lane_rules {
    uint32_t call_bytes;
    uint32_t zero_copy; /* sends of so many bytes leave without a copy; 0: none */
    bool poll_first;    /* see struct wf_ring */
};

struct wf_lane {
    struct wf_link link; /* in the engine's `due` */
    struct wf_op *op;    /* the unfinished operation */
    struct msghdr message;
    struct wf_portion portion; /* what the call under way may take */
    bool dry;                  /* a try would be in vain */
    bool readiness;            /* to wait for readiness alone, and then to try */
    bool under_way;
    bool cancelling;       /* asked for */
    bool cancel_under_way; /* the cancel's own completion is to come */
    bool held;             /* finished but for the cancel's completion, or the memory's release */
    bool lends;            /* the call under way takes the memory itself, not a copy */
    bool must_copy;        /* the kernel refuses to lend memory to this descriptor, or copies it all the same */
    bool untold;           /* the kernel does not tell whether it copied */
    uint32_t copied;       /* releases in a row that said it had been */
    uint32_t unreleased;   /* calls that have ended, whose memory the kernel still reads */
};

/* Whether the next call is to leave without a copy. */
bool wf_lane_lends(const struct wf_lane_rules *rules, const struct wf_lane *lane);

/* Makes `entry` the next call for the operation, of which at least one byte is left: all others an attempt finishes. */
void wf_lane_prepare(const struct wf_lane_rules *rules, struct wf_lane *lane, struct io_uring_sqe *entry);

/* What the result of that call makes of the operation. Not for a wait for readiness that has succeeded. */
enum wf_outcome wf_lane_digest(struct wf_lane *lane, int result);

/* A call's memory is released, with what the kernel tells of it. Where the kernel copied it all the same,
 * as for loopback and veth, no more memory is lent: that costs more than an ordinary send. */
void wf_lane_released(struct wf_lane *lane, int result);

/* Whether a completion says no more than that the memory of a call that ended earlier is released. */
static inline bool wf_lane_releases(uint32_t flags)
{
#ifdef WEFT_URING_ZERO_COPY
    return flags & IORING_CQE_F_NOTIF;
#else
    (void)flags;
    return false;
#endif
}

#endif
