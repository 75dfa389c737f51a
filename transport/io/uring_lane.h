/*
 * uring_lane.h: one direction of a descriptor in the io_uring engine: prepares the next call for its operation, and
 * applies the kernel's answer.
 */
#ifndef WF_IO_URING_LANE_H
#define WF_IO_URING_LANE_H

#include <liburing.h>

#include "io/attempt.h"
#include "io/vector.h"

/* Settings of all lanes of an engine. */
struct wf_lane_rules {
    uint32_t call_bytes;
    uint32_t zero_copy; /* sends of this size or more leave without a copy; 0: none */
    bool poll_first;    /* see struct wf_ring */
};

struct wf_lane {
    struct wf_link link; /* in the engine's `due` */
    struct wf_op *op;    /* the unfinished operation */
    struct msghdr message;
    struct wf_portion portion; /* the part of the vector that the present call may take */
    bool dry;                  /* a call would move nothing now */
    bool readiness;            /* the next call only waits for readiness */
    bool lent;                 /* it only waits for the kernel to let go of memory: WF_LENT */
    bool under_way;
    bool cancelling;       /* the operation has been cancelled */
    bool cancel_under_way; /* the cancel itself has not completed yet */
    bool held;             /* finished, but waits for the cancel's completion or the memory's release */
    bool lends;            /* the present call sends without a copy: the kernel reads the memory itself */
    bool must_copy;        /* this descriptor does not lend: the kernel refuses, or copies anyway */
    bool untold;           /* the kernel does not report whether it copied */
    uint32_t copied;       /* releases in a row that reported a copy */
    uint32_t unreleased;   /* ended calls whose memory the kernel still reads */
};

/* True: the next call sends without a copy. */
bool wf_lane_lends(const struct wf_lane_rules *rules, const struct wf_lane *lane);

/* Makes `entry` the next call for the operation, which has at least one byte left (attempt.h finishes empty ones). */
void wf_lane_prepare(const struct wf_lane_rules *rules, struct wf_lane *lane, struct io_uring_sqe *entry);

/* Applies the result of that call to the operation. Not for a wait for readiness that has succeeded. */
enum wf_outcome wf_lane_digest(struct wf_lane *lane, int result);

/* The kernel has released a call's memory; `result` may report that it copied anyway, as for loopback and veth. After
 * several copies in a row the lane lends no more: lending costs more than an ordinary send. */
void wf_lane_released(struct wf_lane *lane, int result);

/* True: a completion with these flags only reports that the memory of a call that ended earlier is released. */
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
