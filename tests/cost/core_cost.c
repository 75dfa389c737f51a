/*
 * core_cost.c: what the library itself takes, without a kernel and a network: nanoseconds for a chunk and for a small
 * message, at the sender and at the receiver, and how much of it with a session's lock held. Over an engine in memory
 * that completes at once (pipe_engine.h).
 *
 * In the figures: the calls that post operations and poll queues, and the workers' rounds, also those that find nothing
 * to do; the library's own looks at the clock; a share of the message in each of its chunks.
 * Not in them: the engine (measured in a pass of its own, and subtracted), system calls, payload (it is only counted),
 * wake-ups, the door, waiting for a lock, and the memory of a session that moves between the caches of cores: one
 * thread drives all workers of both sides in turn. So of many workers it is not the rate that counts here but the time
 * under the lock, which is the part that they cannot do at the same time.
 *
 * Each row sends 16 MiB messages, twice as many as there are channels or one for each connection, and then 64-byte
 * messages, 64 for each express channel or one for each connection. So in all rows of a series each channel has as much
 * to do as in the others, and a side's turn is as long for each of them. An operation has one chunk, as with io_uring;
 * in the series "batch" it has up to 15. All rows are measured once in each round; the medians of the rounds count.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "figures.h"
#include "flow.h"

#define LARGE_BYTES (16u * 1024 * 1024)
#define LARGE_CHUNKS (LARGE_BYTES / CHUNK_BYTES)
#define SMALL_BYTES 64
#define LARGE_DEPTH 2      /* messages for each channel */
#define SMALL_DEPTH 64     /* messages for each express channel */
#define CHUNKS_MIN 20000   /* in one measurement */
#define MESSAGES_MIN 50000 /* of the small ones */
#define DEPTHS_MIN 3       /* every message under way is followed by so many in its place */
#define ROUNDS 5
#define ONE_CHUNK 256 /* KiB in a call: less than a chunk, so one goes */
#define MANY_CHUNKS 8192
#define DESCRIPTORS 2000 /* the library asks whether there are enough, though none is used */

/* Series; rails, channels of each; connections, sessions, workers; KiB in a call. */
#define ROW(about, rail_count, each, connection_count, session_count, worker_count, kib)                               \
    {                                                                                                                  \
        .series = about, .size = {                                                                                     \
            .rails = rail_count,                                                                                       \
            .channels = each,                                                                                          \
            .connections = connection_count,                                                                           \
            .sessions = session_count,                                                                                 \
            .workers = worker_count,                                                                                   \
            .call = kib                                                                                                \
        }                                                                                                              \
    }

static struct cost_row rows[] = {
    ROW("channels", 1, 1, 1, 1, 1, ONE_CHUNK),       ROW("channels", 4, 1, 1, 1, 1, ONE_CHUNK),
    ROW("channels", 16, 1, 1, 1, 1, ONE_CHUNK),      ROW("channels", 16, 4, 1, 1, 1, ONE_CHUNK),
    ROW("channels", 16, 16, 1, 1, 1, ONE_CHUNK),     ROW("channels", 16, 64, 1, 1, 1, ONE_CHUNK),
    ROW("connections", 8, 1, 1, 1, 1, ONE_CHUNK),    ROW("connections", 8, 1, 16, 1, 1, ONE_CHUNK),
    ROW("connections", 8, 1, 256, 1, 1, ONE_CHUNK),  ROW("connections", 8, 1, 1024, 1, 1, ONE_CHUNK),
    ROW("connections", 8, 1, 4096, 1, 1, ONE_CHUNK), ROW("sessions", 1, 1, 1, 1, 1, ONE_CHUNK),
    ROW("sessions", 1, 1, 16, 16, 1, ONE_CHUNK),     ROW("sessions", 1, 1, 128, 128, 1, ONE_CHUNK),
    ROW("sessions", 1, 1, 1024, 1024, 1, ONE_CHUNK), ROW("workers", 8, 1, 1, 1, 1, ONE_CHUNK),
    ROW("workers", 1, 8, 1, 1, 2, ONE_CHUNK),        ROW("workers", 2, 4, 1, 1, 4, ONE_CHUNK),
    ROW("workers", 4, 2, 1, 1, 8, ONE_CHUNK),        ROW("workers", 8, 1, 1, 1, 16, ONE_CHUNK),
    ROW("batch", 8, 1, 1, 1, 1, MANY_CHUNKS),        ROW("NICs", 8, 1, 8, 1, 16, ONE_CHUNK),
    ROW("NICs", 32, 1, 8, 1, 64, ONE_CHUNK),
};

#define ROWS ((int)(sizeof rows / sizeof rows[0]))

struct options {
    int rounds;
    bool quick;
};

/* Those that are measured follow each other. */
static struct cost_row *first_row = rows;
static int row_count = ROWS;

/* --- one measurement --- */

/* What of two passes becomes which figures: the plain pass has the time, the accounting one says what is in it. */
static void note_chunks(struct cost_row *row, int round, double chunks, const struct meter_reading plain[METER_SIDES],
                        const struct meter_reading accounted[METER_SIDES])
{
    for (int side = 0; side < METER_SIDES; side++) {
        double(*samples)[ROUNDS_MAX] = row->samples[side];
        samples[CHUNK][round] = (plain[side].total_ns - accounted[side].engine_ns) / chunks;
        samples[CHUNK_ENGINE][round] = accounted[side].engine_ns / chunks;
        samples[CHUNK_LOCK][round] = accounted[side].held_ns / chunks;
        samples[CHUNK_HOLDS][round] = (double)accounted[side].holds / chunks;
        samples[CHUNK_P99][round] = accounted[side].p99_ns;
        samples[CHUNK_LONGEST][round] = accounted[side].longest_ns;
    }
}

static void note_messages(struct cost_row *row, int round, double messages,
                          const struct meter_reading plain[METER_SIDES],
                          const struct meter_reading accounted[METER_SIDES])
{
    for (int side = 0; side < METER_SIDES; side++) {
        double(*samples)[ROUNDS_MAX] = row->samples[side];
        samples[MESSAGE][round] = (plain[side].total_ns - accounted[side].engine_ns) / messages;
        samples[MESSAGE_ENGINE][round] = accounted[side].engine_ns / messages;
        samples[MESSAGE_LOCK][round] = accounted[side].held_ns / messages;
    }
}

/* `under_way`: messages in all, spread over the connections. */
static struct flow_plan plan(const struct cost_size *size, uint64_t bytes, int under_way, uint64_t least, bool quick)
{
    int depth = under_way / size->connections;
    struct flow_plan made = {.bytes = bytes, .depth = depth > 0 ? depth : 1};
    uint64_t several = DEPTHS_MIN * (uint64_t)made.depth * (uint64_t)size->connections;
    if (!quick)
        made.messages = several > least ? several : least;
    return made;
}

/* One pass of each kind. Returns how many messages arrived. */
static uint64_t run_both(struct cost_row *row, struct cost_world *world, const struct flow_plan *made,
                         struct meter_reading plain[METER_SIDES], struct meter_reading accounted[METER_SIDES])
{
    uint64_t arrived = flow_run(world, made, false, plain);
    COST_CHECK(flow_run(world, made, true, accounted) == arrived);
    if (row->share == 0 || plain->share < row->share)
        row->share = plain->share;
    return arrived;
}

/* Returns how many messages arrived. */
static uint64_t measure(struct cost_row *row, struct cost_world *world, int round, bool quick)
{
    const struct cost_size *size = &row->size;
    int channels = size->rails * size->channels * size->sessions, express = size->rails * size->sessions;
    struct flow_plan large = plan(size, LARGE_BYTES, LARGE_DEPTH * channels, CHUNKS_MIN / LARGE_CHUNKS, quick);
    struct flow_plan small = plan(size, SMALL_BYTES, SMALL_DEPTH * express, MESSAGES_MIN, quick);
    struct meter_reading plain[METER_SIDES], accounted[METER_SIDES];
    uint64_t arrived = run_both(row, world, &large, plain, accounted);
    note_chunks(row, round, (double)arrived * LARGE_CHUNKS, plain, accounted);
    uint64_t messages = run_both(row, world, &small, plain, accounted);
    note_messages(row, round, (double)messages, plain, accounted);
    return 2 * (arrived + messages);
}

/* --- all of them --- */

static struct cost_world worlds[ROWS];

static void open_row(int index)
{
    fprintf(stderr, "core_cost: row %d of %d: %s\n", index + 1, row_count, first_row[index].series);
    cost_world_open(&worlds[index], &first_row[index].size);
}

static void close_row(int index, int rounds)
{
    cost_world_close(&worlds[index]);
    figures_settle(&first_row[index], rounds);
}

/* One world after the other: all of them at once take 1.5 GB. */
static uint64_t measure_quickly(void)
{
    uint64_t arrived = 0;
    for (int i = 0; i < row_count; i++) {
        open_row(i);
        arrived += measure(&first_row[i], &worlds[i], 0, true);
        close_row(i, 1);
    }
    return arrived;
}

/* In rounds over all rows, so that what disturbs the machine for a while disturbs all of them. A round that does not
 * count fills caches and pools. */
static uint64_t measure_all(int rounds)
{
    uint64_t arrived = 0;
    for (int i = 0; i < row_count; i++) {
        open_row(i);
        arrived += measure(&first_row[i], &worlds[i], 0, true);
    }
    for (int round = 0; round < rounds; round++) {
        fprintf(stderr, "core_cost: round %d of %d\n", round + 1, rounds);
        for (int i = 0; i < row_count; i++)
            arrived += measure(&first_row[i], &worlds[i], round, false);
    }
    for (int i = 0; i < row_count; i++)
        close_row(i, rounds);
    return arrived;
}

static double least_share(void)
{
    double least = 1;
    for (int i = 0; i < row_count; i++)
        least = first_row[i].share < least ? first_row[i].share : least;
    return least;
}

static void raise_descriptors(void)
{
    struct rlimit limit;
    COST_CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    limit.rlim_cur = limit.rlim_max;
    COST_CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    if (limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < DESCRIPTORS) {
        printf("skipped: needs a limit of %d descriptors (ulimit -Hn)\n", DESCRIPTORS);
        exit(77);
    }
}

/* --- the command line --- */

static const char *const usage =
    "usage: core_cost [--rounds N] [--series NAME] [--quick]\n"
    "What the core of the library takes for a chunk and a small message, over an engine in memory. Markdown.\n"
    "  --rounds N     measure every row so many times, 1 to 99 (default 5): medians are printed\n"
    "  --series NAME  only channels, connections, sessions, workers, batch or NICs\n"
    "  --quick        one round of few messages, for tests: the figures mean little\n";

static int refuse(const char *text, const char *word)
{
    fprintf(stderr, "core_cost: %s: %s\n%s", text, word, usage);
    return 2;
}

static bool choose_series(const char *name)
{
    row_count = 0;
    for (int i = 0; i < ROWS; i++) {
        if (strcmp(rows[i].series, name) != 0)
            continue;
        first_row = row_count == 0 ? &rows[i] : first_row;
        row_count += 1;
    }
    return row_count > 0;
}

/* 0: measure; else the exit status of the program, 1 for --help. */
static int read_options(int argc, char **argv, struct options *options)
{
    *options = (struct options){.rounds = ROUNDS};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0)
            return 1;
        if (strcmp(argv[i], "--quick") == 0) {
            options->quick = true;
            options->rounds = 1;
        } else if (strcmp(argv[i], "--rounds") == 0) {
            const char *value = i + 1 < argc ? argv[++i] : "";
            options->rounds = atoi(value);
            if (options->rounds < 1 || options->rounds > ROUNDS_MAX)
                return refuse("--rounds takes a number from 1 to 99", value);
        } else if (strcmp(argv[i], "--series") == 0) {
            const char *value = i + 1 < argc ? argv[++i] : "";
            if (!choose_series(value))
                return refuse("--series takes the name of one", value);
        } else {
            return refuse("unknown option", argv[i]);
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct options options;
    int result = read_options(argc, argv, &options);
    if (result == 1)
        printf("%s", usage);
    if (result != 0)
        return result == 1 ? 0 : result;
    raise_descriptors();
    meter_init();
    uint64_t arrived = options.quick ? measure_quickly() : measure_all(options.rounds);
    printf("%d rounds, medians; a look at the clock takes %.1f ns and is subtracted. In the most disturbed measurement "
           "the program ran %.0f %% of the time.\n\n",
           options.rounds, meter_look_ns(), 100 * least_share());
    figures_print(first_row, row_count);
    printf("\nAll %llu messages arrived.\n", (unsigned long long)arrived);
    return 0;
}
