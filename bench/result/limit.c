#include "limit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "bench/words/heard.h"

#define LEAST_S 0.2     /* the kernel counts in steps of some ms: shorter looks tell nothing */
#define FULL_RAIL 0.85  /* of the line rate: the rest is headers and what TCP's congestion control leaves */
#define FULL_NODE 0.90  /* of its processors */
#define FULL_CPU 0.95   /* of one */
#define MUCH_STALL 0.10 /* of the time */
#define MOSTLY_OURS 0.7 /* of what is busy */
#define GB_PER_MBIT (1e6 / 8 / 1e9)

/* --- line rates --- */

/* Of all rails of a node; negative: of one it is not known, which `unknown` then names. */
static double node_rate(const struct bench_result *result, int node, const char **unknown)
{
    const json_t *rail;
    double sum = 0;
    size_t index;

    *unknown = NULL;
    json_array_foreach(result->rail_totals[node], index, rail)
    {
        const json_t *speed = json_object_get(rail, "speed_mbit");
        if (!json_is_integer(speed) || json_integer_value(speed) <= 0) {
            *unknown = bench_heard_text(rail, "name");
            return -1;
        }
        sum += (double)json_integer_value(speed) * GB_PER_MBIT;
    }
    return sum > 0 ? sum : -1;
}

double bench_line_rate(const struct bench_result *result, const struct bench_way *way)
{
    const char *unknown;
    double from = node_rate(result, way->src_node, &unknown), to = node_rate(result, way->dst_node, &unknown);

    if (way->src_node == way->dst_node || result->nearness == BENCH_LOOPBACK || from < 0 || to < 0)
        return -1;
    return from < to ? from : to;
}

char *bench_line_unknown(const struct bench_result *result, char *text, size_t room)
{
    const char *unknown = NULL;

    text[0] = '\0';
    if (result->nearness == BENCH_LOOPBACK)
        snprintf(text, room, "the nodes are on one machine, and loopback has no line rate");
    for (int node = 0; node < result->node_count && !text[0]; node++)
        if (node_rate(result, node, &unknown) < 0)
            snprintf(text, room, "the line rate of node%d's rail %s is not known", node, unknown ? unknown : "?");
    return text;
}

double bench_way_rate(const struct bench_result *result, const struct bench_set *set, const struct bench_way *way,
                      double *room)
{
    struct bench_spread spread;

    bench_spread_of(result, set, way, room, &spread);
    if (spread.pairs == 0)
        return -1;
    return set->mode == BENCH_LOADED ? spread.together : spread.median;
}

/* --- what was in the way --- */

static bool same_machine(const struct bench_result *result)
{
    return result->nearness != BENCH_APART;
}

/* "node1", "the peer node1", "both nodes' machine". */
static const char *whose(const struct bench_result *result, int node, char *text, size_t room)
{
    if (same_machine(result))
        return "the machine";
    snprintf(text, room, "%snode%d", node == result->node ? "" : "the peer ", node);
    return text;
}

/* Processors that weft itself keeps busy there. */
static double own(const struct bench_result *result, const struct bench_set *set, int node)
{
    double all = 0;

    for (int i = 0; i < result->node_count; i++)
        all += same_machine(result) || i == node ? set->busy[i].own : 0;
    return all;
}

static bool find_rails(const struct bench_result *result, const struct bench_set *set, double *samples, char *text,
                       size_t room)
{
    for (int i = 0; i < 2 && result->node_count == 2; i++) {
        double line = bench_line_rate(result, &bench_ways[i]);
        double rate = bench_way_rate(result, set, &bench_ways[i], samples);
        if (line <= 0 || rate < FULL_RAIL * line)
            continue;
        snprintf(text, room, "the rails: %.0f %% of their line rate from node%d to node%d", 100 * rate / line,
                 bench_ways[i].src_node, bench_ways[i].dst_node);
        return true;
    }
    return false;
}

static bool find_memory(const struct bench_result *result, const struct bench_set *set, char *text, size_t room)
{
    char name[32];

    for (int node = 0; node < result->node_count; node++) {
        if (set->busy[node].seconds < LEAST_S || set->busy[node].stalled < MUCH_STALL)
            continue;
        snprintf(text, room,
                 "memory: for %.0f %% of the time somebody on %s waited for it (it swaps, or a limit is low)",
                 100 * set->busy[node].stalled, whose(result, node, name, sizeof name));
        return true;
    }
    return false;
}

static bool find_processors(const struct bench_result *result, const struct bench_set *set, char *text, size_t room)
{
    char name[32];

    for (int node = 0; node < result->node_count; node++) {
        const struct bench_busy *busy = &set->busy[node];
        double ours = own(result, set, node) < busy->busy ? own(result, set, node) : busy->busy;
        const char *where = whose(result, node, name, sizeof name);
        if (busy->seconds < LEAST_S || busy->cpus <= 0)
            continue;
        if (busy->busy >= FULL_NODE * busy->cpus && ours < MOSTLY_OURS * busy->busy)
            snprintf(text, room, "the processors of %s: %.1f of %.0f busy, %.1f of them with other programs", where,
                     busy->busy, busy->cpus, busy->busy - ours);
        else if (busy->busy >= FULL_NODE * busy->cpus)
            snprintf(text, room, "the processors of %s: %.1f of %.0f busy", where, busy->busy, busy->cpus);
        else if (busy->busiest >= FULL_CPU)
            snprintf(text, room, "one processor of %s, which was always busy (of %.0f, %.1f were)", where, busy->cpus,
                     busy->busy);
        else
            continue;
        return true;
    }
    return false;
}

/* For long enough. */
static bool was_looked_at(const struct bench_result *result, const struct bench_set *set)
{
    for (int node = 0; node < result->node_count; node++)
        if (set->busy[node].seconds >= LEAST_S)
            return true;
    return false;
}

/* What was not in the way is worth knowing, too. */
static void tell_seen(const struct bench_result *result, const struct bench_set *set, char *text, size_t room)
{
    double most = 0;

    for (int node = 0; node < result->node_count; node++)
        if (set->busy[node].seconds >= LEAST_S && set->busy[node].cpus > 0 &&
            set->busy[node].busy / set->busy[node].cpus > most)
            most = set->busy[node].busy / set->busy[node].cpus;
    if (!was_looked_at(result, set))
        snprintf(text, room, "not known: it was measured for less than %.1f s", LEAST_S);
    else
        snprintf(text, room, "not seen: the processors were busy to %.0f %%%s", 100 * most,
                 result->node_count == 2 && bench_line_rate(result, &bench_ways[0]) > 0
                     ? ", the rails were not full"
                     : ", the rails' line rate is not known");
}

static bool one_in_flight(const struct bench_result *result, const struct bench_set *set)
{
    for (size_t i = 0; i < result->sample_count; i++)
        if (bench_sample_in_set(&result->samples[i], set))
            return result->samples[i].inflight == 1 && set->mode == BENCH_ISOLATED;
    return false;
}

char *bench_limit_text(const struct bench_result *result, const struct bench_set *set, double *room_for_samples,
                       char *text, size_t room)
{
    if (find_rails(result, set, room_for_samples, text, room) || find_memory(result, set, text, room) ||
        find_processors(result, set, text, room))
        return text;
    if (was_looked_at(result, set) && one_in_flight(result, set))
        snprintf(text, room, "one message in flight: each waits for the one before it (see --inflight)");
    else
        tell_seen(result, set, text, room);
    return text;
}
