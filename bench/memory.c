#include "memory.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "pattern.h"
#include "sample.h"
#include "words.h"

#define PAGE 4096ull
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14; the C library's headers may be older */
#endif
#define LIBRARY_BYTES (64ull << 20) /* what the process needs beside the buffers, roughly */

static uint64_t landing_stride(uint64_t size)
{
    return (size + BENCH_GUARD + PAGE - 1) & ~(PAGE - 1);
}

static uint64_t background_need(const struct bench_plan *plan)
{
    return plan->background ? plan->background_inflight * landing_stride(plan->background) : 0;
}

/* Without those of the background. */
static uint64_t landings_need(const struct bench_plan *plan, int node)
{
    uint64_t most = 0;

    for (int mode = 0; mode < BENCH_MODES; mode++) {
        uint64_t receivers = plan->modes[mode] ? bench_plan_receivers(plan, mode, node) : 0;
        for (int i = 0; i < plan->size_count; i++) {
            uint64_t count = receivers * bench_plan_areas(plan, plan->sizes[i]), bytes;
            if (__builtin_mul_overflow(count, landing_stride(plan->sizes[i]), &bytes))
                return UINT64_MAX;
            if (bytes > most)
                most = bytes;
        }
    }
    return most;
}

/* Either way of a ping-pong has its own: neither node's data can pass for the other's. */
static uint64_t areas_of_sender(const struct bench_plan *plan, uint64_t size)
{
    return (uint64_t)bench_plan_areas(plan, size) * (plan->latency ? 2 : 1);
}

/* Both nodes hold what either sends, to verify it. */
static uint64_t stream_need(const struct bench_plan *plan)
{
    uint64_t largest = bench_plan_largest(plan);
    uint64_t most = bench_stream_bytes(plan->background > largest ? plan->background : largest);

    for (int mode = 0; plan->buffers && mode < BENCH_MODES; mode++)
        for (int i = 0; plan->modes[mode] && i < plan->size_count * 2; i++) {
            uint64_t size = plan->sizes[i / 2], senders = bench_plan_senders(plan, mode, i % 2), bytes;
            if (__builtin_mul_overflow(senders * areas_of_sender(plan, size), landing_stride(size), &bytes))
                return UINT64_MAX;
            if (bytes > most)
                most = bytes;
        }
    return most;
}

/* Times of one phase, and the samples of all. */
static uint64_t records_need(const struct bench_plan *plan)
{
    uint64_t pairs = plan->modes[BENCH_LOADED] ? plan->pair_count : plan->group, longest = plan->warmup, times, samples;

    for (int i = 0; i < plan->size_count; i++)
        if (bench_plan_iters(plan, plan->sizes[i]) > longest)
            longest = bench_plan_iters(plan, plan->sizes[i]);
    if (__builtin_mul_overflow(pairs * (sizeof(double) + sizeof(int64_t)), longest, &times) ||
        __builtin_mul_overflow(bench_plan_samples(plan), sizeof(struct bench_sample), &samples))
        return UINT64_MAX;
    return times > UINT64_MAX - samples ? UINT64_MAX : times + samples;
}

uint64_t bench_memory_need(const struct bench_plan *plan, int node)
{
    uint64_t sum = LIBRARY_BYTES;

    if (__builtin_add_overflow(sum, stream_need(plan), &sum) ||
        __builtin_add_overflow(sum, landings_need(plan, node), &sum) ||
        __builtin_add_overflow(sum, background_need(plan), &sum) ||
        __builtin_add_overflow(sum, records_need(plan), &sum))
        return UINT64_MAX;
    return sum;
}

/* ------------------------------------------------------------------------------------------- what there is */

bool bench_read_number(const char *path, const char *key, uint64_t *value)
{
    char line[256];
    FILE *file = fopen(path, "re");
    bool found = false;

    while (file && !found && fgets(line, sizeof(line), file))
        if (strncmp(line, key, strlen(key)) == 0)
            found = sscanf(line + strlen(key), "%*[: \t]%" SCNu64, value) == 1 ||
                    sscanf(line + strlen(key), "%" SCNu64, value) == 1;
    if (file)
        fclose(file);
    return found;
}

/* What one control group leaves: its limit less what it uses and cannot drop. */
static uint64_t group_room(const char *folder, bool unified)
{
    char path[512];
    uint64_t limit, used, cached = 0;

    snprintf(path, sizeof(path), "%s/%s", folder, unified ? "memory.max" : "memory.limit_in_bytes");
    if (!bench_read_number(path, "", &limit))
        return UINT64_MAX; /* "max" is no number */
    snprintf(path, sizeof(path), "%s/%s", folder, unified ? "memory.current" : "memory.usage_in_bytes");
    if (!bench_read_number(path, "", &used))
        return UINT64_MAX;
    snprintf(path, sizeof(path), "%s/memory.stat", folder);
    if (!bench_read_number(path, unified ? "inactive_file " : "total_inactive_file ", &cached))
        cached = 0;
    used = used > cached ? used - cached : 0;
    return limit > used ? limit - used : 0;
}

/* The tightest of the groups from `path` up to the root of the hierarchy at `mount`. */
static uint64_t hierarchy_room(const char *mount, char *path, bool unified)
{
    uint64_t least = UINT64_MAX;
    char folder[448];

    for (;;) {
        char *slash;
        uint64_t room;
        snprintf(folder, sizeof(folder), "%s%s", mount, strcmp(path, "/") == 0 ? "" : path);
        room = group_room(folder, unified);
        if (room < least)
            least = room;
        slash = strrchr(path, '/');
        if (!slash || strcmp(path, "/") == 0 || !path[0])
            return least;
        /* Inside a container the path may not exist; the root of what is mounted then is the container's own group. */
        if (slash == path)
            strcpy(path, "/");
        else
            *slash = '\0';
    }
}

static uint64_t groups_room(void)
{
    uint64_t least = UINT64_MAX;
    char line[400];
    FILE *file = fopen("/proc/self/cgroup", "re");

    while (file && fgets(line, sizeof(line), file)) {
        char *controllers = strchr(line, ':'), *path = controllers ? strchr(controllers + 1, ':') : NULL;
        uint64_t room = UINT64_MAX;
        if (!path)
            continue;
        *path++ = '\0';
        path[strcspn(path, "\n")] = '\0';
        if (strcmp(controllers, ":") == 0)
            room = hierarchy_room("/sys/fs/cgroup", path, true);
        else if (strstr(controllers + 1, "memory"))
            room = hierarchy_room("/sys/fs/cgroup/memory", path, false);
        if (room < least)
            least = room;
    }
    if (file)
        fclose(file);
    return least;
}

uint64_t bench_memory_available(const char **why)
{
    uint64_t kib, available = UINT64_MAX, groups = groups_room();

    *why = "MemAvailable";
    if (bench_read_number("/proc/meminfo", "MemAvailable:", &kib))
        available = kib * 1024;
    if (groups < available) {
        *why = "the memory limit of the control group";
        available = groups;
    }
    return available;
}

int bench_memory_check(const struct bench_plan *plan, uint64_t need, struct wf_status *status)
{
    char wanted[32], there[32], largest[32];
    const char *why;
    uint64_t available = bench_memory_available(&why);

    if (need <= available)
        return 0;
    return wf_fail(status, -ENOMEM,
                   "needs %s of memory here and has %s (%s): lower --end or --size (now up to %s), --endpoints or %s%s",
                   bench_human_bytes(need, wanted, sizeof(wanted)), bench_human_bytes(available, there, sizeof(there)),
                   why, wf_format_size(bench_plan_largest(plan), largest, sizeof(largest)),
                   plan->background ? "--background"
                   : plan->buffers  ? "--buffers"
                                    : "--inflight",
                   plan->modes[BENCH_LOADED] ? ", or use --mode isolated" : "");
}

/* ------------------------------------------------------------------------------------------- the buffers */

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
    int rc = 0;

    for (uint64_t at = 0; rc == 0 && at < arena->stream_bytes; at += BENCH_PIECE) {
        uint64_t end = arena->stream_bytes - at < BENCH_PIECE ? arena->stream_bytes : at + BENCH_PIECE;
        bench_stream_fill(arena->stream, at, end, seed);
        rc = bench_control_check(control, status);
    }
    return rc;
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
    int rc = 0;

    for (uint64_t at = 0; rc == 0 && at < bytes; at += BENCH_PIECE) {
        uint64_t length = bytes - at < BENCH_PIECE ? bytes - at : BENCH_PIECE;
        /* An older kernel does not know it, and memory that is not page aligned it never takes. */
        if (madvise(start + at, length, MADV_POPULATE_WRITE) != 0) {
            if (errno == ENOMEM)
                return wf_fail(status, -ENOMEM,
                               "the kernel has no memory for %s of buffers: lower --end, --endpoints or --inflight",
                               bench_human_bytes(bytes, text, sizeof(text)));
            touch(start + at, length);
        }
        rc = bench_control_check(control, status);
    }
    return rc;
}

int bench_arena_init(struct bench_arena *arena, const struct bench_plan *plan, int node, struct bench_control *control,
                     struct wf_status *status)
{
    char text[32];
    int rc;

    memset(arena, 0, sizeof(*arena));
    arena->stream_bytes = stream_need(plan);
    arena->background_at = landings_need(plan, node);
    arena->landing_bytes = arena->background_at + background_need(plan);
    arena->stream = map(arena->stream_bytes);
    if (arena->landing_bytes)
        arena->landings = map(arena->landing_bytes);
    if (!arena->stream || (arena->landing_bytes && !arena->landings))
        return wf_fail(status, -ENOMEM, "cannot map %s of buffers: lower --end or --endpoints",
                       bench_human_bytes(arena->stream_bytes + arena->landing_bytes, text, sizeof(text)));
    rc = fill(arena, plan->seed, control, status);
    return rc ? rc : bench_populate(arena->landings, arena->landing_bytes, control, status);
}

void bench_arena_fini(struct bench_arena *arena)
{
    if (arena->stream)
        munmap(arena->stream, arena->stream_bytes);
    if (arena->landings)
        munmap(arena->landings, arena->landing_bytes);
    arena->stream = arena->landings = NULL;
}

uint8_t *bench_arena_landing(const struct bench_arena *arena, uint64_t size, uint64_t index)
{
    return arena->landings + index * landing_stride(size);
}

uint8_t *bench_arena_background(const struct bench_arena *arena, uint64_t size, uint64_t index)
{
    return arena->landings + arena->background_at + index * landing_stride(size);
}

const uint8_t *bench_arena_data(const struct bench_arena *arena, const struct bench_plan *plan,
                                const struct bench_origin *origin)
{
    uint64_t areas = areas_of_sender(plan, origin->size), area;

    if (plan->buffers == 0)
        return arena->stream + bench_window_offset(plan->seed, origin->pair, origin->size, origin->iteration);
    area = origin->sender * areas + origin->iteration % areas;
    return arena->stream + area * landing_stride(origin->size);
}
