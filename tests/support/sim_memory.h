/*
 * sim_memory.h: device memory that exists only as far as its contract says (mem/memory.h), and behaves as badly as that
 * allows, the same way each time for the same seed. The processor cannot touch it: its addresses are reserved and
 * nothing is mapped there; the content lies elsewhere, and only copies reach it. The bytes of a copy move at moments
 * between its start and its end, in any order among copies; what is to be overwritten may hold anything meanwhile.
 *
 * A caller that breaks the contract ends the process with a message: a copy object used again while it is under way,
 * memory freed or unpinned under a copy or a hold, a copy that leaves its allocation, anything left over at the end.
 *
 * The time is that of a simulation (sim.h), whose advance lets copies and streams go on. Owner: one thread.
 */
#ifndef WEFT_TESTS_SUPPORT_SIM_MEMORY_H
#define WEFT_TESTS_SUPPORT_SIM_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "mem/memory.h"
#include "sim.h"

#define WF_SIM_DEVICES_MAX 8

struct wf_sim_memory;
struct wf_sim_stream;

/* Fields left at 0 take the value in brackets. */
struct wf_sim_memory_options {
    uint64_t seed;
    int devices;           /* [2] */
    uint64_t device_bytes; /* of each: what can be allocated at a time [16 GiB] */
    int64_t copy_min_ns;   /* latency of a copy, drawn for each [2000 .. 60000] */
    int64_t copy_max_ns;
    uint64_t bytes_per_second; /* of a copy, after its latency [20,000,000,000] */
    uint32_t late_percent;     /* copies that take twenty times as long; above 100: none [4] */
    uint32_t scribble_percent; /* copies that ruin their destination first; above 100: none [50] */
    bool no_hold;              /* streams of the user's cannot be held */
    bool exports;              /* gives dma-bufs, which are empty files: for who only counts and passes them on */
};

/* NULL when memory is out. `options` NULL: all defaults, seed 0. The host of wf_memory_sim. */
struct wf_sim_memory *wf_sim_memory_create(const struct wf_sim_memory_options *options);

/* Everything must be closed, freed, unpinned and ended before; aborts otherwise. NULL is fine. */
void wf_sim_memory_destroy(struct wf_sim_memory *memory);

/* From now on `sim` is its time; NULL: none, nothing moves but what is copied at once. It leaves before `sim` ends. */
void wf_sim_memory_join(struct wf_sim_memory *memory, struct wf_sim *sim);

/* The host is the struct wf_sim_memory; several contexts share one. */
extern const struct wf_memory_ops wf_memory_sim;

/* --- as a program's own, beside the library --- */

/* NULL: no room. */
void *wf_sim_memory_take(struct wf_sim_memory *memory, int device, uint64_t bytes);
void wf_sim_memory_give(struct wf_sim_memory *memory, void *base);
/* Between any two places, at once, also of a device that is lost or frozen. */
void wf_sim_memory_copy(struct wf_sim_memory *memory, void *to, const void *from, uint64_t bytes);
/* Where the content of an allocation's address is, for who only looks at it from outside, or plays a program's kernels.
 */
uint8_t *wf_sim_memory_view(struct wf_sim_memory *memory, const void *address, uint64_t bytes);
/* The device of an address; WF_NO_DEVICE: the processor's. */
int wf_sim_memory_device(const struct wf_sim_memory *memory, const void *address);

/* --- faults --- */

/* The `n`-th copy (1: the next) of this device and way fails, either when it starts or at its end. */
void wf_sim_memory_fail_copy(struct wf_sim_memory *memory, int device, enum wf_copy_way way, uint64_t n, bool at_start);
/* The same for every copy, by chance; 0: none any more. */
void wf_sim_memory_fail_percent(struct wf_sim_memory *memory, int device, uint32_t percent);
/* The next `n` allocations of a device, and those of pinned memory, fail. */
void wf_sim_memory_fail_alloc(struct wf_sim_memory *memory, int device, int n);
void wf_sim_memory_fail_pin(struct wf_sim_memory *memory, int n);
/* The device is gone: its copies end now, nothing of it is read or written again. */
void wf_sim_memory_lose(struct wf_sim_memory *memory, int device);
/* Another device takes its place, with the same content, for those who open it from now on. */
void wf_sim_memory_mend(struct wf_sim_memory *memory, int device);
/* Its copies stand still until thawed. */
void wf_sim_memory_freeze(struct wf_sim_memory *memory, int device, bool frozen);
/* Other latencies for the copies that start from now on. */
void wf_sim_memory_slow(struct wf_sim_memory *memory, int device, int64_t copy_min_ns, int64_t copy_max_ns);

/* --- counters --- */

struct wf_sim_memory_counts {
    uint64_t copies[4]; /* started, by enum wf_copy_way */
    uint64_t bytes[4];
    uint64_t failed; /* copies that did not do what they were to */
    int live;        /* copies not yet reported */
    int allocations; /* those of wf_sim_memory_take() included */
    uint64_t taken;  /* bytes of them */
};
struct wf_sim_memory_counts wf_sim_memory_counts(const struct wf_sim_memory *memory, int device);
/* Ranges that are pinned, of all who have opened it. */
int wf_sim_memory_pins(const struct wf_sim_memory *memory);

/* --- streams of the user's --- */

struct wf_sim_stream *wf_sim_stream_create(struct wf_sim_memory *memory, int device);
/* Nothing is left in it. */
void wf_sim_stream_destroy(struct wf_sim_stream *stream);
/* NULL is a name, too: of its default stream. */
struct wf_sim_stream *wf_sim_stream_default(struct wf_sim_memory *memory, int device);

/* Work that takes `duration_ns` once it is its turn; WF_NEVER: until wf_sim_stream_release(). */
void wf_sim_stream_work(struct wf_sim_stream *stream, int64_t duration_ns);
/* The first work in the stream that waits for it ends. */
void wf_sim_stream_release(struct wf_sim_stream *stream);
/* Work that takes no time: `function` is called when it is its turn, and may copy, nothing else. */
void wf_sim_stream_call(struct wf_sim_stream *stream, void (*function)(void *argument), void *argument);
/* Has everything in it been done? */
bool wf_sim_stream_idle(struct wf_sim_stream *stream);

#endif
