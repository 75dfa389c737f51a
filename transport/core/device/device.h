/*
 * device.h: the GPUs of a context: which are in use, and their slots.
 *
 * Locks: guard.lock -> device.lock | the slot pools' locks; devices.lock -> world.lock. transit.h tells of the copies.
 */
#ifndef WF_CORE_DEVICE_DEVICE_H
#define WF_CORE_DEVICE_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/config.h"
#include "base/list.h"
#include "base/status.h"
#include "core/drive/worker.h"
#include "mem/memory.h"
#include "mem/staging.h"

struct wf_device;
struct wf_transit;

enum wf_slot_size { WF_SLOT_SMALL, WF_SLOT_LARGE }; /* of `eager` bytes, of a chunk */
#define WF_SLOT_SIZES 2
#define WF_SLOT_WAYS 2 /* WF_COPY_OUT, WF_COPY_IN */
#define WF_COPY_WAYS 4

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

/* --- token of `worker` held, no lock --- */

/* Is a copy under way that this worker has to look after? */
bool wf_devices_busy(const struct wf_devices *devices, const struct wf_worker *worker);
/* Starts what is queued and ends what is done; returns how many. */
int wf_devices_drive(struct wf_devices *devices, struct wf_worker *worker);

#endif
