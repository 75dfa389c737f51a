/* What was read, in a few figures. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "base/clock.h"
#include "bench/words/columns.h"
#include "sense_parts.h"

void bench_sense_tally_add(struct bench_sense_tally *tally, double value)
{
    double off = value - tally->mean;

    tally->min = tally->count == 0 || value < tally->min ? value : tally->min;
    tally->max = tally->count == 0 || value > tally->max ? value : tally->max;
    tally->count++;
    tally->mean += off / (double)tally->count;
    tally->squares += off * (value - tally->mean);
}

static struct bench_sense_figure figure_of(const struct bench_sense_tally *tally)
{
    return (struct bench_sense_figure){
        .count = tally->count,
        .mean = tally->mean,
        .sd = tally->count > 1 ? sqrt(tally->squares / (double)(tally->count - 1)) : 0,
        .min = tally->min,
        .max = tally->max,
    };
}

int bench_sense_summarize(struct bench_sense *sense, struct bench_sense_summary *all, int max)
{
    int gpus = sense->store.gpu_count;

    pthread_mutex_lock(&sense->lock);
    for (int i = 0; i <= gpus && i < max; i++) {
        const struct bench_sense_device *device = &sense->devices[i];
        all[i] = (struct bench_sense_summary){
            .celsius = figure_of(&device->celsius),
            .watts = figure_of(&device->watts),
            .mhz = figure_of(&device->mhz),
            .held_back = device->held_back,
            .told = device->told,
        };
        if (i < gpus)
            snprintf(all[i].device, sizeof all[i].device, "gpu%d", i);
        else
            snprintf(all[i].device, sizeof all[i].device, "cpu");
    }
    pthread_mutex_unlock(&sense->lock);
    return gpus + 1;
}

void bench_sense_cost(struct bench_sense *sense, struct bench_sense_cost *cost)
{
    pthread_mutex_lock(&sense->lock);
    const struct bench_sense_store *store = &sense->store;
    *cost = (struct bench_sense_cost){.own_cpu_ns = sense->own_cpu_ns};
    if (store->count)
        cost->elapsed_ns = store->samples[store->count - 1].at_ns - store->begun_ns;
    if (cost->elapsed_ns > 0)
        cost->share = (double)cost->own_cpu_ns / (double)cost->elapsed_ns;
    pthread_mutex_unlock(&sense->lock);
}

/* --- for people --- */

/* What changed between the first sample and the last; what is unknown counts as nothing. */
struct changes {
    uint64_t retransmits, nics[BENCH_SENSE_INTERFACES_MAX][BENCH_SENSE_NIC_COUNTS];
    size_t samples;
    struct bench_sense_tally others;
};

static uint64_t grown_by(uint64_t first, uint64_t last)
{
    return first != BENCH_SENSE_COUNT_UNKNOWN && last != BENCH_SENSE_COUNT_UNKNOWN && last > first ? last - first : 0;
}

static void read_changes(struct bench_sense *sense, struct changes *changes)
{
    memset(changes, 0, sizeof *changes);
    pthread_mutex_lock(&sense->lock);
    changes->samples = sense->store.count;
    changes->others = sense->others;
    if (sense->store.count) {
        struct bench_sense_reading first = bench_sense_store_at(&sense->first, 0);
        struct bench_sense_reading last = bench_sense_store_at(&sense->store, sense->store.count - 1);
        changes->retransmits = grown_by(first.sample->retransmits, last.sample->retransmits);
        for (int i = 0; i < sense->store.nic_count; i++)
            for (int k = 0; k < BENCH_SENSE_NIC_COUNTS; k++)
                changes->nics[i][k] = grown_by(first.nics[i].counts[k], last.nics[i].counts[k]);
    }
    pthread_mutex_unlock(&sense->lock);
}

static void put_line(FILE *out, int columns, const char *format, ...) __attribute__((format(printf, 3, 4)));

static void put_line(FILE *out, int columns, const char *format, ...)
{
    char text[400];
    int column = 2;
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fputs("  ", out);
    bench_put_wrapped(out, text, &column, 4, columns);
    fputc('\n', out);
}

static void put_figure(FILE *out, const char *device, const char *what, const struct bench_sense_figure *figure)
{
    if (figure->count)
        fprintf(out, "  %-6s %-16s %9.1f %8.1f %9.1f %9.1f\n", device, what, figure->mean, figure->sd, figure->min,
                figure->max);
}

static void put_devices(FILE *out, int columns, const struct bench_sense_summary *devices, int count)
{
    bool any = false;

    for (int i = 0; i < count; i++)
        any |= devices[i].celsius.count || devices[i].watts.count || devices[i].mhz.count;
    if (any)
        fprintf(out, "  %-6s %-16s %9s %8s %9s %9s\n", "device", "", "mean", "sd", "least", "most");
    for (int i = 0; i < count; i++) {
        const struct bench_sense_summary *device = &devices[i];
        put_figure(out, device->device, "temperature (C)", &device->celsius);
        put_figure(out, device->device, "power (W)", &device->watts);
        put_figure(out, device->device, "clock (MHz)", &device->mhz);
        if (device->held_back)
            put_line(out, columns, "%s was held back in %" PRIu64 " samples.", device->device, device->held_back);
    }
}

static void put_interface(FILE *out, int columns, const char *name, const uint64_t *counts)
{
    if (counts[BENCH_SENSE_RX_ERRORS] + counts[BENCH_SENSE_TX_ERRORS] + counts[BENCH_SENSE_RX_DROPPED] +
        counts[BENCH_SENSE_TX_DROPPED])
        put_line(out, columns,
                 "%s: %" PRIu64 " errors receiving, %" PRIu64 " sending; %" PRIu64
                 " packets dropped on arrival, %" PRIu64 " before they left.",
                 name, counts[BENCH_SENSE_RX_ERRORS], counts[BENCH_SENSE_TX_ERRORS], counts[BENCH_SENSE_RX_DROPPED],
                 counts[BENCH_SENSE_TX_DROPPED]);
}

void bench_sense_put_summary(struct bench_sense *sense, FILE *out, int columns)
{
    struct bench_sense_summary devices[BENCH_SENSE_GPUS_MAX + 1];
    int count = bench_sense_summarize(sense, devices, BENCH_SENSE_GPUS_MAX + 1);
    struct bench_sense_cost cost;
    struct changes changes;

    read_changes(sense, &changes);
    bench_sense_cost(sense, &cost);
    put_devices(out, columns, devices, count);
    if (sense->cpu.governor[0])
        put_line(out, columns, "Clocks of processors are governed by \"%s\".", sense->cpu.governor);
    if (changes.others.count)
        put_line(out, columns, "Others used %.2f of our processors on average, %.2f at most.", changes.others.mean,
                 changes.others.max);
    if (changes.retransmits)
        put_line(out, columns, "TCP of this machine sent %" PRIu64 " segments again.", changes.retransmits);
    for (int i = 0; i < sense->store.nic_count; i++)
        put_interface(out, columns, sense->net.interfaces[i].name, changes.nics[i]);
    put_line(out, columns, "%zu samples in %.1f s; taking them used %.2f %% of one processor.", changes.samples,
             (double)cost.elapsed_ns / WF_NS_PER_S, 100 * cost.share);
}
