/*
 * memory_cuda.h: shared by the files memory_cuda*.c. No other file includes it.
 *
 *     after each call the calling thread has the current context and the capture mode that it had before the call
 *
 * so driver calls stand between wf_cuda_enter() and wf_cuda_leave(). No call that a copy needs waits for a device.
 */
#ifndef WF_MEM_MEMORY_CUDA_H
#define WF_MEM_MEMORY_CUDA_H

#include <pthread.h>
#include <stdatomic.h>

#include "mem/cuda_driver.h"
#include "mem/cuda_kernels.h"
#include "mem/memory.h"

#define WF_CUDA_WAYS 3       /* WF_COPY_OUT, WF_COPY_IN, WF_COPY_PEER; a mark uses the user's stream */
#define WF_CUDA_LANES 2      /* streams of a way: the launch of one copy overlaps with the other stream's copy */
#define WF_CUDA_EVENTS 256   /* events made at a time */
#define WF_CUDA_ERRORS 48    /* different errors of the driver that are kept as text */
#define WF_CUDA_GATHERED 512 /* most pieces that one launch moves */
#define WF_CUDA_SCRATCH (UINT64_C(4) << 20)
#define WF_CUDA_TABLES 4 /* most launches of a lane whose tables the device has not read yet */

/* One stream of copies, and the device memory in which its kernels put pieces together. Stream order protects that
 * memory: the copy behind a launch reads the bytes of the launch before the next launch writes. */
struct wf_cuda_lane {
    wf_cu_stream stream;
    pthread_mutex_t gathering;        /* keeps the launch and the copy of one thread together in the stream */
    wf_cu_memory scratch;             /* WF_CUDA_SCRATCH bytes; 0: this lane gathers nothing */
    wf_cu_memory pieces;              /* WF_CUDA_GATHERED descriptors */
    struct wf_gather_piece *tables;   /* WF_CUDA_GATHERED for each of WF_CUDA_TABLES launches; in device.tables */
    wf_cu_event read[WF_CUDA_TABLES]; /* complete: the table was copied to `pieces`, or never used */
    unsigned int turn;                /* counts launches: selects the table */
};

/* Owner: the memory. Until `ready`, guarded by `starting`; then constant, except for fields that say otherwise. */
struct wf_cuda_device {
    struct wf_device_info info;
    wf_cu_device handle;
    atomic_bool ready; /* use() has succeeded */
    atomic_bool lost;  /* for good: the device, or only its context */
    _Atomic(const char *) why;
    char fate[WF_CUDA_ERROR_TEXT + 16]; /* `why` of a lost device; written once, under memory.lock */
    wf_cu_context context;              /* its primary context, retained */
    struct wf_cuda_lane lanes[WF_CUDA_WAYS][WF_CUDA_LANES];
    atomic_uint turns[WF_CUDA_WAYS];
    wf_cu_stream now;        /* the stream of copy_now */
    wf_cu_event probe;       /* never recorded: a query of it fails only if the whole context has failed */
    _Atomic(uint64_t) peers; /* bit i: access to device i was requested, with or without success */
    struct wf_cuda_kernels kernels;
    struct wf_gather_piece *tables; /* pinned, for all lanes; NULL: the device gathers nothing */

    pthread_mutex_t lock; /* guards the fields below */
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
    int count;                                  /* number of devices, at most WF_DEVICES_MAX */
    atomic_bool unbatched;                      /* the driver has refused batches of copies */
    pthread_mutex_t starting;                   /* held by use(): one device at a time */
    pthread_mutex_t lock;                       /* guards `words` and device.fate */
    struct wf_cuda_words words[WF_CUDA_ERRORS]; /* a written entry never changes, so `why` may point to it */
    int words_count;
    struct wf_cuda_device devices[WF_DEVICES_MAX];
};

/* --- memory_cuda_device.c --- */

/* The device; NULL if it is not in use. */
struct wf_cuda_device *wf_cuda_in_use(struct wf_memory *memory, int device);

/* State of the thread that wf_cuda_leave() restores. */
struct wf_cuda_visit {
    unsigned int capture;
};

/* Makes the device's context current for this thread. After a failure the device is lost for good. */
wf_cu_result wf_cuda_enter(struct wf_memory *memory, struct wf_cuda_device *device, struct wf_cuda_visit *visit);
void wf_cuda_leave(struct wf_memory *memory, struct wf_cuda_visit *visit);

/* The errno for a call's error: -ENODEV (the device is lost from now on) or -EIO. Sets `why`. Call between enter and
 * leave. */
int wf_cuda_fault(struct wf_memory *memory, struct wf_cuda_device *device, wf_cu_result result);
/* As wf_cuda_fault(), for a call on two devices, which may be the same: -ENODEV if either is lost. */
int wf_cuda_fault_between(struct wf_memory *memory, struct wf_cuda_device *device, struct wf_cuda_device *peer,
                          wf_cu_result result);
/* The text for an error; lives as long as `memory`. */
const char *wf_cuda_words(struct wf_memory *memory, wf_cu_result result);

/* An event for a copy; NULL: the driver gives no more, `*result` says why. Between enter and leave. */
wf_cu_event wf_cuda_event_take(struct wf_memory *memory, struct wf_cuda_device *device, wf_cu_result *result);
void wf_cuda_event_give(struct wf_cuda_device *device, wf_cu_event event);

/* Make and free streams, events and kernels, between enter and leave. After start() failed, stop() frees the rest. */
wf_cu_result wf_cuda_device_start(struct wf_memory *memory, struct wf_cuda_device *device);
void wf_cuda_device_stop(struct wf_memory *memory, struct wf_cuda_device *device);
/* Frees the device's host memory, once the context is gone. */
void wf_cuda_device_forget(struct wf_cuda_device *device);

/* --- memory_cuda_place.c --- */

/* The device with this number, entered. NULL: it is not in use or lost; `*code` and `status` say so. */
struct wf_cuda_device *wf_cuda_enter_number(struct wf_memory *memory, int index, struct wf_cuda_visit *visit, int *code,
                                            struct wf_status *status);

/* --- memory_cuda_gather.c --- */

/* Should one launch move the pieces? Only if their host sides are one range and their device sides are scattered. */
bool wf_cuda_gathers(const struct wf_cuda_lane *lane, enum wf_copy_way way, const struct wf_copy_piece *pieces,
                     int count, uint64_t *total, uint64_t *longest);
/* Queues the launch and its copy. WF_CU_NOT_READY: nothing is queued, because the device has not read the tables of
 * earlier launches yet. */
wf_cu_result wf_cuda_queue_gathered(struct wf_memory *memory, struct wf_cuda_device *device, struct wf_cuda_lane *lane,
                                    enum wf_copy_way way, const struct wf_copy_piece *pieces, int count, uint64_t total,
                                    uint64_t longest);

/* --- the functions of the table --- */

int wf_cuda_locate(struct wf_memory *memory, const void *base, uint64_t length, struct wf_memory_place *out,
                   struct wf_status *status);
int wf_cuda_extent(struct wf_memory *memory, const void *address, struct wf_memory_extent *out,
                   struct wf_status *status);
int wf_cuda_alloc(struct wf_memory *memory, int device, uint64_t bytes, void **out, struct wf_status *status);
void wf_cuda_free(struct wf_memory *memory, int device, void *base);
int wf_cuda_pin(struct wf_memory *memory, int device, void *base, uint64_t bytes, struct wf_status *status);
void wf_cuda_unpin(struct wf_memory *memory, int device, void *base);
int wf_cuda_exports(struct wf_memory *memory, int device, struct wf_status *status);
int wf_cuda_export_dmabuf(struct wf_memory *memory, int device, const void *base, uint64_t bytes, int *fd,
                          uint64_t *offset, struct wf_status *status);

int wf_cuda_copy_start(struct wf_memory *memory, struct wf_copy *copy, const struct wf_copy_piece *pieces, int count,
                       bool more);
int wf_cuda_copy_done(struct wf_memory *memory, struct wf_copy *copy);
int wf_cuda_hold(struct wf_memory *memory, int device, void *stream, const uint32_t *flag, uint32_t value);
int wf_cuda_copy_now(struct wf_memory *memory, void *to, const void *from, uint64_t bytes, struct wf_status *status);

#endif
