/*
 * memory.h: device memory, which sockets cannot use, and its copies from and to host memory. One table for each kind of
 * device memory; host memory needs no table. The invariant that every implementation keeps:
 *
 *     a copy that was started is reported done exactly once, copies in any order;
 *     from then on neither the copy nor the device refers to the memory of either side.
 *
 * Contract:
 *   - `open` may wait (loading a driver takes up to a second). Another call waits only if its comment says so.
 *   - Any thread may call, but only one at a time for one copy. No call takes a lock of the caller.
 *   - A call leaves the calling thread's state as it was (it restores the current CUDA context), and does not disturb
 *     the program's own use of the driver: a graph that the program captures stays valid.
 *   - Calls return 0 or a negative errno, with one line for a person in `status`, if there is one. -EIO: the device
 *     failed; -ENODEV: it is lost, or this process can no longer use it, and every later call on it fails the same way.
 *   - The processor never reads or writes device memory.
 */
#ifndef WF_MEM_MEMORY_H
#define WF_MEM_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

#define WF_DEVICES_MAX 64
#define WF_NO_DEVICE (-1)

struct wf_memory; /* an open kind of memory. Owner: the context that opened it */

/* A device of this machine. */
struct wf_device_info {
    int index;     /* as the user counts devices; the parameter `device` of the calls below */
    char name[96]; /* "NVIDIA H100 80GB HBM3" */
    char pci[20];  /* "0000:19:00.0"; "": unknown */
    uint64_t bytes;
};

/* Where a range of memory is. */
struct wf_memory_place {
    int device;  /* WF_NO_DEVICE: host memory */
    bool pinned; /* host memory: devices copy from and to it at full speed */
};

/* An allocation of device memory, or a mapping in reserved addresses. */
struct wf_memory_extent {
    int device;
    const void *base;
    uint64_t bytes;
    /* Another one for what is allocated later, also at the same address, while this process lives; two mappings of one
     * block have the same. 0: the driver does not tell. */
    uint64_t id;
};

/* One piece of a copy. */
struct wf_copy_piece {
    void *to;
    const void *from;
    uint64_t bytes; /* 1 and up */
};

enum wf_copy_way {
    WF_COPY_OUT,  /* device to host */
    WF_COPY_IN,   /* host to device */
    WF_COPY_PEER, /* device to device, also of one device */
    WF_COPY_MARK, /* copies nothing: done when the work that is in `stream` at its start is done */
};

/* A copy under way. The caller fills the first part and keeps the object until copy_done() reports the end. */
struct wf_copy {
    int device;    /* OUT, IN: owner of the device memory; PEER: owner of the source; MARK: owner of the stream */
    int to_device; /* PEER: owner of the destination */
    enum wf_copy_way way;
    void *stream; /* MARK: the user's stream (CUstream); NULL is the default stream */
    /* used by the implementation: 0 before copy_start(), and again once the copy has ended or has failed to start */
    void *event;
    uint64_t token;
};

struct wf_memory_ops {
    const char *kind; /* "cuda" */

    /* Is the driver already in this process? If not, no pointer points to device memory. Never loads the driver. */
    bool (*present)(void *host);

    /* Finds the driver and its devices; retains no device. -ENODEV: there is no driver or device; `status` says why in
     * one line. `host`: NULL, or the world of a test for an implementation that needs one. */
    int (*open)(void *host, struct wf_memory **out, struct wf_status *status);
    /* No copy may be under way. NULL is allowed. */
    void (*close)(struct wf_memory *memory);

    /* "cuda", "cuda (emulated)": written into every result. */
    const char *(*name)(const struct wf_memory *memory);
    /* Fills up to `max` entries; returns the number of devices. */
    int (*devices)(const struct wf_memory *memory, struct wf_device_info *infos, int max);

    /* Makes a device ready for the calls below (retains its primary context, makes streams). Waits. A device needs it
     * once; later calls change nothing. -ENODEV: the device does not exist, or is lost. */
    int (*use)(struct wf_memory *memory, int device, struct wf_status *status);

    /* Tells where [base, base + length) is. Needs no device in use. -EINVAL: the range spans two allocations, or ends
     * outside of all (`status` names them). */
    int (*locate)(struct wf_memory *memory, const void *base, uint64_t length, struct wf_memory_place *out,
                  struct wf_status *status);

    /* Tells the allocation that `address` is in. Needs no device in use. -EINVAL: it is in none of a device. */
    int (*extent)(struct wf_memory *memory, const void *address, struct wf_memory_extent *out,
                  struct wf_status *status);

    /* Allocates and frees device memory. May wait, also for work on the device. -ENOMEM. */
    int (*alloc)(struct wf_memory *memory, int device, uint64_t bytes, void **out, struct wf_status *status);
    void (*free)(struct wf_memory *memory, int device, void *base);

    /* Pins host memory of the caller (page-aligned), so that all devices copy from and to it at full speed, as long as
     * `device`, which is in use, is not lost. May wait. Copies also work without pinning. */
    int (*pin)(struct wf_memory *memory, int device, void *base, uint64_t bytes, struct wf_status *status);
    void (*unpin)(struct wf_memory *memory, int device, void *base);

    /*
     * Starts `copy` of `count` pieces. With `more`, further calls for the same copy follow at once; the copy is done
     * when the pieces of all calls are. The call does not keep `pieces`. Copies of one device and way may run at the
     * same time. On an error no part of the copy is under way any more; do not call copy_done(). -ENOTSUP: the stream
     * of a mark is being captured into a graph.
     */
    int (*copy_start)(struct wf_memory *memory, struct wf_copy *copy, const struct wf_copy_piece *pieces, int count,
                      bool more);
    /* 1: done; 0: not yet; negative: the copy failed, and its destination is undefined. */
    int (*copy_done)(struct wf_memory *memory, struct wf_copy *copy);
    /* The last failure of a copy of this device, in the driver's words: "CUDA_ERROR_LAUNCH_FAILED (719)". */
    const char *(*why)(const struct wf_memory *memory, int device);

    /* Work put to the user's stream from now on waits until the word `flag` (pinned) has reached `value`. -ENOTSUP. */
    int (*hold)(struct wf_memory *memory, int device, void *stream, const uint32_t *flag, uint32_t value);

    /* Copies between any two places, and waits for the copy: to fill and read device memory, not for data paths. */
    int (*copy_now)(struct wf_memory *memory, void *to, const void *from, uint64_t bytes, struct wf_status *status);

    /* Can dma-bufs of this device's memory be had at all? 0; -ENOTSUP: no, and `status` says why; -ENODEV: there is no
     * such device. Needs no device in use. */
    int (*exports)(struct wf_memory *memory, int device, struct wf_status *status);
    /* A dma-buf of device memory, for network cards that read or write it; its descriptor is the caller's. It consists
     * of whole pages: `base` is `offset` bytes behind its start, and other memory may share its first and last page.
     * While it is in use anywhere, its memory stays, also where it has been freed. -ENOTSUP: the driver or device has
     * none of this memory. */
    int (*export_dmabuf)(struct wf_memory *memory, int device, const void *base, uint64_t bytes, int *fd,
                         uint64_t *offset, struct wf_status *status);
};

extern const struct wf_memory_ops wf_memory_cuda;

#endif
