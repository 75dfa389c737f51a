/* Samples as lines of CSV. Rows of one sample: GPUs, the processor as a whole, every core, interfaces, TCP. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "sense_parts.h"

#define BUSY_LEAST 10 /* thousandths: a core that nobody bound is worth a row from here on */
#define PIECE 16384

const char bench_sense_csv_header[] =
    "timestamp_ns,node,device,temperature_c,power_w,clock_mhz,memory_clock_mhz,throttling,throttle_count,busy,bound,"
    "rx_bytes,tx_bytes,rx_errors,tx_errors,rx_dropped,tx_dropped,retransmits\n";

/* A row of all fields, as texts; "": it does not apply, or is unknown. */
struct row {
    char device[48], celsius[16], watts[24], mhz[16], memory_mhz[16], throttling[200], throttled[24], busy[16];
    const char *bound;
    char counts[BENCH_SENSE_NIC_COUNTS][24], retransmits[24];
};

static void put_int(char *field, size_t room, int value)
{
    if (value != BENCH_SENSE_UNKNOWN)
        snprintf(field, room, "%d", value);
}

static void put_count(char field[24], uint64_t value)
{
    if (value != BENCH_SENSE_COUNT_UNKNOWN)
        snprintf(field, 24, "%" PRIu64, value);
}

static void put_watts(char field[24], int milliwatts)
{
    if (milliwatts != BENCH_SENSE_UNKNOWN)
        snprintf(field, 24, "%.3f", milliwatts / 1e3);
}

static void put_busy(char field[16], uint16_t thousandths)
{
    if (thousandths != BENCH_SENSE_BUSY_UNKNOWN)
        snprintf(field, 16, "%.3f", (double)thousandths / BENCH_SENSE_BUSY_ALL);
}

static void fill_gpu(const struct bench_sense *sense, const struct bench_sense_gpu *gpu, int index, struct row *row)
{
    snprintf(row->device, sizeof row->device, "gpu%d", index);
    put_int(row->celsius, sizeof row->celsius, gpu->celsius);
    put_watts(row->watts, gpu->power_mw);
    put_int(row->mhz, sizeof row->mhz, gpu->sm_mhz);
    put_int(row->memory_mhz, sizeof row->memory_mhz, gpu->memory_mhz);
    if (gpu->reason >= 0) {
        const char *text = sense->gpus.reasons[gpu->reason];
        const char *quote = strchr(text, ',') ? "\"" : "";
        snprintf(row->throttling, sizeof row->throttling, "%s%s%s", quote, text, quote);
    }
}

static void fill_processor(const struct bench_sense *sense, const struct bench_sense_reading *at, struct row *row)
{
    uint64_t throttled = BENCH_SENSE_COUNT_UNKNOWN;
    unsigned sum = 0, count = 0;

    for (int i = 0; i < sense->store.core_count; i++)
        if (at->cores[i].throttled != BENCH_SENSE_COUNT_UNKNOWN)
            throttled = (throttled == BENCH_SENSE_COUNT_UNKNOWN ? 0 : throttled) + at->cores[i].throttled;
    for (int i = 0; i < sense->store.cpu_count; i++)
        if (CPU_ISSET(i, &sense->cpu.ours) && at->busy[i] != BENCH_SENSE_BUSY_UNKNOWN) {
            sum += at->busy[i];
            count++;
        }
    snprintf(row->device, sizeof row->device, "cpu");
    put_int(row->celsius, sizeof row->celsius, at->sample->celsius);
    put_watts(row->watts, at->sample->power_mw);
    put_int(row->mhz, sizeof row->mhz, at->sample->mhz);
    put_count(row->throttled, throttled);
    put_busy(row->busy, count ? (uint16_t)(sum / count) : BENCH_SENSE_BUSY_UNKNOWN);
}

/* False: it is not worth a row. */
static bool fill_core(const struct bench_sense *sense, const struct bench_sense_reading *at, int cpu, struct row *row)
{
    bool bound = sense->bound_given && CPU_ISSET(cpu, &sense->cpu.ours);
    uint16_t busy = at->busy[cpu];

    if (!bound && (busy == BENCH_SENSE_BUSY_UNKNOWN || busy < BUSY_LEAST))
        return false;
    snprintf(row->device, sizeof row->device, "core%d", cpu);
    row->bound = bound ? "1" : "0";
    put_busy(row->busy, busy);
    for (int i = 0; i < sense->store.core_count; i++)
        if (sense->cpu.watched[i].cpu == cpu) {
            put_int(row->mhz, sizeof row->mhz, at->cores[i].mhz);
            put_count(row->throttled, at->cores[i].throttled);
        }
    return true;
}

static void fill_interface(const struct bench_sense *sense, const struct bench_sense_reading *at, int index,
                           struct row *row)
{
    snprintf(row->device, sizeof row->device, "nic:%s", sense->net.interfaces[index].name);
    wf_text_utf8(row->device);
    for (int i = 0; i < BENCH_SENSE_NIC_COUNTS; i++)
        put_count(row->counts[i], at->nics[index].counts[i]);
}

static int rows_of_sample(const struct bench_sense_store *store)
{
    return store->gpu_count + 1 + store->cpu_count + store->nic_count + 1;
}

static bool fill(const struct bench_sense *sense, const struct bench_sense_reading *at, int device, struct row *row)
{
    const struct bench_sense_store *store = &sense->store;

    *row = (struct row){.bound = ""};
    if (device < store->gpu_count) {
        fill_gpu(sense, &at->gpus[device], device, row);
        return true;
    }
    device -= store->gpu_count;
    if (device == 0) {
        fill_processor(sense, at, row);
        return true;
    }
    device--;
    if (device < store->cpu_count)
        return fill_core(sense, at, device, row);
    device -= store->cpu_count;
    if (device < store->nic_count) {
        fill_interface(sense, at, device, row);
        return true;
    }
    snprintf(row->device, sizeof row->device, "tcp");
    put_count(row->retransmits, at->sample->retransmits);
    return true;
}

static int print_row(const struct row *row, int64_t at_ns, int node, char line[BENCH_SENSE_ROW_MAX])
{
    return snprintf(line, BENCH_SENSE_ROW_MAX, "%" PRId64 ",%d,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s\n",
                    at_ns, node, row->device, row->celsius, row->watts, row->mhz, row->memory_mhz, row->throttling,
                    row->throttled, row->busy, row->bound, row->counts[BENCH_SENSE_RX_BYTES],
                    row->counts[BENCH_SENSE_TX_BYTES], row->counts[BENCH_SENSE_RX_ERRORS],
                    row->counts[BENCH_SENSE_TX_ERRORS], row->counts[BENCH_SENSE_RX_DROPPED],
                    row->counts[BENCH_SENSE_TX_DROPPED], row->retransmits);
}

size_t bench_sense_rows(struct bench_sense *sense, int node, uint64_t *next, char *text, size_t room)
{
    uint64_t each = (uint64_t)rows_of_sample(&sense->store);
    size_t used = 0;
    struct row row;

    pthread_mutex_lock(&sense->lock);
    for (; *next < each * sense->store.count && used + BENCH_SENSE_ROW_MAX <= room; ++*next) {
        struct bench_sense_reading at = bench_sense_store_at(&sense->store, *next / each);
        if (fill(sense, &at, (int)(*next % each), &row))
            used += (size_t)print_row(&row, at.sample->at_ns, node, text + used);
    }
    pthread_mutex_unlock(&sense->lock);
    return used;
}

int bench_sense_write_csv(struct bench_sense *sense, FILE *file, int node)
{
    char text[PIECE];
    uint64_t next = 0;
    size_t length;

    if (fputs(bench_sense_csv_header, file) == EOF)
        return -EIO;
    while ((length = bench_sense_rows(sense, node, &next, text, sizeof text)) > 0)
        if (fwrite(text, 1, length, file) != length)
            return -EIO;
    return 0;
}
