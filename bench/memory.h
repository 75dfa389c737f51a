/*
 * memory.h: how much memory a plan needs, how much there is, and the buffers themselves.
 *
 *     need(node) = stream + max over (mode, size) of receivers(mode, node) x areas x landing + background
 *
 * is compared with what is available before a byte of it is allocated.
 */
#ifndef WF_BENCH_MEMORY_H
#define WF_BENCH_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "control.h"
#include "schedule.h"

/* Bytes that `node` will allocate; UINT64_MAX when they do not fit 64 bits. */
uint64_t bench_memory_need(const struct bench_plan *plan, int node);

/* Bytes that can be had without swapping: the smaller of MemAvailable and what the control groups of this process
 * leave. `why` names the limit that counts. UINT64_MAX when the system does not say. */
uint64_t bench_memory_available(const char **why);

/* The number behind `key` in a file of "key number" lines, as /proc has them; with an empty key, the first number.
 * False, and `value` as it was, where there is none. */
bool bench_read_number(const char *path, const char *key, uint64_t *value);

/* 0, or -ENOMEM with need, availability and a remedy. `need` is that of all nodes on this machine. */
int bench_memory_check(const struct bench_plan *plan, uint64_t need, struct wf_status *status);

/* The stream and the landings of one node: those of what is measured, then those of the background. Owner: the
 * measuring thread. */
struct bench_arena {
    uint8_t *stream;
    uint64_t stream_bytes;
    uint8_t *landings;
    uint64_t landing_bytes;
    uint64_t background_at; /* offset of the first landing of the background */
};

/* Maps both, fills the stream and touches every page of the landings: none is mapped in measured time. The other node
 * may be done sooner or later. -ENOMEM, or what bench_control_check() says meanwhile. Can be given to fini either way.
 */
int bench_arena_init(struct bench_arena *arena, const struct bench_plan *plan, int node, struct bench_control *control,
                     struct wf_status *status);
void bench_arena_fini(struct bench_arena *arena);

/* Has every page of `memory` mapped without changing it: what is written there in measured time must not wait for that.
 * -ENOMEM, or what bench_control_check() says meanwhile. */
int bench_populate(void *memory, uint64_t bytes, struct bench_control *control, struct wf_status *status);

/* Landing number `index` for messages of `size` bytes: page aligned, with its guard behind it. */
uint8_t *bench_arena_landing(const struct bench_arena *arena, uint64_t size, uint64_t index);

/* The same for those of the background. */
uint8_t *bench_arena_background(const struct bench_arena *arena, uint64_t size, uint64_t index);

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

#endif
