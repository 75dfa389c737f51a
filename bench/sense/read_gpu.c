/* GPUs, by way of NVML. */
#include <string.h>

#include "base/histogram.h"
#include "bench/words/words.h"
#include "sense_parts.h"

#define LEVEL_LEAST 3 /* readings that make a median worth a comparison */

void bench_sense_gpus_init(struct bench_sense_gpus *gpus, const char *const *pci, int count)
{
    struct wf_status status;

    gpus->count = count;
    gpus->read = wf_nvml_read;
    for (int i = 0; i < count; i++)
        bench_copy_text(gpus->pci[i], sizeof gpus->pci[i], pci[i]);
    if (count && wf_nvml_open(&gpus->nvml, &status) != 0)
        gpus->nvml = NULL;
}

void bench_sense_gpus_fini(struct bench_sense_gpus *gpus)
{
    wf_nvml_close(gpus->nvml);
    gpus->nvml = NULL;
}

bool bench_sense_gpus_ask(struct bench_sense_gpus *gpus, int gpu, struct wf_nvml_state *state)
{
    struct wf_status status;

    return (gpus->nvml || gpus->read != wf_nvml_read) && gpus->read(gpus->nvml, gpus->pci[gpu], state, &status) == 0;
}

/* Its place in the table; the last place is for all that the table is too small for. */
static int16_t place_of_reason(struct bench_sense_gpus *gpus, const char *throttling)
{
    int at = 0;

    if (!throttling[0])
        return -1;
    while (at < gpus->reason_count && strcmp(gpus->reasons[at], throttling) != 0)
        at++;
    if (at < gpus->reason_count)
        return (int16_t)at;
    if (at == BENCH_SENSE_REASONS_MAX)
        return BENCH_SENSE_REASONS_MAX - 1;
    bench_copy_text(gpus->reasons[at], sizeof gpus->reasons[at],
                    at == BENCH_SENSE_REASONS_MAX - 1 ? "others" : throttling);
    gpus->reason_count++;
    return (int16_t)at;
}

static int known(int value)
{
    return value == WF_NVML_UNKNOWN ? BENCH_SENSE_UNKNOWN : value;
}

void bench_sense_gpus_take(struct bench_sense_gpus *gpus, const struct wf_nvml_state *state,
                           struct bench_sense_gpu *out)
{
    *out = (struct bench_sense_gpu){.celsius = BENCH_SENSE_UNKNOWN,
                                    .sm_mhz = BENCH_SENSE_UNKNOWN,
                                    .memory_mhz = BENCH_SENSE_UNKNOWN,
                                    .power_mw = BENCH_SENSE_UNKNOWN,
                                    .reason = -1};
    if (!state)
        return;
    *out = (struct bench_sense_gpu){
        .celsius = known(state->celsius),
        .sm_mhz = known(state->sm_mhz),
        .memory_mhz = known(state->memory_mhz),
        .power_mw = known(state->power_mw),
        .reason = place_of_reason(gpus, state->throttling),
        .seen = state->held_back ? BENCH_SENSE_GPU_THROTTLED : 0,
    };
}

bool bench_sense_level_off(struct bench_sense_level *level, int mhz, double tolerance)
{
    double sorted[BENCH_SENSE_LEVEL_READINGS];
    bool off = false;
    size_t loaded = 0;

    if (mhz <= 0)
        return false;
    level->highest = mhz > level->highest ? mhz : level->highest;
    if (2 * (int64_t)mhz < level->highest)
        return false;
    /* A reading may have looked like load until the clock rose. */
    for (int i = 0; i < level->count; i++)
        if (2 * (int64_t)level->readings[i] >= level->highest)
            sorted[loaded++] = level->readings[i];
    if (loaded >= LEVEL_LEAST) {
        double median = wf_median(sorted, loaded);
        off = mhz > median * (1 + tolerance) || mhz < median * (1 - tolerance);
    }
    level->readings[level->next] = mhz;
    level->next = (level->next + 1) % BENCH_SENSE_LEVEL_READINGS;
    level->count += level->count < BENCH_SENSE_LEVEL_READINGS;
    return off;
}
