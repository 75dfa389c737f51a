#include "arena.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bench/nodes/link.h"
#include "bench/words/words.h"
#include "pattern.h"

#define PAGE 4096ull
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14; the C library's headers may be older */
#endif

/* --- host memory --- */

static uint8_t *map(uint64_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (at == MAP_FAILED)
        return NULL;
    madvise(at, bytes, MADV_HUGEPAGE); /* fewer faults at first touch; a kernel without them says no */
    return at;
}

static int fill(struct bench_arena *arena, uint64_t seed, struct bench_control *control, struct wf_status *status)
{
    int result = 0;

    for (uint64_t at = 0; result == 0 && at < arena->stream_bytes; at += BENCH_PIECE) {
        uint64_t end = arena->stream_bytes - at < BENCH_PIECE ? arena->stream_bytes : at + BENCH_PIECE;
        bench_stream_fill(arena->stream, at, end, seed);
        result = bench_control_check(control, status);
    }
    return result;
}

/* Writes to every page, and changes nothing. */
static void touch(uint8_t *memory, uint64_t bytes)
{
    volatile uint8_t *at = memory;

    for (uint64_t i = 0; i < bytes; i += PAGE)
        at[i] = at[i];
    at[bytes - 1] = at[bytes - 1];
}

int bench_populate(void *memory, uint64_t bytes, struct bench_control *control, struct wf_status *status)
{
    uint8_t *start = memory;
    char text[32];
    int result = 0;

    for (uint64_t at = 0; result == 0 && at < bytes; at += BENCH_PIECE) {
        uint64_t length = bytes - at < BENCH_PIECE ? bytes - at : BENCH_PIECE;
        /* An older kernel does not know it, and memory that is not page aligned it never takes. */
        if (madvise(start + at, length, MADV_POPULATE_WRITE) != 0) {
            if (errno == ENOMEM)
                return wf_fail(status, -ENOMEM,
                               "the kernel has no memory for %s of buffers: lower --end, --endpoints or --inflight",
                               bench_human_bytes(bytes, text, sizeof text));
            touch(start + at, length);
        }
        result = bench_control_check(control, status);
    }
    return result;
}

/* --- GPU memory --- */

static int gpu_copy(const struct bench_arena *arena, void *to, const void *from, uint64_t bytes,
                    struct wf_status *status)
{
    struct weft_error err = {0};

    if (weft_gpu_copy(arena->context, to, from, bytes, &err) == 0)
        return 0;
    return wf_fail(status, err.code ? err.code : -EIO, "filling or comparing buffers: %s", err.text);
}

/* In pieces of host memory that the library has no need to pin. */
static int upload_stream(const struct bench_arena *arena, const struct bench_buffers *place,
                         struct bench_control *control, struct wf_status *status)
{
    int result = 0;

    for (uint64_t at = 0; result == 0 && at < arena->stream_bytes; at += BENCH_PIECE) {
        uint64_t length = arena->stream_bytes - at < BENCH_PIECE ? arena->stream_bytes - at : BENCH_PIECE;
        result = gpu_copy(arena, place->stream + at, arena->stream + at, length, status);
        if (result == 0)
            result = bench_control_check(control, status);
    }
    return result;
}

static int allocate(const struct bench_arena *arena, int gpu, uint64_t bytes, uint8_t **out, struct wf_status *status)
{
    struct weft_error err = {0};
    void *memory = NULL;
    char text[32];

    if (bytes == 0)
        return 0;
    if (weft_gpu_alloc(arena->context, gpu, bytes, &memory, &err) != 0)
        return wf_fail(status, err.code ? err.code : -EIO, "%s of buffers: %s",
                       bench_human_bytes(bytes, text, sizeof text), err.text);
    *out = memory;
    return 0;
}

/* Landings need no filling: what is verified was poisoned before. */
static int open_gpu(struct bench_arena *arena, struct bench_buffers *place, uint64_t stream_bytes,
                    struct bench_control *control, struct wf_status *status)
{
    int result = allocate(arena, place->gpu, stream_bytes, &place->stream, status);

    if (result == 0)
        result = allocate(arena, place->gpu, place->landing_bytes, &place->landings, status);
    if (result == 0 && place->stream)
        result = upload_stream(arena, place, control, status);
    return result;
}

/* --- the places --- */

static int open_host(struct bench_arena *arena, struct bench_buffers *place, struct bench_control *control,
                     struct wf_status *status)
{
    char text[32];

    place->stream = arena->stream;
    if (place->landing_bytes)
        place->landings = map(place->landing_bytes);
    if (place->landing_bytes && !place->landings)
        return wf_fail(status, -ENOMEM, "cannot map %s of buffers: lower --end or --endpoints",
                       bench_human_bytes(place->landing_bytes, text, sizeof text));
    return bench_populate(place->landings, place->landing_bytes, control, status);
}

static int open_places(struct bench_arena *arena, const struct bench_plan *plan, int node,
                       const struct bench_gpus *gpus, struct bench_control *control, struct wf_status *status)
{
    int result = 0;

    for (uint32_t i = 0; result == 0 && i < arena->place_count; i++) {
        struct bench_buffers *place = &arena->places[i];
        place->gpu = gpus->count ? gpus->infos[i].index : -1;
        place->background_at = bench_landings_need(plan, node, arena->place_count, i);
        place->landing_bytes = place->background_at + bench_background_need(plan, node, arena->place_count, i);
        if (gpus->count)
            result = open_gpu(arena, place, bench_stream_need_at(plan, node, arena->place_count, i), control, status);
        else
            result = open_host(arena, place, control, status);
    }
    return result;
}

int bench_arena_init(struct bench_arena *arena, const struct bench_plan *plan, int node, const struct bench_gpus *gpus,
                     struct weft_context *context, struct bench_control *control, struct wf_status *status)
{
    char text[32];

    memset(arena, 0, sizeof *arena);
    arena->context = context;
    arena->stream_bytes = bench_stream_need(plan);
    arena->stream = map(arena->stream_bytes);
    arena->bounce = gpus->count ? map(BENCH_BOUNCE) : NULL;
    arena->places = calloc(gpus->count ? gpus->count : 1, sizeof *arena->places);
    if (!arena->stream || !arena->places || (gpus->count && !arena->bounce))
        return wf_fail(status, -ENOMEM, "cannot map %s of buffers: lower --end or --endpoints",
                       bench_human_bytes(arena->stream_bytes, text, sizeof text));
    arena->place_count = gpus->count ? gpus->count : 1;
    int result = fill(arena, plan->seed, control, status);
    return result ? result : open_places(arena, plan, node, gpus, control, status);
}

void bench_arena_free_gpus(struct bench_arena *arena)
{
    for (uint32_t i = 0; i < arena->place_count; i++) {
        struct bench_buffers *place = &arena->places[i];
        if (place->gpu < 0)
            continue;
        weft_gpu_free(arena->context, place->gpu, place->stream);
        weft_gpu_free(arena->context, place->gpu, place->landings);
        place->stream = place->landings = NULL;
    }
}

void bench_arena_fini(struct bench_arena *arena)
{
    for (uint32_t i = 0; i < arena->place_count; i++)
        if (arena->places[i].gpu < 0 && arena->places[i].landings)
            munmap(arena->places[i].landings, arena->places[i].landing_bytes);
    if (arena->stream)
        munmap(arena->stream, arena->stream_bytes);
    if (arena->bounce)
        munmap(arena->bounce, BENCH_BOUNCE);
    free(arena->places);
    memset(arena, 0, sizeof *arena);
}

uint64_t bench_arena_bytes(const struct bench_arena *arena)
{
    uint64_t sum = arena->stream_bytes;

    for (uint32_t i = 0; i < arena->place_count; i++)
        sum += arena->places[i].landing_bytes +
               (arena->places[i].gpu >= 0 && arena->places[i].stream ? arena->stream_bytes : 0);
    return sum;
}

/* --- messages --- */

uint8_t *bench_arena_landing(const struct bench_arena *arena, uint32_t place, uint64_t size, uint64_t index)
{
    return arena->places[place].landings + index * bench_landing_stride(size);
}

uint8_t *bench_arena_background(const struct bench_arena *arena, uint32_t place, uint64_t size, uint64_t index)
{
    return bench_arena_landing(arena, place, size, index) + arena->places[place].background_at;
}

const uint8_t *bench_arena_data(const struct bench_arena *arena, const struct bench_plan *plan,
                                const struct bench_origin *origin)
{
    uint64_t areas = bench_sender_areas(plan, origin->size);

    if (plan->buffers == 0)
        return arena->stream + bench_window_offset(plan->seed, origin->pair, origin->size, origin->iteration);
    uint64_t area = origin->sender * areas + origin->iteration % areas;
    return arena->stream + area * bench_landing_stride(origin->size);
}

const uint8_t *bench_arena_background_data(const struct bench_arena *arena, const struct bench_plan *plan,
                                           uint32_t pair, uint64_t number)
{
    return arena->stream + bench_window_offset(plan->seed, pair, plan->background, number);
}

const uint8_t *bench_arena_source(const struct bench_arena *arena, uint32_t place, const uint8_t *data)
{
    return arena->places[place].stream + (data - arena->stream);
}

/* --- looking --- */

int bench_arena_poison(const struct bench_arena *arena, uint32_t place, uint8_t *landing, uint64_t bytes,
                       struct bench_control *control, struct wf_status *status)
{
    int gpu = arena->places[place].gpu, result = 0;
    uint64_t step = gpu >= 0 ? BENCH_BOUNCE : BENCH_PIECE;

    if (gpu >= 0)
        memset(arena->bounce, BENCH_POISON, bytes < step ? bytes : step);
    for (uint64_t at = 0; result == 0 && at < bytes; at += step) {
        uint64_t length = bytes - at < step ? bytes - at : step;
        if (gpu >= 0)
            result = gpu_copy(arena, landing + at, arena->bounce, length, status);
        else
            memset(landing + at, BENCH_POISON, length);
        if (result == 0)
            result = bench_control_check(control, status);
    }
    return result;
}

int bench_arena_look(const struct bench_arena *arena, uint32_t place, const uint8_t *landing, uint64_t *bytes,
                     const uint8_t **out, struct wf_status *status)
{
    int gpu = arena->places[place].gpu;
    uint64_t most = gpu >= 0 ? BENCH_BOUNCE : BENCH_PIECE;

    if (*bytes > most)
        *bytes = most;
    *out = gpu >= 0 ? arena->bounce : landing;
    return gpu >= 0 ? gpu_copy(arena, arena->bounce, landing, *bytes, status) : 0;
}
