/*
 * transit.h: copies under way from and to devices' memory, and what a session has of the devices meanwhile.
 *
 * Invariant: a copy holds its session as a half does, its message as a channel's claim or operation does, and its slot;
 * all of them are let go of exactly once, by the worker that the device belongs to, after the device has ended it.
 *
 * A copy is queued under its session's lock and started later, by the device's worker with no lock held: a driver may
 * take its time. Locks: guard.lock -> device.lock | the slot pools' locks.
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
struct wf_outbound;
struct wf_transit;
struct wf_turn;

/* What a copy means to the room that wants it. */
struct wf_transit_ops {
    /* No lock, the device worker's token. 0, an error, or 1: there is nothing to copy after all. NULL: it has begun. */
    int (*start)(struct wf_transit *transit);
    /* The same, once it has ended, before the lock is taken. NULL: nothing. */
    void (*unlocked)(struct wf_transit *transit);
    /* Lock held: lets go of the message, whose fate `result` is. */
    void (*ended)(struct wf_transit *transit);
};

/* A copy that was queued, until it has ended. From wf_shares.transits. */
struct wf_transit {
    struct wf_link link; /* device.queued, or device.running */
    struct wf_copy copy;
    struct wf_device *device;
    const struct wf_transit_ops *ops;
    struct wf_shares *shares;     /* PEER: the receiver's */
    struct wf_desk *twin;         /* PEER: the sender's, held with its outbound; NULL: there is none */
    bool landed;                  /* PEER: the sender is done with it */
    struct wf_outbound *outbound; /* OUT, PEER: whose bytes they are; holds it as an operation does (in_engine) */
    struct wf_inbound *inbound;   /* IN, PEER: claimed */
    struct wf_turn *turn;         /* MARK: part of it */
    struct wf_slot *slot;         /* IN: NULL where the bytes lie in the unexpected pool */
    uint64_t start, end;          /* of the message */
    int result;                   /* once it has ended */
};

/* What a session has of a device; made with the first operation that needs it. Owner: session lock. */
struct wf_device_share {
    struct wf_device *device;
    struct wf_slot_account accounts[WF_SLOT_WAYS][WF_SLOT_SIZES];
    uint32_t landings;                  /* of the device's, this session's */
    uint32_t waiting[WF_SLOT_SIZES][2]; /* messages in wf_desk.stage_waiting, by the slots that they are for, and by
                                         * whether the peer has heard of them */
};

/* What a session has of its context's devices. Owner: session lock. */
struct wf_shares {
    struct wf_guard *guard;
    struct wf_kicks *kicks;
    struct wf_device_share *each[WF_DEVICES_MAX]; /* by device index */
    _Atomic bool slots_told;                      /* a slot came back since wf_desk.stage_waiting was last tried */
    uint32_t bells; /* workers, by index, whose devices have something to start for this session */
    struct wf_pool transits;
};

void wf_shares_init(struct wf_shares *shares, struct wf_guard *guard, struct wf_kicks *kicks);
/* Gives back the copies' memory; after wf_shares_give_back(). */
void wf_shares_fini(struct wf_shares *shares);

/* What the session has of the device. NULL: memory. */
struct wf_device_share *wf_device_share(struct wf_shares *shares, struct wf_device *device);
/* A slot may have come back: messages that wait for one look again. Any thread. */
void wf_shares_look_again(struct wf_shares *shares);
/* Has one come back since the last answer? */
bool wf_shares_take_look(struct wf_shares *shares);
/* Gives all of it back: nothing is under way any more. */
void wf_shares_give_back(struct wf_shares *shares);

/* A fresh transit of the session's for a copy. NULL: memory. */
struct wf_transit *wf_transit_take(struct wf_shares *shares, struct wf_device *device, enum wf_copy_way way,
                                   const struct wf_transit_ops *ops);
/* Queues it: from here on it is the worker's. */
void wf_transit_queue(struct wf_transit *transit);

/* The workers whose devices have got something to start: session lock held; `self` as for wf_worker_kick(). */
void wf_devices_kick(struct wf_shares *shares, struct wf_worker *self);

#endif
