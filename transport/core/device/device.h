/*
 * device.h: the GPUs of a context: which are in use, their slots, and the copies under way from and to their memory.
 *
 * Invariant: a copy holds its session as a half does, its message as a channel's claim or operation does, and its slot;
 * all of them are let go of exactly once, by the worker that the device belongs to, after the device has ended it.
 *
 * A copy is queued under its session's lock and started later, by the device's worker with no lock held: a driver may
 * take its time. Locks: session.lock -> device.lock | the slot pools' locks; devices.lock -> context.lock.
 */
#ifndef WF_CORE_DEVICE_DEVICE_H
#define WF_CORE_DEVICE_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/config.h"
#include "base/list.h"
#include "base/pool.h"
#include "base/status.h"
#include "core/drive/worker.h"
#include "core/ground/guard.h"
#include "mem/memory.h"
#include "mem/staging.h"

struct wf_device;
struct wf_desk;
struct wf_inbound;
struct wf_turn;
struct wf_outbound;
struct wf_guard;
struct wf_kicks;
struct wf_shares;
struct wf_transit;

enum wf_slot_size { WF_SLOT_SMALL, WF_SLOT_LARGE }; /* of `eager` bytes, of a chunk */
#define WF_SLOT_SIZES 2
#define WF_SLOT_WAYS 2 /* WF_COPY_OUT, WF_COPY_IN */
#define WF_COPY_WAYS 4

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

struct wf_device {
    struct wf_devices *devices;
    int index, node;
    struct wf_worker *worker; /* drives its copies */
    _Atomic bool lost;
    struct wf_slot_pool pools[WF_SLOT_WAYS][WF_SLOT_SIZES];
    uint8_t *memory; /* of the slots, and of the flags of turns */
    bool pinned;     /* it is; else copies are slower, and streams cannot wait */
    size_t bytes;
    _Atomic uint32_t landings;                     /* messages that are granted piece by piece, of all sessions */
    _Atomic uint32_t under_way;                    /* copies queued or running */
    _Atomic uint64_t copied[WF_COPY_WAYS], copies; /* bytes that have arrived, and copies begun; relaxed */
    _Atomic uint64_t copying_ns;                   /* with a copy running, up to the last end of all; relaxed */
    int64_t since_ns;     /* when the present ones began; 0: none is running. Token of `worker` */
    pthread_mutex_t lock; /* `queued` */
    struct wf_list queued;
    struct wf_list free_turns; /* of the same lock */
    struct wf_turn *turns;
    struct wf_list running[WF_COPY_WAYS]; /* in the order of their start; token of `worker` */
};

/* What a session has of a device; made with the first operation that needs it. Owner: session lock. */
struct wf_device_share {
    struct wf_device *device;
    struct wf_slot_account accounts[WF_SLOT_WAYS][WF_SLOT_SIZES];
    uint32_t landings;                  /* of the device's, this session's */
    uint32_t waiting[WF_SLOT_SIZES][2]; /* messages in session.stage_waiting, by the slots that they are for, and by
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

/* Of a context. Entries only come. */
struct wf_devices {
    struct wf_world *world;
    struct wf_crew *crew;
    const struct wf_memory_ops *ops;
    void *host;                       /* for ops->open */
    bool forbidden;                   /* setting cuda */
    pthread_mutex_t lock;             /* what follows changes under it */
    struct wf_memory *_Atomic memory; /* NULL: not open */
    struct wf_status reason;          /* why it could not be opened; code 0: not tried */
    struct wf_device *_Atomic used[WF_DEVICES_MAX];
    _Atomic int used_count;
};

/* A copy that failed, for the text of a completion. WF_NO_DEVICE: none did. */
struct wf_mishap {
    int device;
    enum wf_copy_way way;
    uint64_t start, end;
    const char *why; /* the driver's words; lives as long as the context */
};

/* `ops`, `host`: what device memory is reached by. `forbidden`: not at all. */
void wf_devices_init(struct wf_devices *devices, struct wf_crew *crew, const struct wf_memory_ops *ops, void *host,
                     bool forbidden);
/* Reads the settings; opens what is to be open from the start. The workers exist. */
int wf_devices_begin(struct wf_devices *devices, const struct wf_config *config, struct wf_status *status);
/* No session is left. */
void wf_devices_fini(struct wf_devices *devices);

/* Makes a GPU ready, if it was not. Waits. 0, -ENODEV, -ENOMEM. */
int wf_devices_use(struct wf_devices *devices, int index, struct wf_device **out, struct wf_status *status);

/* The device whose memory [base, base + length) is, made ready if it was not; NULL for host memory. Waits, if it is the
 * first of a device, or at all. 0, -EINVAL, -ENODEV, -ENOMEM. */
int wf_devices_find(struct wf_devices *devices, const void *base, uint64_t length, struct wf_device **out,
                    struct wf_status *status);

/* Is there memory of a device at `base`? For operations that name no registration; never waits. */
bool wf_devices_own(struct wf_devices *devices, const void *base);

/* Is any device ready? Else no operation can be on its memory. */
static inline bool wf_devices_any(const struct wf_devices *devices)
{
    return atomic_load_explicit(&devices->used_count, memory_order_relaxed) > 0;
}

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

/* --- token of `worker` held, no lock --- */

/* Is a copy under way that this worker has to look after? */
bool wf_devices_busy(const struct wf_devices *devices, const struct wf_worker *worker);
/* Starts what is queued and ends what is done; returns how many. */
int wf_devices_drive(struct wf_devices *devices, struct wf_worker *worker);

#endif
