/*
 * device.h: the GPUs of a context that are in use, and their slots.
 *
 * Locks: guard.lock -> device.lock | the slot pools' locks; devices.lock -> world.lock. transit.h describes the copies.
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

enum wf_slot_size { WF_SLOT_SMALL, WF_SLOT_LARGE }; /* a slot holds `eager` bytes, or a chunk */
#define WF_SLOT_SIZES 2
#define WF_SLOT_WAYS 2 /* WF_COPY_OUT, WF_COPY_IN */
#define WF_COPY_WAYS 4

struct wf_device {
    struct wf_devices *devices;
    int index, node;
    struct wf_worker *worker; /* drives the device's copies */
    _Atomic bool lost;
    struct wf_slot_pool pools[WF_SLOT_WAYS][WF_SLOT_SIZES];
    uint8_t *memory; /* staging memory: the slots, and the flags of turns */
    bool pinned;     /* `memory` is pinned; if not, copies are slower, and streams cannot wait */
    size_t bytes;
    _Atomic uint32_t landings;                     /* messages to the device that are granted piece by piece, all
                                                    * sessions */
    _Atomic uint32_t under_way;                    /* copies queued or running */
    _Atomic uint64_t copied[WF_COPY_WAYS], copies; /* bytes copied, but for those of landings, and copies begun;
                                                    * relaxed */
    _Atomic uint64_t copying_ns;                   /* time with a copy running, up to the last moment without one;
                                                    * relaxed */
    int64_t since_ns;     /* when a copy began after a moment without any; 0: none is running. Token of `worker` */
    pthread_mutex_t lock; /* of `queued` and `free_turns` */
    struct wf_list queued;
    struct wf_list free_turns; /* turns that no operation has; `lock` */
    struct wf_turn *turns;
    struct wf_list running[WF_COPY_WAYS]; /* in the order of their start; token of `worker` */
};

/* The devices of a context. Entries of `used` are added, never removed. */
struct wf_devices {
    struct wf_world *world;
    struct wf_crew *crew;
    const struct wf_memory_ops *ops;
    void *host;                       /* for ops->open */
    bool forbidden;                   /* setting cuda, or a simulated world: no device memory is used */
    pthread_mutex_t lock;             /* the fields below are written under it */
    struct wf_memory *_Atomic memory; /* NULL: not open */
    struct wf_status reason;          /* why it could not be opened; code 0: not tried */
    struct wf_device *_Atomic used[WF_DEVICES_MAX];
    _Atomic int used_count;
};

/* A copy that failed, for the text of a completion. `device` is WF_NO_DEVICE: no copy failed. */
struct wf_mishap {
    int device;
    enum wf_copy_way way;
    uint64_t start, end;
    const char *why; /* the driver's text; lives as long as the context */
};

/* `ops`, `host`: the way to device memory. `forbidden`: device memory is not used at all. */
void wf_devices_init(struct wf_devices *devices, struct wf_crew *crew, const struct wf_memory_ops *ops, void *host,
                     bool forbidden);
/* Reads the settings, and opens the GPUs that they name. The workers exist. */
int wf_devices_begin(struct wf_devices *devices, const struct wf_config *config, struct wf_status *status);
/* Frees the devices. No session is left. */
void wf_devices_fini(struct wf_devices *devices);

/* Makes a GPU ready, if it is not ready yet. May wait for the driver. 0, -ENODEV, -ENOMEM. */
int wf_devices_use(struct wf_devices *devices, int index, struct wf_device **out, struct wf_status *status);

/* The device, if it is in use; else NULL. Never waits. */
struct wf_device *wf_devices_used(const struct wf_devices *devices, int index);

/* Finds the device that has the memory [base, base + length), and makes it ready; NULL for host memory. May wait for
 * the driver when device memory, or this device, is used for the first time. 0, -EINVAL, -ENODEV, -ENOMEM. */
int wf_devices_find(struct wf_devices *devices, const void *base, uint64_t length, struct wf_device **out,
                    struct wf_status *status);

/* Is there memory of a device at `base`? For operations that name no registration; never waits. */
bool wf_devices_own(struct wf_devices *devices, const void *base);

/* Is any device ready? If not, no operation can be on device memory. */
static inline bool wf_devices_any(const struct wf_devices *devices)
{
    return atomic_load_explicit(&devices->used_count, memory_order_relaxed) > 0;
}

/* --- token of `worker` held, no lock --- */

/* Is a copy under way on a device that this worker drives? */
bool wf_devices_busy(const struct wf_devices *devices, const struct wf_worker *worker);
/* Starts queued copies and ends finished ones, on the devices of this worker; returns how many. */
int wf_devices_drive(struct wf_devices *devices, struct wf_worker *worker);

#endif
