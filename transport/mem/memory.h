/*
 * memory.h: memory that the kernel's sockets cannot touch, and how it is copied from and to host memory. One table per
 * kind of such memory; host memory needs none. The invariant that every implementation keeps:
 *
 *     a copy that was started is reported done exactly once, in whatever order, and from then on
 *     neither it nor the device refers to the memory of either side.
 *
 * Contract:
 *   - `open` may wait (loading a driver takes up to a second), and so may what its comment says; nothing else does.
 *   - Any thread may call; calls about one copy come one after another. No call takes a lock of the caller's.
 *   - The calling thread's state is left as it was found (a current CUDA context is put back), and so is what the
 *     program does with the driver beside us: a graph that it captures is not spoilt.
 *   - 0 or a negative errno, with one line for a person in `status` where there is one. -EIO: the device failed;
 *     -ENODEV: it is lost, or this process has broken what it has of it, and whatever else is asked of it fails the
 * same way.
 *   - Device memory is never read or written by the processor.
 */
#ifndef WF_MEM_MEMORY_H
#define WF_MEM_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

#define WF_DEVICES_MAX 64
#define WF_NO_DEVICE (-1)

struct wf_memory; /* an open kind: Owner: the context that opened it */

/* A device of this machine. */
struct wf_device_info {
    int index;     /* as the user counts them; also names it in the calls below */
    char name[96]; /* "NVIDIA H100 80GB HBM3" */
    char pci[20];  /* "0000:19:00.0"; "": unknown */
    uint64_t bytes;
};

/* Where a range of memory is. */
struct wf_memory_place {
    int device;  /* WF_NO_DEVICE: host memory */
    bool pinned; /* host memory that devices copy from and to at full speed */
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
    WF_COPY_MARK, /* nothing is copied: done when the work that is in `stream` now has been done */
};

/* A copy under way. The caller fills the first part and keeps the object until copy_done() has said that it ended. */
struct wf_copy {
    int device;    /* OUT, IN: the one whose memory it is; PEER: the source's; MARK: the stream's */
    int to_device; /* PEER: the destination's */
    enum wf_copy_way way;
    void *stream; /* MARK: the user's (CUstream); NULL is the default stream */
    /* the implementation's: 0 before copy_start(), and again when the copy has ended or has not started */
    void *event;
    uint64_t token;
};

struct wf_memory_ops {
    const char *kind; /* "cuda" */

    /* Is the driver in this process already? Without it no pointer is one to device memory. Never loads it. */
    bool (*present)(void *host);

    /* Finds the driver and its devices; retains none of them. -ENODEV: there is none, and `status` says why in one
     * line. `host`: NULL; a test's world for an implementation that needs one. */
    int (*open)(void *host, struct wf_memory **out, struct wf_status *status);
    /* No copy is under way. NULL is fine. */
    void (*close)(struct wf_memory *memory);

    /* "cuda", "cuda (emulated)": stands in every result. */
    const char *(*name)(const struct wf_memory *memory);
    /* Fills up to `max`; returns how many devices there are. */
    int (*devices)(const struct wf_memory *memory, struct wf_device_info *infos, int max);

    /* Makes a device ready for the calls below (retains its primary context, makes streams). Waits. Once per device is
     * enough; further calls do no harm. -ENODEV: no such device. */
    int (*use)(struct wf_memory *memory, int device, struct wf_status *status);

    /* Where [base, base + length) is. Needs no device in use. -EINVAL: it spans two allocations, or its end is in none
     * (names them). */
    int (*locate)(struct wf_memory *memory, const void *base, uint64_t length, struct wf_memory_place *out,
                  struct wf_status *status);

    /* Device memory. May wait, also for work on the device. -ENOMEM. */
    int (*alloc)(struct wf_memory *memory, int device, uint64_t bytes, void **out, struct wf_status *status);
    void (*free)(struct wf_memory *memory, int device, void *base);

    /* Host memory of the caller's (page-aligned) that devices are to copy from and to at full speed. All of them do,
     * but it stays so only as long as `device`, which is in use, is sound. May wait. Copies work without it, too. */
    int (*pin)(struct wf_memory *memory, int device, void *base, uint64_t bytes, struct wf_status *status);
    void (*unpin)(struct wf_memory *memory, int device, void *base);

    /*
     * Starts `copy` of `count` pieces; with `more`, further calls for the same copy follow at once, and it is the last
     * that counts. Pieces are read during the call only. Copies of one device and way may run at the same time. On an
     * error nothing of the whole copy is under way any more, and it is not asked for again. -ENOTSUP: a mark, and the
     * stream is being captured into a graph.
     */
    int (*copy_start)(struct wf_memory *memory, struct wf_copy *copy, const struct wf_copy_piece *pieces, int count,
                      bool more);
    /* 1: done; 0: not yet; negative: it failed, and its destination is undefined. */
    int (*copy_done)(struct wf_memory *memory, struct wf_copy *copy);
    /* What the last failure of a copy of this device was, in the driver's words: "CUDA_ERROR_LAUNCH_FAILED (719)". */
    const char *(*why)(const struct wf_memory *memory, int device);

    /* Work put to the user's stream from now on waits until the word `flag` (pinned) has reached `value`. -ENOTSUP. */
    int (*hold)(struct wf_memory *memory, int device, void *stream, const uint32_t *flag, uint32_t value);

    /* Copies between any two places, and waits for it: for filling and looking at device memory, not for data paths. */
    int (*copy_now)(struct wf_memory *memory, void *to, const void *from, uint64_t bytes, struct wf_status *status);

    /* A dma-buf of device memory for network cards that write there. -ENOTSUP: the driver or device has none. */
    int (*export_dmabuf)(struct wf_memory *memory, int device, const void *base, uint64_t bytes, int *fd,
                         uint64_t *offset, struct wf_status *status);
};

extern const struct wf_memory_ops wf_memory_cuda;

#endif
