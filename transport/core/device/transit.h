/*
 * transit.h: copies to and from device memory that are under way, and the share that a session has of each device.
 *
 * Invariant: a copy holds its session as a channel half does, its message as a channel's claim or operation does, and
 * its slot. The device's worker lets go of all three exactly once, after the device has ended the copy.
 *
 * A copy is queued under its session's lock and started later by the device's worker with no lock held, because the
 * driver may take its time. Locks: guard.lock -> device.lock | the slot pools' locks.
 *
 * Fields of wf_shares that other rooms may read: `each`, `bells`.
 */
#ifndef WF_CORE_DEVICE_TRANSIT_H
#define WF_CORE_DEVICE_TRANSIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/pool.h"
#include "core/device/device.h"
#include "core/drive/worker.h"
#include "core/ground/guard.h"
#include "mem/memory.h"
#include "mem/staging.h"

struct wf_desk;
struct wf_inbound;
struct wf_landing;
struct wf_outbound;
struct wf_transit;
struct wf_turn;

/* Functions of the room that wants the copy. */
struct wf_transit_ops {
    /* Starts the copy. No lock, the device worker's token. 0, an error, or 1: nothing to copy. NULL: already
     * started. */
    int (*start)(struct wf_transit *transit);
    /* The copy has ended. No lock, the device worker's token. NULL: nothing to do here. */
    void (*unlocked)(struct wf_transit *transit);
    /* Before `ended`, session lock held: says the tag of the message and its endpoints, those of the side that copies
     * first. For the trace. NULL: the copy is no event. */
    void (*name)(const struct wf_transit *transit, struct wf_trace_event *event);
    /* After `unlocked`, session lock held: lets go of the message; `result` says how the copy ended. */
    void (*ended)(struct wf_transit *transit);
};

/* A copy from the moment it is queued until it has ended. From wf_shares.transits; of a MARK, in wf_turn. */
struct wf_transit {
    struct wf_link link; /* device.queued, or device.running */
    struct wf_copy copy;
    struct wf_device *device;
    const struct wf_transit_ops *ops;
    struct wf_shares *shares;     /* of its session; PEER: of the receiver's session */
    struct wf_desk *twin;         /* PEER: the sender's desk, held with its outbound; NULL: there is none */
    bool landed;                  /* PEER: the sender has let go of the copy */
    struct wf_outbound *outbound; /* OUT, PEER: the message that is copied, held as by an operation (in_engine) */
    struct wf_inbound *inbound;   /* IN, PEER: the message that lands, claimed */
    struct wf_turn *turn;         /* MARK: the turn that contains this transit */
    struct wf_slot *slot;         /* IN: NULL if the bytes are in the unexpected pool */
    struct wf_landing *landing;   /* PEER: its pieces in the memory of an inlet; IN: those in host memory; or NULL */
    uint64_t start, end;          /* range of bytes in the message */
    int result;                   /* once it has ended */
    int64_t begin_ns, end_ns;     /* traced: when it was started, and found done; 0: not traced, or not done */
};

/* The share that a session has of a device; made for the first operation that needs it. Owner: session lock. */
struct wf_device_share {
    struct wf_device *device;
    struct wf_slot_account accounts[WF_SLOT_WAYS][WF_SLOT_SIZES];
    uint32_t landings;                  /* part of wf_device.landings that this session has */
    uint32_t waiting[WF_SLOT_SIZES][2]; /* messages in wf_desk.stage_waiting, by the size of slot that they wait for,
                                         * and by whether the peer knows of them */
};

/* The shares that a session has of its context's devices. Owner: session lock. */
struct wf_shares {
    struct wf_guard *guard;
    struct wf_kicks *kicks;
    struct wf_device_share *each[WF_DEVICES_MAX]; /* by device index */
    _Atomic bool slots_told;                      /* a slot came back since wf_desk.stage_waiting was last tried */
    struct wf_bells bells;                        /* workers whose devices have something to start */
    struct wf_pool transits;
};

void wf_shares_init(struct wf_shares *shares, struct wf_guard *guard, struct wf_kicks *kicks);
/* Frees the shares and the memory of the transits. */
void wf_shares_fini(struct wf_shares *shares);

/* The session's share of the device, made if there is none. NULL: no memory, and the session has
 * failed: messages would wait for slots that nobody gives back. */
struct wf_device_share *wf_device_share(struct wf_shares *shares, struct wf_device *device);
/* A slot may have come back: messages that wait for one look again. Any thread. */
void wf_shares_look_again(struct wf_shares *shares);
/* Has wf_shares_look_again() been called since the last call? */
bool wf_shares_take_look(struct wf_shares *shares);
/* Frees the session's shares: it has no copy under way any more. */
void wf_shares_give_back(struct wf_shares *shares);

/* A new transit of the session for a copy. NULL: no memory. */
struct wf_transit *wf_transit_take(struct wf_shares *shares, struct wf_device *device, enum wf_copy_way way,
                                   const struct wf_transit_ops *ops);
/* Queues the copy: from now on it belongs to the device's worker. Session lock held. */
void wf_transit_queue(struct wf_transit *transit);

/* Kicks the workers of wf_shares.bells. Session lock held; `self` as for wf_worker_kick(). */
void wf_devices_kick(struct wf_shares *shares, struct wf_worker *self);

#endif
