#include "watch.h"

#include <stdio.h>

#define BLOCK_STEP (64ull << 20) /* how exactly the largest free block is found */

/* --- GPUs --- */

static bool can_take(const struct bench_watch *watch, int gpu, uint64_t bytes)
{
    struct weft_error err;
    void *memory;

    if (weft_gpu_alloc(watch->link->context, gpu, bytes, &memory, &err) != 0)
        return false;
    weft_gpu_free(watch->link->context, gpu, memory);
    return true;
}

/* The largest piece of memory that a GPU still gives, for it alone can tell. That takes memory for a moment and waits
 * for the GPU, so it is done before and after the messages. */
static uint64_t largest_block(const struct bench_watch *watch, const struct weft_gpu_info *gpu)
{
    uint64_t least = 0, most = gpu->bytes / BLOCK_STEP + 1;

    while (most - least > 1) {
        uint64_t middle = (least + most) / 2;
        if (can_take(watch, gpu->index, middle * BLOCK_STEP))
            least = middle;
        else
            most = middle;
    }
    return least * BLOCK_STEP;
}

/* Looking at one that is not in use would make it ready, with all its memory. */
static void find_gpus(struct bench_watch *watch)
{
    struct weft_gpu_info all[BENCH_GPUS_MAX];
    int count = weft_context_gpus(watch->link->context, all, BENCH_GPUS_MAX);

    for (int i = 0; i < count && i < BENCH_GPUS_MAX && watch->gpu_count < BENCH_SENSE_GPUS_MAX; i++)
        if (all[i].in_use)
            watch->gpus[watch->gpu_count++] = all[i];
}

static void find_blocks(const struct bench_watch *watch, uint64_t *blocks)
{
    for (int i = 0; i < watch->gpu_count; i++)
        blocks[i] = largest_block(watch, &watch->gpus[i]);
}

/* --- the sampler --- */

static void tell_held(void *context, struct bench_sense_held *held)
{
    struct bench_watch *watch = context;

    held->pinned = watch->gpu_count * watch->staging;
    held->registered = (int64_t)watch->link->footprint.buffer_bytes;
}

int bench_watch_start(struct bench_watch *watch, const struct bench_options *options, struct bench_link *link,
                      struct wf_status *status)
{
    const char *pci[BENCH_GPUS_MAX];
    struct bench_sense_want want = {.gpu_pci = pci, .held = tell_held, .held_context = watch};

    if (!wf_config_number(options->config, WF_SET_WATCH_MEMORY))
        return 0;
    watch->link = link;
    watch->staging = 2 * wf_config_number(options->config, WF_SET_STAGING);
    find_gpus(watch);
    want.gpu_count = watch->gpu_count;
    for (int i = 0; i < want.gpu_count; i++)
        pci[i] = watch->gpus[i].pci;
    find_blocks(watch, watch->blocks);
    return bench_sense_start(&want, &watch->sense, status);
}

/* --- what was found --- */

static json_t *bytes_or_null(int64_t bytes)
{
    return bytes < 0 ? json_null() : json_integer(bytes);
}

/* A series of the sampler, `at` its place. GPUs are called by the driver's number. */
static json_t *series_to_json(const struct bench_watch *watch, const struct bench_sense_memory *memory, int at)
{
    static const char *const verdicts[] = {
        [BENCH_GROWTH_UNKNOWN] = "unknown", [BENCH_GROWTH_NONE] = "steady", [BENCH_GROWTH_FOUND] = "grows"};
    const struct bench_growth *growth = &memory->growth;
    char name[32];

    snprintf(name, sizeof name, "%s", memory->name);
    if (at >= BENCH_SENSE_SERIES)
        snprintf(name, sizeof name, "gpu%d free", watch->gpus[at - BENCH_SENSE_SERIES].index);
    return json_pack("{s:s, s:s, s:o, s:o, s:f, s:f}", "what", name, "verdict", verdicts[growth->verdict],
                     "first_bytes", bytes_or_null(growth->first), "last_bytes", bytes_or_null(growth->last),
                     "bytes_per_min", growth->bytes_per_min, "judged_s", growth->seconds);
}

static json_t *blocks_to_json(const struct bench_watch *watch)
{
    uint64_t after[BENCH_GPUS_MAX] = {0};
    json_t *all = json_array();

    find_blocks(watch, after);
    for (int i = 0; i < watch->gpu_count; i++)
        json_array_append_new(all, json_pack("{s:i, s:I, s:I}", "gpu", watch->gpus[i].index, "before_bytes",
                                             (json_int_t)watch->blocks[i], "after_bytes", (json_int_t)after[i]));
    return all;
}

void bench_watch_finish(struct bench_watch *watch)
{
    struct bench_sense_memory all[BENCH_SENSE_SERIES + BENCH_SENSE_GPUS_MAX];

    if (!watch->sense)
        return;
    bench_sense_stop(watch->sense);
    int count = bench_sense_memories(watch->sense, all, BENCH_SENSE_SERIES + BENCH_SENSE_GPUS_MAX);
    json_t *series = json_array();
    for (int i = 0; i < count; i++)
        json_array_append_new(series, series_to_json(watch, &all[i], i));
    watch->link->memory_watch = json_pack("{s:o, s:o}", "series", series, "largest_free_block", blocks_to_json(watch));
    bench_sense_destroy(watch->sense);
    watch->sense = NULL;
}
