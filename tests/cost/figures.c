#include "figures.h"

#include <stdio.h>
#include <string.h>

#include "base/histogram.h"

#define NIC_BYTES (200e9 / 8) /* in a second */
#define GOAL_GROWTH 20.0      /* percent, of any row against the first of its series */
#define GOAL_LOCK_NS 150.0    /* for a chunk */

void figures_settle(struct cost_row *row, int rounds)
{
    for (int side = 0; side < METER_SIDES; side++)
        for (int figure = 0; figure < FIGURES; figure++)
            row->median[side][figure] = wf_median(row->samples[side][figure], (size_t)rounds);
}

/* --- tables --- */

static void print_size(const struct cost_row *row)
{
    const struct cost_size *size = &row->size;
    printf("| %s | %d | %d | %d | %d |", row->series, size->rails * size->channels, size->connections, size->sessions,
           size->workers);
}

/* Both sides of a figure. */
static void print_pair(const struct cost_row *row, enum figure figure, int digits)
{
    printf(" %.*f | %.*f |", digits, row->median[METER_SENDER][figure], digits, row->median[METER_RECEIVER][figure]);
}

static void print_costs(const struct cost_row *rows, int count)
{
    printf(
        "| series | channels | connections | sessions | workers | chunk, sender (ns) | receiver | lock, sender (ns) | "
        "receiver | message, sender (ns) | receiver | lock, sender (ns) | receiver |\n"
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
    for (int i = 0; i < count; i++) {
        print_size(&rows[i]);
        print_pair(&rows[i], CHUNK, 0);
        print_pair(&rows[i], CHUNK_LOCK, 0);
        print_pair(&rows[i], MESSAGE, 0);
        print_pair(&rows[i], MESSAGE_LOCK, 0);
        printf("\n");
    }
}

static void print_holds(const struct cost_row *rows, int count)
{
    printf("\nThe lock while chunks move, and the engine's own time, which the figures above do not have in them:\n\n"
           "| series | channels | connections | sessions | workers | holds of a chunk, sender | receiver | "
           "p99 of a hold, sender (ns) | receiver | longest, sender (ns) | receiver | engine, sender (ns a chunk) | "
           "receiver |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
    for (int i = 0; i < count; i++) {
        print_size(&rows[i]);
        print_pair(&rows[i], CHUNK_HOLDS, 2);
        print_pair(&rows[i], CHUNK_P99, 0);
        print_pair(&rows[i], CHUNK_LONGEST, 0);
        print_pair(&rows[i], CHUNK_ENGINE, 0);
        printf("\n");
    }
}

/* --- growth --- */

static double growth(const struct cost_row *row, const struct cost_row *first, int side, enum figure figure)
{
    double before = first->median[side][figure];
    return before > 0 ? 100 * (row->median[side][figure] / before - 1) : 0;
}

static void print_growth(const struct cost_row *rows, int count)
{
    const struct cost_row *first = rows;
    printf("\nGrowth against the first row of the series, in percent (the goal for chunks: at most %.0f):\n\n"
           "| series | channels | connections | sessions | workers | chunk, sender | receiver | message, sender | "
           "receiver |\n|---|---|---|---|---|---|---|---|---|\n",
           GOAL_GROWTH);
    for (int i = 0; i < count; i++) {
        if (strcmp(rows[i].series, first->series) != 0)
            first = &rows[i];
        if (first == &rows[i])
            continue;
        print_size(&rows[i]);
        for (int figure = CHUNK; figure <= MESSAGE; figure += MESSAGE - CHUNK)
            for (int side = 0; side < METER_SIDES; side++)
                printf(" %+.0f |", growth(&rows[i], first, side, (enum figure)figure));
        printf("\n");
    }
}

/* --- the verdict --- */

static const char *name_of(int side)
{
    return side == METER_SENDER ? "sender" : "receiver";
}

static void judge_side(const struct cost_row *row, int side)
{
    double chunks = NIC_BYTES / CHUNK_BYTES, all = row->size.rails * chunks, lock = row->median[side][CHUNK_LOCK];
    printf(
        "  - %s: the lock is held %.1f %% of the time, and %.2f processors handle the chunks; the lock would be held "
        "all the time at %.0f such NICs, half of it at %.0f\n",
        name_of(side), all * lock / 1e7, all * row->median[side][CHUNK] / 1e9, 1e9 / (lock * chunks),
        5e8 / (lock * chunks));
}

static void judge_machines(const struct cost_row *rows, int count)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(rows[i].series, "NICs") != 0)
            continue;
        printf("- %d NICs of 200 Gbit/s need %.0f chunks of %u KiB in a second. If one session carries all of them:\n",
               rows[i].size.rails, rows[i].size.rails * NIC_BYTES / CHUNK_BYTES, CHUNK_BYTES / 1024);
        for (int side = 0; side < METER_SIDES; side++)
            judge_side(&rows[i], side);
    }
}

static void judge_locks(const struct cost_row *rows, int count)
{
    for (int side = 0; side < METER_SIDES; side++) {
        const struct cost_row *worst = rows;
        for (int i = 1; i < count; i++)
            if (rows[i].median[side][CHUNK_LOCK] > worst->median[side][CHUNK_LOCK])
                worst = &rows[i];
        double lock = worst->median[side][CHUNK_LOCK];
        printf("- %s: at most %.0f ns of a chunk under the lock (series %s, %d channels, %d connections, %d sessions, "
               "%d workers); the goal, %.0f ns, is %s\n",
               name_of(side), lock, worst->series, worst->size.rails * worst->size.channels, worst->size.connections,
               worst->size.sessions, worst->size.workers, GOAL_LOCK_NS, lock <= GOAL_LOCK_NS ? "met" : "missed");
    }
}

static void judge_growth(const struct cost_row *rows, int count)
{
    const struct cost_row *first = rows, *worst = NULL;
    double most = 0;
    int at = 0;
    for (int i = 0; i < count; i++) {
        if (strcmp(rows[i].series, first->series) != 0)
            first = &rows[i];
        for (int side = 0; side < METER_SIDES; side++) {
            double grown = growth(&rows[i], first, side, CHUNK);
            if (worst && grown <= most)
                continue;
            most = grown;
            worst = &rows[i];
            at = side;
        }
    }
    printf("- a chunk takes at most %.0f %% more than in the first row of its series (%s, series %s, %d channels, %d "
           "connections, %d sessions, %d workers); the goal, %.0f %%, is %s\n",
           most, name_of(at), worst->series, worst->size.rails * worst->size.channels, worst->size.connections,
           worst->size.sessions, worst->size.workers, GOAL_GROWTH, most <= GOAL_GROWTH ? "met" : "missed");
}

void figures_print(const struct cost_row *rows, int count)
{
    print_costs(rows, count);
    print_holds(rows, count);
    print_growth(rows, count);
    printf("\nOn paper, from these figures:\n\n");
    judge_machines(rows, count);
    judge_locks(rows, count);
    judge_growth(rows, count);
    printf("- one thread has driven all workers, and both sides have shared its caches: on a machine with many cores "
           "the session's memory moves between their caches, which makes holds longer than here\n");
}
