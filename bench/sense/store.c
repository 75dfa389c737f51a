/* The samples so far. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sense_parts.h"

/* Makes room for `room` samples of `each` parts. At least one byte, so that no room is not taken for no memory. */
static bool grow(void *at, size_t room, int each, size_t bytes)
{
    void **array = at;
    void *larger = realloc(*array, room * (size_t)each * bytes + 1);

    if (larger)
        *array = larger;
    return larger != NULL;
}

static int grow_store(struct bench_sense_store *store, size_t room)
{
    if (!grow(&store->samples, room, 1, sizeof *store->samples) ||
        !grow(&store->gpus, room, store->gpu_count, sizeof *store->gpus) ||
        !grow(&store->nics, room, store->nic_count, sizeof *store->nics) ||
        !grow(&store->cores, room, store->core_count, sizeof *store->cores) ||
        !grow(&store->busy, room, store->cpu_count, sizeof *store->busy))
        return -ENOMEM;
    store->room = room;
    return 0;
}

int bench_sense_store_init(struct bench_sense_store *store, size_t room)
{
    return grow_store(store, room);
}

int bench_sense_store_fill(struct bench_sense_store *store, size_t room)
{
    int result = grow_store(store, room);

    store->most = room;
    if (result)
        return result;
    memset(store->samples, 0, room * sizeof *store->samples);
    memset(store->gpus, 0, room * (size_t)store->gpu_count * sizeof *store->gpus);
    memset(store->nics, 0, room * (size_t)store->nic_count * sizeof *store->nics);
    memset(store->cores, 0, room * (size_t)store->core_count * sizeof *store->cores);
    memset(store->busy, 0, room * (size_t)store->cpu_count * sizeof *store->busy);
    return 0;
}

void bench_sense_store_fini(struct bench_sense_store *store)
{
    free(store->samples);
    free(store->gpus);
    free(store->nics);
    free(store->cores);
    free(store->busy);
    memset(store, 0, sizeof *store);
}

struct bench_sense_reading bench_sense_store_at(const struct bench_sense_store *store, size_t index)
{
    return (struct bench_sense_reading){
        .sample = store->samples + index,
        .gpus = store->gpus + index * (size_t)store->gpu_count,
        .nics = store->nics + index * (size_t)store->nic_count,
        .cores = store->cores + index * (size_t)store->core_count,
        .busy = store->busy + index * (size_t)store->cpu_count,
    };
}

static void copy(const struct bench_sense_store *store, const struct bench_sense_reading *to,
                 const struct bench_sense_reading *from)
{
    memmove(to->sample, from->sample, sizeof *to->sample);
    memmove(to->gpus, from->gpus, (size_t)store->gpu_count * sizeof *to->gpus);
    memmove(to->nics, from->nics, (size_t)store->nic_count * sizeof *to->nics);
    memmove(to->cores, from->cores, (size_t)store->core_count * sizeof *to->cores);
    memmove(to->busy, from->busy, (size_t)store->cpu_count * sizeof *to->busy);
}

/* The state that the earlier one had found lies within the span of both now, and counts for that as a counter's growth
 * does. What the later one has found goes on to count for the span behind it, too. */
static void merge_into(const struct bench_sense_store *store, const struct bench_sense_reading *earlier,
                       const struct bench_sense_reading *later)
{
    later->sample->grown |= earlier->sample->grown | earlier->sample->seen;
    for (int i = 0; i < store->gpu_count; i++)
        later->gpus[i].grown |= earlier->gpus[i].grown | earlier->gpus[i].seen;
}

static void halve(struct bench_sense_store *store)
{
    for (size_t i = 0; i < store->count / 2; i++) {
        struct bench_sense_reading to = bench_sense_store_at(store, i), earlier = bench_sense_store_at(store, 2 * i),
                                   later = bench_sense_store_at(store, 2 * i + 1);
        merge_into(store, &earlier, &later);
        copy(store, &to, &later);
    }
    store->count /= 2;
}

void bench_sense_store_add(struct bench_sense_store *store, const struct bench_sense_reading *reading)
{
    if (store->count == store->room && store->room < store->most) {
        size_t room = 2 * store->room < store->most ? 2 * store->room : store->most;
        if (grow_store(store, room) != 0)
            store->most = store->room;
    }
    if (store->count == store->most)
        halve(store);
    if (store->count == 0)
        store->begun_ns = reading->sample->at_ns;
    struct bench_sense_reading to = bench_sense_store_at(store, store->count++);
    copy(store, &to, reading);
}
