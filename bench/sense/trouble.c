/* What disturbs: which samples have troubles, and which spans of time these touch. */
#include "sense_parts.h"

#define GPU_CLOCK_TOLERANCE 0.02
#define CPU_CLOCK_TOLERANCE 0.05
#define OTHERS_LEAST 0.1 /* of a processor */

/* --- one sample --- */

static bool grew(uint64_t before, uint64_t now)
{
    return before != BENCH_SENSE_COUNT_UNKNOWN && now != BENCH_SENSE_COUNT_UNKNOWN && now > before;
}

static bool throttled_since(const struct bench_sense *sense, const struct bench_sense_reading *before,
                            const struct bench_sense_reading *now)
{
    bool throttled = false;

    for (int i = 0; i < sense->store.core_count; i++)
        throttled |= grew(before->cores[i].throttled, now->cores[i].throttled);
    return throttled;
}

static bool nic_errors_since(const struct bench_sense *sense, const struct bench_sense_reading *before,
                             const struct bench_sense_reading *now)
{
    static const enum bench_sense_nic_count bad[] = {BENCH_SENSE_RX_ERRORS, BENCH_SENSE_TX_ERRORS,
                                                     BENCH_SENSE_TX_DROPPED};
    bool errors = false;

    for (int i = 0; i < sense->store.nic_count; i++)
        for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++)
            errors |= grew(before->nics[i].counts[bad[k]], now->nics[i].counts[bad[k]]);
    return errors;
}

static void mark(uint8_t *bits, enum bench_sense_trouble trouble, bool holds)
{
    *bits |= holds ? (uint8_t)trouble : 0;
}

void bench_sense_judge(struct bench_sense *sense, const struct bench_sense_reading *before,
                       struct bench_sense_reading *now)
{
    struct bench_sense_sample *sample = now->sample;
    struct bench_sense_device *processor = &sense->devices[sense->store.gpu_count];

    for (int i = 0; i < sense->store.gpu_count; i++)
        mark(&now->gpus[i].seen, BENCH_SENSE_GPU_CLOCK,
             bench_sense_level_off(&sense->devices[i].level, now->gpus[i].sm_mhz, GPU_CLOCK_TOLERANCE));
    mark(&sample->seen, BENCH_SENSE_CPU_CLOCK,
         bench_sense_level_off(&processor->level, sample->mhz, CPU_CLOCK_TOLERANCE));
    if (!before)
        return;
    mark(&sample->grown, BENCH_SENSE_CPU_THROTTLED, throttled_since(sense, before, now));
    mark(&sample->grown, BENCH_SENSE_RETRANSMITS, grew(before->sample->retransmits, sample->retransmits));
    mark(&sample->grown, BENCH_SENSE_NIC_ERRORS, nic_errors_since(sense, before, now));
    mark(&sample->grown, BENCH_SENSE_OTHERS, sample->others > OTHERS_LEAST);
}

/* --- spans --- */

static unsigned bits_of(const struct bench_sense_store *store, size_t index, int gpu_a, int gpu_b, bool grown)
{
    struct bench_sense_reading at = bench_sense_store_at(store, index);
    unsigned bits = grown ? at.sample->grown | at.sample->seen : at.sample->seen;

    for (int i = 0; i < store->gpu_count; i++)
        if (i == gpu_a || i == gpu_b)
            bits |= grown ? at.gpus[i].grown | at.gpus[i].seen : at.gpus[i].seen;
    return bits;
}

/* The first sample that is later than `ns`. */
static size_t first_after(const struct bench_sense_store *store, int64_t ns)
{
    size_t low = 0, high = store->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (store->samples[middle].at_ns > ns)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static unsigned troubles_between(const struct bench_sense_store *store, int64_t start_ns, int64_t end_ns, int gpu_a,
                                 int gpu_b)
{
    unsigned bits = 0;
    size_t first = first_after(store, start_ns);

    /* Sample `first` ends the span in which `start_ns` lies; the state before that span is the one found at its
     * beginning. */
    if (first > 0)
        bits |= bits_of(store, first - 1, gpu_a, gpu_b, false);
    for (size_t i = first; i < store->count; i++) {
        int64_t begin_ns = i ? store->samples[i - 1].at_ns : store->begun_ns;
        if (end_ns <= begin_ns)
            break;
        bits |= bits_of(store, i, gpu_a, gpu_b, true);
    }
    return bits;
}

unsigned bench_sense_between(struct bench_sense *sense, int64_t start_ns, int64_t end_ns, int gpu_a, int gpu_b)
{
    if (end_ns <= start_ns)
        end_ns = start_ns < INT64_MAX ? start_ns + 1 : start_ns;
    pthread_mutex_lock(&sense->lock);
    unsigned bits = troubles_between(&sense->store, start_ns, end_ns, gpu_a, gpu_b);
    pthread_mutex_unlock(&sense->lock);
    return bits;
}
