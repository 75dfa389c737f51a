/* Layers and buckets, in the four modes. */
#include "overlap.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LONGER 1.5 /* computation over communication, where the batch is not said */
#define ITERS_DEFAULT 5

static double cpu_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* --- memory --- */

static int take_times(struct overlap_times *times, uint32_t layers)
{
    times->begun = calloc(layers, sizeof *times->begun);
    times->ended = calloc(layers, sizeof *times->ended);
    times->buckets = calloc(layers, sizeof *times->buckets);
    return times->begun && times->ended && times->buckets ? 0 : -ENOMEM;
}

static bool serves(const struct overlap *overlap)
{
    const struct rank_overlap *asked = &overlap->world->asked->overlap;

    for (int i = 0; i < asked->style_count; i++)
        if (asked->styles[i] == RANK_STYLE_SERVER)
            return overlap->world->rank == 0;
    return false;
}

static int overlap_init(struct overlap *overlap, struct rank_world *world, struct wf_status *status)
{
    const struct rank_overlap *asked = &world->asked->overlap;
    const struct rank_backend *place = world->backend->take ? world->backend : NULL;
    int result = layers_init(&overlap->layers, asked, place, world->recv, world->rank, world->ranks, status);

    if (result)
        return result;
    overlap->world = world;
    overlap->buckets = calloc(asked->layers, sizeof *overlap->buckets);
    if (serves(overlap))
        overlap->scratch = malloc(world->recv_bytes);
    if (!overlap->buckets || (serves(overlap) && !overlap->scratch))
        result = -ENOMEM;
    for (int mode = 0; mode < OVERLAP_MODES && result == 0; mode++)
        result = take_times(&overlap->times[mode], asked->layers);
    if (result)
        return wf_fail(status, result, "no memory for %u layers", asked->layers);
    return courier_start(&overlap->courier, overlap_synchronise, overlap, status);
}

static void overlap_fini(struct overlap *overlap)
{
    courier_stop(&overlap->courier);
    for (int mode = 0; mode < OVERLAP_MODES; mode++) {
        free(overlap->times[mode].begun);
        free(overlap->times[mode].ended);
        free(overlap->times[mode].buckets);
    }
    free(overlap->buckets);
    free(overlap->scratch);
    layers_fini(&overlap->layers);
}

/* --- one mode --- */

/* The layers in their order; a bucket is handed over with its last one, or all of them at the end. */
static int compute_all(struct overlap *overlap, enum overlap_mode mode, struct wf_status *status)
{
    struct overlap_times *times = &overlap->times[mode];
    uint32_t bucket = 0;

    for (uint32_t layer = 0; layer < overlap->layers.count; layer++) {
        times->begun[layer] = courier_now() - times->start;
        int result = layers_compute(&overlap->layers, layer, status);
        if (result)
            return result;
        times->ended[layer] = courier_now() - times->start;
        if (mode == OVERLAP_BOTH && layer + 1 == overlap->buckets[bucket].first + overlap->buckets[bucket].count) {
            courier_hand(&overlap->courier);
            bucket++;
        }
    }
    return 0;
}

static void hand_all(struct overlap *overlap)
{
    for (uint32_t bucket = 0; bucket < overlap->bucket_count; bucket++)
        courier_hand(&overlap->courier);
}

static void from_start(struct overlap *overlap, struct overlap_times *times)
{
    for (uint32_t bucket = 0; bucket < overlap->bucket_count; bucket++) {
        times->buckets[bucket].ready -= times->start;
        times->buckets[bucket].begun -= times->start;
        times->buckets[bucket].ended -= times->start;
    }
}

/* `took` and `cpu` are those of this rank. */
static int run_mode(struct overlap *overlap, enum overlap_mode mode, double *took, double *cpu,
                    struct wf_status *status)
{
    struct overlap_times *times = &overlap->times[mode];
    int result = overlap->world->backend->barrier(status);

    if (result)
        return result;
    *cpu = cpu_now();
    times->start = courier_now();
    courier_begin(&overlap->courier, overlap->buckets, times->buckets);
    if (mode != OVERLAP_COMMUNICATE)
        result = compute_all(overlap, mode, status);
    if (result)
        return result;
    if (mode == OVERLAP_COMMUNICATE || mode == OVERLAP_SERIAL)
        hand_all(overlap);
    result = courier_wait(&overlap->courier, status);
    *took = courier_now() - times->start;
    *cpu = cpu_now() - *cpu;
    if (mode != OVERLAP_COMPUTE)
        from_start(overlap, times);
    return result;
}

/* --- an iteration --- */

/* The sums are those of the gradients that were computed last. */
static int prove(struct overlap *overlap, struct wf_status *status)
{
    struct rank_world *world = overlap->world;
    const void *found = world->mirror ? world->mirror : world->recv;
    int result = world->mirror ? world->backend->copy(world->mirror, world->recv, world->recv_bytes, status) : 0;
    double wrong = result == 0 ? (double)layers_wrong(&overlap->layers, found) : 0;

    if (wrong > 0)
        fprintf(stderr, "%s: rank %u: %.0f elements of the gradients are wrong\n", world->backend->name, world->rank,
                wrong);
    if (result == 0)
        result = world->backend->gather(&wrong, 1, world->all, status);
    if (result)
        return result;
    for (uint32_t i = 0; i < world->ranks; i++)
        overlap->wrong += (uint64_t)world->all[i];
    overlap->checked += world->ranks * overlap->layers.count * layers_elements(&overlap->layers);
    return 0;
}

static int iterate(struct overlap *overlap, struct overlap_figures *figures, struct wf_status *status)
{
    struct rank_world *world = overlap->world;
    int result = 0;

    for (enum overlap_mode mode = 0; mode < OVERLAP_MODES && result == 0; mode++) {
        double own[2] = {0};
        result = run_mode(overlap, mode, &own[0], &own[1], status);
        if (result == 0)
            result = world->backend->gather(own, 2, world->all, status);
        figures->wall_s[mode] = figures->cpu_s[mode] = 0;
        for (uint32_t i = 0; i < world->ranks && result == 0; i++) {
            figures->wall_s[mode] = fmax(figures->wall_s[mode], world->all[2 * i]);
            figures->cpu_s[mode] += world->all[2 * i + 1];
        }
        if (result == 0 && mode != OVERLAP_COMPUTE && world->asked->check)
            result = prove(overlap, status);
    }
    return result;
}

/* --- all of them --- */

static void choose(struct overlap *overlap, enum rank_style style, uint64_t bucket_bytes)
{
    const struct rank_overlap *asked = &overlap->world->asked->overlap;

    overlap->style = style;
    overlap->bucket_bytes = bucket_bytes;
    overlap->bucket_count = rank_buckets_cut(asked->layers, asked->layer_bytes, bucket_bytes, overlap->buckets);
    overlap->wrong = overlap->checked = 0;
}

/* A batch with which computation takes longer than the first style's communication. The first passes connect. */
static int find_batch(struct overlap *overlap, struct wf_status *status)
{
    struct rank_world *world = overlap->world;
    double compute = 0, communicate = 0, ignored, batch;
    int result = 0;

    layers_set_batch(&overlap->layers, layers_tried(&overlap->layers));
    for (int pass = 0; pass < 2 && result == 0; pass++) {
        result = run_mode(overlap, OVERLAP_COMPUTE, &compute, &ignored, status);
        if (result == 0)
            result = run_mode(overlap, OVERLAP_COMMUNICATE, &communicate, &ignored, status);
    }
    batch = fmin(ceil(overlap->layers.batch * LONGER * communicate / compute), overlap->layers.batch_most);
    if (result == 0)
        result = world->backend->gather(&batch, 1, world->all, status);
    layers_set_batch(&overlap->layers, (uint32_t)world->all[0]);
    return result;
}

static int measure_one(struct overlap *overlap, struct wf_status *status)
{
    const struct rank_asked *asked = overlap->world->asked;
    uint64_t iters = asked->iters ? asked->iters : ITERS_DEFAULT;
    struct overlap_figures figures;
    int result = 0;

    if (overlap->world->rank == 0)
        overlap_say_start(overlap);
    for (uint64_t i = 0; i < asked->warmup && result == 0; i++)
        result = iterate(overlap, &figures, status);
    for (uint64_t i = 0; i < iters && result == 0; i++) {
        result = iterate(overlap, &figures, status);
        if (result == 0 && overlap->world->rank == 0)
            overlap_say_iteration(overlap, &figures);
    }
    if (result == 0 && overlap->world->rank == 0)
        overlap_say_end(overlap);
    return result;
}

static int measure_all(struct overlap *overlap, struct wf_status *status)
{
    const struct rank_asked *asked = overlap->world->asked;
    bool ready = asked->overlap.batch > 0;
    int result = 0;

    for (int style = 0; style < asked->overlap.style_count; style++)
        for (int size = 0; size < asked->size_count && result == 0; size++) {
            choose(overlap, asked->overlap.styles[style], asked->sizes[size]);
            const char *why = overlap_lacks(overlap);
            if (why && overlap->world->rank == 0)
                overlap_say_lack(overlap, why);
            if (why)
                continue;
            if (!ready)
                result = find_batch(overlap, status);
            ready = true;
            if (result == 0)
                result = measure_one(overlap, status);
        }
    return result;
}

int rank_overlap(struct rank_world *world, struct wf_status *status)
{
    struct overlap overlap = {0};
    int result = overlap_init(&overlap, world, status);

    if (result == 0)
        result = measure_all(&overlap, status);
    overlap_fini(&overlap);
    return result;
}
