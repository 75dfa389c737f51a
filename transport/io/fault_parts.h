/*
 * fault_parts.h: shared by the sources of the engine that injects faults. No other file includes it.
 */
#ifndef WF_IO_FAULT_PARTS_H
#define WF_IO_FAULT_PARTS_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/list.h"
#include "io/around.h"
#include "io/engine_fault.h"
#include "io/vector.h"

#define WF_FAULT_BUCKETS 64 /* for descriptors, by number */

/* A descriptor; one struct for all engines that it is attached to. Owner: as each field says. */
struct wf_fault_socket {
    struct wf_link link; /* in fault.sockets; guarded by fault.lock */
    int fd;
    atomic_int rail;       /* index in fault.rails; -1: on no rail, or not known yet */
    atomic_bool cut;       /* reset by a fault: every operation fails from now on */
    _Atomic uint64_t held; /* bytes of a send that waits for the end of a stall */
    /* The values of `progress` during a stall; guarded by fault.lock. */
    int64_t frozen_until_ns;
    struct wf_progress frozen;
};

struct wf_fault {
    struct wf_around around; /* first: it is the host */
    const struct wf_clock *clock;
    const struct wf_log *log;
    const struct wf_fault_rail *rails;
    int rail_count;
    int64_t start_ns;
    struct wf_fault_plan plan;
    _Atomic uint32_t cuts; /* descriptors reset so far: when it changes, each engine checks its descriptors */

    pthread_mutex_t lock; /* guards the fields below; its holder calls only the inner engine's wake and progress */
    struct wf_fault_dice dice;
    struct wf_fault_counts counts;
    struct wf_list sockets[WF_FAULT_BUCKETS];
    struct wf_list engines;
    uint32_t begun, over; /* windows whose start, whose end has been counted and logged, as bits */
};

enum wf_fault_place {
    WF_FAULT_NOWHERE,    /* no operation */
    WF_FAULT_WITH_INNER, /* the inner engine has the operation, or a piece of it */
    WF_FAULT_NEXT,       /* the next piece of the operation is due at the next poll */
    WF_FAULT_HELD,       /* its rail stalls */
    WF_FAULT_FINISHED,
};

/* One direction of a descriptor. Owner: as struct wf_fault_engine. */
struct wf_fault_lane {
    struct wf_link link; /* in the engine's `next` or `finished` */
    struct wf_fault_slot *slot;
    struct wf_op *user; /* NULL: none */
    enum wf_fault_place place;
    bool cancelling; /* the poster has cancelled the operation */
    bool connected;  /* HELD: a connect that has succeeded; only its result is held */
    uint64_t done;   /* bytes of earlier pieces */
    struct wf_op op; /* the operation posted to the inner engine */
    struct iovec iov[WF_PORTION_ENTRIES];
};

/* A descriptor that is attached. Owner: as struct wf_fault_engine. */
struct wf_fault_slot {
    struct wf_link link; /* in the engine's `slots` */
    struct wf_fault_socket *socket;
    struct wf_fault_lane reader, writer;
};

/* Owner: the thread that drives the engine; fault.lock guards the link. */
struct wf_fault_engine {
    struct wf_engine base;
    struct wf_link link; /* in fault.engines */
    struct wf_fault *fault;
    struct wf_engine *inner;
    bool set_up; /* see struct wf_engine_limits */
    struct wf_list slots[WF_FAULT_BUCKETS];
    struct wf_list next, finished; /* of lanes */
    struct wf_fault_state state;   /* as last looked up; until_ns on the clock */
    uint32_t cuts;                 /* fault.cuts when this engine last ended the operations of cut descriptors */
};

/* --- fault_shared.c --- */

struct wf_fault_state wf_fault_look_up(const struct wf_fault *fault, int64_t now_ns);
/* Counts and logs windows that have begun or ended. */
void wf_fault_tell_windows(struct wf_fault *fault, int64_t now_ns);

/* Resets the connection, once, and wakes every engine. `count`: the field of fault.counts to increment. The descriptor
 * is attached to the caller's engine, so no thread closes it meanwhile. */
void wf_fault_cut(struct wf_fault *fault, struct wf_fault_socket *socket, uint64_t *count, const char *why);
/* Counts a refused connect or accept. */
void wf_fault_note_refused(struct wf_fault *fault);

/* The bytes, out of `bytes`, that the next call may move. */
uint64_t wf_fault_next_piece(struct wf_fault *fault, uint64_t bytes);
/* `bytes` have moved: resets the connection if that is due. */
void wf_fault_moved(struct wf_fault *fault, struct wf_fault_socket *socket, uint64_t bytes);
/* Flips the bits that are due in the first `bytes` bytes of a vector. */
void wf_fault_damage(struct wf_fault *fault, const struct wf_fault_socket *socket, const struct iovec *iov,
                     uint64_t bytes);

/* --- fault_host.c --- */

/* The struct of a descriptor, created at the first call for it. NULL: no memory. Lives until the descriptor is closed.
 */
struct wf_fault_socket *wf_fault_socket_of(struct wf_fault *fault, int fd);
/* Looks up the rail of a descriptor, which may have an address by now. */
void wf_fault_find_rail(struct wf_fault *fault, struct wf_fault_socket *socket);
/* Keeps the present answer of `progress` until the present stall of the rail ends. */
void wf_fault_freeze(struct wf_fault *fault, struct wf_fault_socket *socket);

/* The ops that this engine changes. */
int wf_fault_op_progress(void *host, int fd, struct wf_progress *out);
void wf_fault_op_close_fd(void *host, int fd);

/* --- fault_lane.c --- */

/* Continues an operation that the inner engine does not have, as far as its rail allows. */
void wf_fault_lane_start(struct wf_fault_engine *engine, struct wf_fault_lane *lane);
/* The inner engine has returned `lane->op`. */
void wf_fault_lane_returned(struct wf_fault_engine *engine, struct wf_fault_lane *lane);
void wf_fault_lane_cancel(struct wf_fault_engine *engine, struct wf_fault_lane *lane);
/* The connection has been reset, by this or another engine: ends the operation of the lane. */
void wf_fault_lane_end(struct wf_fault_engine *engine, struct wf_fault_lane *lane);
/* The stall of the lane's rail begins, and ends. */
void wf_fault_lane_stall(struct wf_fault_engine *engine, struct wf_fault_lane *lane);
void wf_fault_lane_go_on(struct wf_fault_engine *engine, struct wf_fault_lane *lane);

/* Is the bit of the descriptor's rail set? */
static inline bool wf_fault_hits(const struct wf_fault_socket *socket, uint64_t rails)
{
    int rail = atomic_load_explicit(&socket->rail, memory_order_relaxed);
    return rail >= 0 && (rails >> rail & 1);
}

#endif
