/*
 * memory_cuda.h: what the files memory_cuda*.c share. No other file includes it.
 *
 *     after each call the calling thread has the current context and the capture mode that it had before the call
 *
 * so driver calls stand between wf_cuda_enter() and wf_cuda_leave(). No call on the way of a copy waits for a device.
 */
#ifndef WF_MEM_MEMORY_CUDA_H
#define WF_MEM_MEMORY_CUDA_H

#include <pthread.h>
#include <stdatomic.h>

#include "mem/cuda_driver.h"
#include "mem/cuda_kernels.h"
#include "mem/memory.h"

#define WF_CUDA_WAYS 3       /* WF_COPY_OUT, WF_COPY_IN, WF_COPY_PEER: marks have the user's streams */
#define WF_CUDA_LANES 2      /* streams of a way: the launch of one copy overlaps with another copy */
#define WF_CUDA_EVENTS 256   /* made at a time */
#define WF_CUDA_ERRORS 48    /* different errors of the driver that are kept in words */
#define WF_CUDA_GATHERED 512 /* pieces that one launch moves at most */
#define WF_CUDA_SCRATCH (UINT64_C(4) << 20)
#define WF_CUDA_TABLES 4 /* launches of a lane whose descriptors may be on their way */

/* One stream of copies, and where its kernels put pieces together. Device memory is used by stream order: what a launch
 * left there is read by the copy behind it before the next launch writes. */
struct wf_cuda_lane {
    wf_cu_stream stream;
    pthread_mutex_t gathering;        /* launch and copy of one thread are not separated by another's */
    wf_cu_memory scratch;             /* WF_CUDA_SCRATCH bytes; 0: this lane gathers nothing */
    wf_cu_memory pieces;              /* WF_CUDA_GATHERED descriptors */
    struct wf_gather_piece *tables;   /* as many for each of WF_CUDA_TABLES launches; in the device's `tables` */
    wf_cu_event read[WF_CUDA_TABLES]; /* the table has been copied to `pieces`, or was never used */
    unsigned int turn;                /* of the tables */
};

/* Owner: the memory. Up to `ready` guarded by `starting`, from then on constant but for what says otherwise. */
struct wf_cuda_device {
    struct wf_device_info info;
    wf_cu_device handle;
    atomic_bool ready; /* use() has succeeded */
    atomic_bool lost;  /* for good: it, or just its context */
    _Atomic(const char *) why;
    char fate[WF_CUDA_ERROR_TEXT + 16]; /* `why` of a device that is lost itself; written once, memory.lock */
    wf_cu_context context;              /* its primary one, retained */
    struct wf_cuda_lane lanes[WF_CUDA_WAYS][WF_CUDA_LANES];
    atomic_uint turns[WF_CUDA_WAYS];
    wf_cu_stream now;        /* of copy_now */
    wf_cu_event probe;       /* never recorded: a query of it fails only where all of the context does */
    _Atomic(uint64_t) peers; /* bit i: access to device i was asked for, whatever came of it */
    struct wf_cuda_kernels kernels;
    struct wf_gather_piece *tables; /* pinned, of all lanes; NULL: nothing is gathered */

    pthread_mutex_t lock; /* of what follows */
    wf_cu_event *events;  /* free events come first */
    int events_free;
    int events_made; /* room in `events` */
};

struct wf_cuda_words {
    wf_cu_result result;
    char text[WF_CUDA_ERROR_TEXT];
};

struct wf_memory {
    struct wf_cuda_driver driver;
    int count;                                  /* of devices, at most WF_DEVICES_MAX */
    atomic_bool unbatched;                      /* the driver has refused batches of copies */
    pthread_mutex_t starting;                   /* use(): one device at a time */
    pthread_mutex_t lock;                       /* of the words */
    struct wf_cuda_words words[WF_CUDA_ERRORS]; /* once written they stay, so that `why` may point to them */
    int words_count;
    struct wf_cuda_device devices[WF_DEVICES_MAX];
};

/* --- memory_cuda_device.c --- */

/* The device, if it is in use; NULL. */
struct wf_cuda_device *wf_cuda_in_use(struct wf_memory *memory, int device);

/* What wf_cuda_leave() gives back to the thread. */
struct wf_cuda_visit {
    unsigned int capture;
};

/* Makes the device's context current for this thread. What fails here fails for good: the device is lost from then on.
 */
wf_cu_result wf_cuda_enter(struct wf_memory *memory, struct wf_cuda_device *device, struct wf_cuda_visit *visit);
void wf_cuda_leave(struct wf_memory *memory, struct wf_cuda_visit *visit);

/* What a call's error means: -ENODEV (from now on the device is lost) or -EIO. Within enter and leave. Sets `why`. */
int wf_cuda_fault(struct wf_memory *memory, struct wf_cuda_device *device, wf_cu_result result);
/* The same of a call about two devices, which may be one: -ENODEV where either is lost. */
int wf_cuda_fault_between(struct wf_memory *memory, struct wf_cuda_device *device, struct wf_cuda_device *peer,
                          wf_cu_result result);
/* The words for an error; they stay as long as `memory`. */
const char *wf_cuda_words(struct wf_memory *memory, wf_cu_result result);

/* An event for a copy; NULL: there are no more, `result` says why. Within enter and leave. */
wf_cu_event wf_cuda_event_take(struct wf_memory *memory, struct wf_cuda_device *device, wf_cu_result *result);
void wf_cuda_event_give(struct wf_cuda_device *device, wf_cu_event event);

/* Streams, events and kernels, within enter and leave. After start() failed, stop() frees what it had made. */
wf_cu_result wf_cuda_device_start(struct wf_memory *memory, struct wf_cuda_device *device);
void wf_cuda_device_stop(struct wf_memory *memory, struct wf_cuda_device *device);
/* What is left of it in host memory, once the context is gone. */
void wf_cuda_device_forget(struct wf_cuda_device *device);

/* --- memory_cuda_gather.c --- */

/* Should one launch move the pieces? Their host sides must be one range: only the device sides are scattered then. */
bool wf_cuda_gathers(const struct wf_cuda_lane *lane, enum wf_copy_way way, const struct wf_copy_piece *pieces,
                     int count, uint64_t *total, uint64_t *longest);
/* Queues the launch and its copy. WF_CU_NOT_READY: nothing is queued, as the tables of earlier launches are still to be
 * read. */
wf_cu_result wf_cuda_queue_gathered(struct wf_memory *memory, struct wf_cuda_device *device, struct wf_cuda_lane *lane,
                                    enum wf_copy_way way, const struct wf_copy_piece *pieces, int count, uint64_t total,
                                    uint64_t longest);

/* --- the functions of the table --- */

int wf_cuda_locate(struct wf_memory *memory, const void *base, uint64_t length, struct wf_memory_place *out,
                   struct wf_status *status);
int wf_cuda_alloc(struct wf_memory *memory, int device, uint64_t bytes, void **out, struct wf_status *status);
void wf_cuda_free(struct wf_memory *memory, int device, void *base);
int wf_cuda_pin(struct wf_memory *memory, int device, void *base, uint64_t bytes, struct wf_status *status);
void wf_cuda_unpin(struct wf_memory *memory, int device, void *base);
int wf_cuda_export_dmabuf(struct wf_memory *memory, int device, const void *base, uint64_t bytes, int *fd,
                          uint64_t *offset, struct wf_status *status);

int wf_cuda_copy_start(struct wf_memory *memory, struct wf_copy *copy, const struct wf_copy_piece *pieces, int count,
                       bool more);
int wf_cuda_copy_done(struct wf_memory *memory, struct wf_copy *copy);
int wf_cuda_hold(struct wf_memory *memory, int device, void *stream, const uint32_t *flag, uint32_t value);
int wf_cuda_copy_now(struct wf_memory *memory, void *to, const void *from, uint64_t bytes, struct wf_status *status);

#endif
