/*
 * arena.h: the buffers of a node: what messages are sent from, and where they land. In host memory that is one place;
 * in GPU memory one for each GPU in use, which the endpoints take in turn, and the processor touches none of it: what
 * it fills or looks at passes through a piece of host memory.
 */
#ifndef WF_BENCH_ARENA_H
#define WF_BENCH_ARENA_H

#include "bench/machine/gpus.h"
#include "bench/nodes/control.h"
#include "memory.h"

struct bench_buffers {
    int gpu;           /* its number; -1: host memory */
    uint8_t *stream;   /* what is sent from here; NULL: nothing is */
    uint8_t *landings; /* of what is measured, then of the background; NULL: nothing lands here */
    uint64_t landing_bytes;
    uint64_t background_at; /* offset of the first landing of the background */
};

/* Owner: the measuring thread. */
struct bench_arena {
    uint8_t *stream; /* in host memory; also what is compared with */
    uint64_t stream_bytes;
    uint8_t *bounce;              /* BENCH_BOUNCE bytes; NULL: all is host memory */
    struct weft_context *context; /* whose GPU memory it is */
    struct bench_buffers *places;
    uint32_t place_count;
};

/* Maps or allocates, fills the stream and touches every page of landings in host memory: none is mapped in measured
 * time. The other node may be done sooner or later. -ENOMEM, or what bench_control_check() says meanwhile. Can be given
 * to fini either way. */
int bench_arena_init(struct bench_arena *arena, const struct bench_plan *plan, int node, const struct bench_gpus *gpus,
                     struct weft_context *context, struct bench_control *control, struct wf_status *status);
void bench_arena_fini(struct bench_arena *arena);

/* Frees GPU memory: no message is under way, and the context is there. Without this call it ends with the process. */
void bench_arena_free_gpus(struct bench_arena *arena);

/* Bytes of all places. */
uint64_t bench_arena_bytes(const struct bench_arena *arena);

/* Where the messages of an endpoint are. */
static inline uint32_t bench_arena_place(const struct bench_arena *arena, uint32_t endpoint)
{
    return endpoint % arena->place_count;
}

/* Has every page of `memory` mapped without changing it: what is written there in measured time must not wait for that.
 * -ENOMEM, or what bench_control_check() says meanwhile. */
int bench_populate(void *memory, uint64_t bytes, struct bench_control *control, struct wf_status *status);

/* Landing number `index` of a place for messages of `size` bytes: page aligned, with its guard behind it. */
uint8_t *bench_arena_landing(const struct bench_arena *arena, uint32_t place, uint64_t size, uint64_t index);

/* The same for those of the background. */
uint8_t *bench_arena_background(const struct bench_arena *arena, uint32_t place, uint64_t size, uint64_t index);

/* A message, as far as its data depends on it. */
struct bench_origin {
    uint32_t pair;
    uint32_t sender; /* number of the pair among those of the phase that its node sends on */
    uint64_t size;
    uint64_t iteration;
};

/* What the message carries, the same on both nodes: a window of the stream, or, with the setting `buffers`, that area
 * of the stream whose turn it is; the areas of two senders of a phase, and two of a sender, do not overlap. */
const uint8_t *bench_arena_data(const struct bench_arena *arena, const struct bench_plan *plan,
                                const struct bench_origin *origin);

/* The same for a message of the background. */
const uint8_t *bench_arena_background_data(const struct bench_arena *arena, const struct bench_plan *plan,
                                           uint32_t pair, uint64_t number);

/* Where that is sent from: the place's own copy of `data`. */
const uint8_t *bench_arena_source(const struct bench_arena *arena, uint32_t place, const uint8_t *data);

/* Overwrites `bytes` from `landing` on. What takes long looks up now and then: 0, what bench_control_check() says, or
 * the GPU's error. */
int bench_arena_poison(const struct bench_arena *arena, uint32_t place, uint8_t *landing, uint64_t bytes,
                       struct bench_control *control, struct wf_status *status);

/* Up to BENCH_PIECE bytes of a landing for the processor to look at, until the next call: `bytes` becomes how many. */
int bench_arena_look(const struct bench_arena *arena, uint32_t place, const uint8_t *landing, uint64_t *bytes,
                     const uint8_t **out, struct wf_status *status);

#endif
