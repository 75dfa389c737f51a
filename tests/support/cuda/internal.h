/*
 * internal.h: what the parts of the emulated driver share. One lock guards all of it but the bytes: those are moved by
 * the device's own thread without the lock, and `moving` tells. A name that ends in _locked wants the lock held.
 *
 *     driver entries (entry_*.c) -> streams.c: operations wait in streams -> engine.c: a thread per GPU carries them
 * out memory.c: what is behind an address; dmabuf.c; ranges.c; faults.c: which copy fails; settings.c: the environment
 */
#ifndef WEFT_TESTS_CUDA_INTERNAL_H
#define WEFT_TESTS_CUDA_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "driver.h"

#define EMU_DEVICES_MAX 64
#define EMU_NEVER INT64_MAX
#define EMU_HOST (-1)           /* in the place of a device */
#define EMU_NOWHERE (-2)        /* neither device memory nor registered */
#define EMU_PAGEABLE_KEPT 65536 /* bytes of a pageable source that are kept aside; more waits */

enum emu_way { EMU_OUT, EMU_IN, EMU_PEER, EMU_WAYS };

/* --- ranges.c: address ranges that do not overlap, sorted --- */

struct emu_range {
    uintptr_t start;
    size_t bytes;
    int device;         /* whose memory, or whose context registered it */
    uint64_t id;        /* never used again */
    unsigned int flags; /* of a registration */
    /* The reservation that a mapping is in; 0: it is an allocation, or registered. */
    uintptr_t reserved;
    size_t reserved_bytes;
};

struct emu_ranges {
    struct emu_range *at;
    int count, room;
};

/* The one that holds `address`; NULL: none does. Valid until the next change. */
struct emu_range *emu_ranges_find(const struct emu_ranges *ranges, uintptr_t address);
/* Whether any byte of it is in one. */
bool emu_ranges_touches(const struct emu_ranges *ranges, uintptr_t start, size_t bytes);
/* Must not touch another. False: memory is out. */
bool emu_ranges_add(struct emu_ranges *ranges, struct emu_range range);
void emu_ranges_remove(struct emu_ranges *ranges, struct emu_range *range);
/* The lowest address in [from, to) with `bytes` free and `guard` more on both sides; 0: there is none. */
uintptr_t emu_ranges_gap(const struct emu_ranges *ranges, uintptr_t from, uintptr_t to, size_t bytes, size_t guard);

/* --- operations, streams, events: streams.c --- */

enum emu_kind { EMU_COPY, EMU_RECORD, EMU_WAIT_VALUE, EMU_WAIT_EVENT };

/* What an operation is doing. Each state ends at the time written beside it, or when the operations before it have. */
enum emu_stage {
    EMU_QUEUED,  /* others are before it */
    EMU_WAITING, /* for its latency: ready_ns */
    EMU_BOOKED,  /* for the copy engine: begin_ns, when its destination may be scribbled on */
    EMU_MOVING,  /* for the moment at which the bytes move: move_ns */
    EMU_MOVED,   /* for its end: end_ns */
};

struct emu_piece {
    uintptr_t to, from;
    size_t bytes;
    int to_device, from_device; /* or EMU_HOST */
};

struct emu_fault;

/* Owner: its stream, then the list of spare ones. */
struct emu_op {
    struct emu_op *next;
    enum emu_kind kind;
    enum emu_stage stage;
    uint64_t sequence; /* in its context */
    int64_t queued_ns, ready_ns, begin_ns, move_ns, end_ns;
    /* EMU_COPY */
    struct emu_piece *pieces; /* `one`, or from the heap */
    struct emu_piece one;
    int count;
    enum emu_way way;
    int device;     /* whose copy engine it takes, and whose copy it counts as */
    char *kept;     /* a pageable source; NULL: none */
    int fault_kind; /* enum emu_fault_kind; 0: none */
    emu_result fault_code;
    /* EMU_RECORD, EMU_WAIT_EVENT */
    struct CUevent_st *event;
    uint64_t generation;
    /* EMU_WAIT_VALUE */
    uintptr_t word;
    uint32_t value;
    unsigned int wait_flags;
};

struct CUstream_st {
    unsigned int magic; /* 0: destroyed */
    unsigned int flags;
    struct CUctx_st *context;
    struct CUstream_st *next; /* in its context, then among the spare ones */
    struct emu_op *head, **tail;
    uint64_t done;        /* sequence of its last operation that ended */
    uint64_t last;        /* sequence of its last operation */
    int64_t last_end_ns;  /* when its last operation ended, by the book */
    emu_result deferred;  /* of a copy that failed alone; the next event or wait takes it */
    unsigned int capture; /* EMU_CAPTURE_NONE, ... */
    bool destroyed;       /* goes with its last operation */
};

struct CUevent_st {
    unsigned int magic; /* 0: destroyed */
    struct CUctx_st *context;
    struct CUevent_st *next;
    uint64_t life;             /* of its context */
    uint64_t generation, done; /* of the last record, and of the last one that was carried out */
    emu_result result;         /* of that */
    int64_t reached_ns;        /* when that was */
    bool timed;                /* it was made to tell times */
    bool captured;             /* it was last recorded in a stream that is captured */
    int references;            /* operations that name it */
    bool destroyed;            /* goes with the last of them */
};

/* The primary context of a device: there are no others. */
struct CUctx_st {
    int device;
    int retained;     /* 0: not alive */
    uint64_t life;    /* counts the times it was made */
    emu_result error; /* once set, what every call gives */
    uint64_t sequence;
    uint64_t peers;             /* bits: devices whose memory it may access */
    struct CUstream_st legacy;  /* the default stream */
    struct CUstream_st *others; /* those that were created */
};

struct emu_device {
    int index;
    char name[64], address[16];
    struct CUctx_st context;
    char *base, *content; /* the reserved addresses, and where their content is; NULL until retained */
    int file;             /* the file that this content is; -1: no dma-bufs are made of it */
    size_t span;
    uintptr_t next;     /* where the next allocation is looked for */
    uint64_t allocated; /* bytes */
    struct emu_ranges blocks;
    bool lost;
    emu_result lost_code;
    /* the thread */
    bool running;
    bool paused;
    pthread_cond_t wake;
    uint64_t moving; /* bits of the devices (its own too) whose copy it carries out without the lock; 0: none */
    int64_t free_ns[EMU_WAYS]; /* when each copy engine will be free, by the book */
    uint64_t random;
};

struct emu_settings {
    uint64_t memory, guard, rate, latency_us, seed, clock_ppm;
    bool old, coherent, udmabuf, huge;
};

struct emu_world {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* an operation ended, bytes were moved */
    atomic_bool ready;      /* cuInit was here, in this process */
    struct emu_settings settings;
    int device_count;
    struct emu_device devices[EMU_DEVICES_MAX];
    struct emu_ranges registered;
    struct emu_op *spare_ops;
    int captures; /* streams that are captured, and sound so far */
    uint64_t next_id;
    uint64_t copies[EMU_WAYS], bytes[EMU_WAYS], synchronised, operations, failed, pending, allocated, registered_bytes,
        streams, events;
};

extern struct emu_world emu;

/* One per entry, linked when it is first called. */
struct emu_counter {
    const char *name;
    atomic_uint_fast64_t calls;
    atomic_bool listed;
    struct emu_counter *next;
};
/* Counts a call. EMU_NOT_INITIALIZED where cuInit has not been called in this process. */
emu_result emu_enter(struct emu_counter *counter);
#define EMU_ENTER()                                                                                                    \
    ({                                                                                                                 \
        static struct emu_counter counter = {.name = __func__};                                                        \
        emu_enter(&counter);                                                                                           \
    })

int64_t emu_now_ns(void);
uint64_t emu_random(uint64_t *state);

/* --- symbols.c --- */

/* Whether the driver has a function of this name, without a suffix. */
bool emu_is_symbol(const char *name);

/* --- settings.c --- */

/* Devices and settings from the environment. EMU_INVALID_VALUE after a line on stderr. */
emu_result emu_settings_read(struct emu_world *world);
/* "64K" and the like. False: it is something else. */
bool emu_read_size(const char *text, uint64_t *out);

/* --- context.c --- */

/* The calling thread's context, with its error or that of the device. NULL with EMU_INVALID_CONTEXT: there is none. */
emu_result emu_current_locked(struct CUctx_st **out);
/* The error that every call about this context gives; EMU_OK: none. */
emu_result emu_context_error_locked(const struct CUctx_st *context);

/* --- memory.c --- */

/* Reserves the device's addresses, and starts to say who touches them. Once. */
emu_result emu_memory_reserve_locked(struct emu_device *device);
emu_result emu_memory_alloc_locked(struct emu_device *device, size_t bytes, uintptr_t *out);
void emu_memory_free_locked(struct emu_device *device, struct emu_range *block);
/* The device in whose addresses this is; EMU_HOST: none. */
int emu_memory_device(uintptr_t address);
/* The allocation that holds the address; NULL: none. */
struct emu_range *emu_memory_block_locked(uintptr_t address);
/* Where the content of an address of device memory is. */
char *emu_memory_content(int device, uintptr_t address);
/* Whose memory this is: a device, EMU_HOST where it is registered, EMU_NOWHERE. False: it begins in a range that ends
 * before it does, or in device memory that is not allocated. */
bool emu_memory_place_locked(uintptr_t address, size_t bytes, int *out);
/* Said by the thread of a device before and after it touches host memory; EMU_HOST: it is done. */
void emu_memory_engine_touches(int device);

/* --- dmabuf.c --- */

/* Whether device memory can be had as dma-bufs here. */
bool emu_dmabuf_able(void);
/* Takes the file of a device's content: returns it where dma-bufs will be made of it, else closes it and returns -1. */
int emu_dmabuf_keep(int file);

/* --- streams.c --- */

bool emu_stream_valid_locked(const struct CUstream_st *stream);
bool emu_event_valid_locked(const struct CUevent_st *event);
/* The stream of an argument (NULL: the default stream of the current context), with every error there may be. */
emu_result emu_stream_of_locked(struct CUstream_st *argument, struct CUstream_st **out);
/* A blank operation. NULL: memory is out. */
struct emu_op *emu_op_take_locked(void);
void emu_op_queue_locked(struct CUstream_st *stream, struct emu_op *op);
/* The operation at its head has ended with `result`. */
void emu_op_end_locked(struct CUstream_st *stream, emu_result result);
/* Drops all that is queued in a context, each with `result`, once its thread moves nothing. */
void emu_context_drop_locked(struct CUctx_st *context, emu_result result);
/* Waits until the stream has come to `sequence`, or its context came to an end. */
emu_result emu_stream_wait_locked(struct CUstream_st *stream, uint64_t sequence);
/* Waits until everything of the device has ended. */
emu_result emu_device_wait_locked(struct emu_device *device);
/* Waits until no operation refers to the host memory. */
void emu_host_wait_locked(uintptr_t start, size_t bytes);
/* Streams and operations are taken away with their context. */
void emu_context_empty_locked(struct CUctx_st *context);

/* --- capture.c --- */

/* EMU_OK, or why a call that may be unsafe is refused to this thread: a stream is captured, which is spoilt now. */
emu_result emu_capture_unsafe_locked(void);
/* `taken`: what is put into the stream goes into a graph, and is not done. Or an error: nothing can be put there. */
emu_result emu_capture_takes_locked(const struct CUstream_st *stream, bool *taken);

/* --- engine.c --- */

emu_result emu_engine_start_locked(struct emu_device *device);

/* --- faults.c --- */

enum emu_fault_kind {
    EMU_FAULT_NONE,
    EMU_FAULT_ALLOC,
    EMU_FAULT_REGISTER,
    EMU_FAULT_LAUNCH,
    EMU_FAULT_LOST,
    EMU_FAULT_COPY,
    EMU_FAULT_REFUSE,
};

/* Counts an allocation or registration; EMU_OK, or the error that it ends with. */
emu_result emu_fault_call_locked(enum emu_fault_kind kind, int device);
/* Counts a copy; what happens to it. */
enum emu_fault_kind emu_fault_copy_locked(int device, enum emu_way way, emu_result *code);
/* The device is gone from here on: waits for what is being moved of it, and drops what is queued. */
void emu_lose_locked(struct emu_device *device, emu_result code);

#endif
