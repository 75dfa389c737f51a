/* What this process holds, and what is left of its GPUs' memory. */
#include "memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/machine/memory_limits.h"
#include "sense_parts.h"

#define NO_FREE INT64_MAX / 2 /* free memory is kept as what is used of this much, so that its fall is a growth */

int bench_sense_ledger_init(struct bench_sense_ledger *ledger, const struct bench_sense_want *want)
{
    if (!want->held)
        return 0;
    ledger->held = want->held;
    ledger->context = want->held_context;
    ledger->series = BENCH_SENSE_SERIES + want->gpu_count;
    ledger->skip = 1;
    size_t bytes = BENCH_SENSE_HELD_ROOM * sizeof *ledger->at_ns;
    ledger->at_ns = malloc(bytes);
    ledger->values = malloc(bytes * (size_t)ledger->series);
    if (!ledger->at_ns || !ledger->values)
        return -ENOMEM;
    memset(ledger->at_ns, 1, bytes); /* not 0: that would need no page */
    memset(ledger->values, 1, bytes * (size_t)ledger->series);
    return 0;
}

void bench_sense_ledger_fini(struct bench_sense_ledger *ledger)
{
    free(ledger->at_ns);
    free(ledger->values);
    *ledger = (struct bench_sense_ledger){0};
}

/* Kernels before 6.17 count resident pages for each processor or thread on its own account, and tell only the sum of
 * what these have handed in: some hundred KiB may be missing. A walk over all pages is exact. */
static int64_t resident(void)
{
    char line[64];
    long pages = -1;
    uint64_t kib = 0;
    FILE *file = fopen("/proc/self/smaps_rollup", "re");

    if (file) {
        fclose(file);
        if (bench_read_number("/proc/self/smaps_rollup", "Rss:", &kib))
            return (int64_t)kib * 1024;
    }
    file = fopen("/proc/self/statm", "re");
    if (file && fgets(line, sizeof line, file) && sscanf(line, "%*s %ld", &pages) != 1)
        pages = -1;
    if (file)
        fclose(file);
    return pages < 0 ? -1 : pages * sysconf(_SC_PAGESIZE);
}

void bench_sense_ledger_read(struct bench_sense_ledger *ledger)
{
    struct bench_sense_held held = {0};
    uint64_t locked = 0, pinned = 0;

    if (!ledger->series)
        return;
    ledger->held(ledger->context, &held);
    ledger->now[BENCH_SENSE_RSS] = resident();
    bench_read_number("/proc/self/status", "VmLck:", &locked);
    bench_read_number("/proc/self/status", "VmPin:", &pinned);
    ledger->now[BENCH_SENSE_PINNED] = held.pinned + (int64_t)(locked + pinned) * 1024;
    ledger->now[BENCH_SENSE_REGISTERED] = held.registered;
}

/* Each second sample goes. */
static void thin_out(struct bench_sense_ledger *ledger)
{
    size_t each = (size_t)ledger->series;

    for (size_t i = 0; i < ledger->count / 2; i++) {
        ledger->at_ns[i] = ledger->at_ns[2 * i];
        memmove(ledger->values + i * each, ledger->values + 2 * i * each, each * sizeof *ledger->values);
    }
    ledger->count /= 2;
    ledger->skip *= 2;
}

void bench_sense_ledger_add(struct bench_sense_ledger *ledger, int64_t now_ns, const struct wf_nvml_state *gpus,
                            const bool *there)
{
    if (!ledger->series || ++ledger->skipped < ledger->skip)
        return;
    ledger->skipped = 0;
    if (ledger->count == BENCH_SENSE_HELD_ROOM)
        thin_out(ledger);
    int64_t *values = ledger->values + ledger->count * (size_t)ledger->series;
    memcpy(values, ledger->now, sizeof ledger->now);
    for (int i = BENCH_SENSE_SERIES; i < ledger->series; i++) {
        int gpu = i - BENCH_SENSE_SERIES;
        values[i] = there[gpu] && gpus[gpu].free_bytes >= 0 ? NO_FREE - gpus[gpu].free_bytes : -1;
    }
    ledger->at_ns[ledger->count++] = now_ns;
}

/* From what is used of NO_FREE back to what is free. */
static void turn_round(struct bench_growth *growth)
{
    growth->first = growth->first < 0 ? -1 : NO_FREE - growth->first;
    growth->last = growth->last < 0 ? -1 : NO_FREE - growth->last;
}

int bench_sense_memories(struct bench_sense *sense, struct bench_sense_memory *all, int max)
{
    static const char *const names[BENCH_SENSE_SERIES] = {"rss", "pinned", "registered"};
    const struct bench_sense_ledger *ledger = &sense->ledger;

    pthread_mutex_lock(&sense->lock);
    for (int i = 0; i < ledger->series && i < max; i++) {
        bench_growth_judge(ledger->at_ns, ledger->values + i, (size_t)ledger->series, ledger->count, &all[i].growth);
        if (i < BENCH_SENSE_SERIES)
            snprintf(all[i].name, sizeof all[i].name, "%s", names[i]);
        else
            snprintf(all[i].name, sizeof all[i].name, "gpu%d free", i - BENCH_SENSE_SERIES);
        if (i >= BENCH_SENSE_SERIES)
            turn_round(&all[i].growth);
    }
    pthread_mutex_unlock(&sense->lock);
    return ledger->series;
}
