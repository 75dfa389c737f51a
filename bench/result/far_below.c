#include "far_below.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "bench/backends/backend.h"
#include "bench/words/heard.h"

#define TIMES 10                 /* so far below */
#define ENOUGH (16u << 20)       /* bytes in flight that fill any rail */
#define ALONE 0.9                /* of all bytes: one rail carries them */
#define SMALL_MTU 1500           /* Ethernet's own */
#define FAST_MBIT INT64_C(10000) /* from here on small packets cost more than a processor has */

/* Sentences one after the other. */
struct causes {
    char *text;
    size_t used, room;
};

static void add(struct causes *causes, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(struct causes *causes, const char *format, ...)
{
    va_list arguments;

    if (causes->used + 2 >= causes->room)
        return;
    if (causes->used)
        causes->used += (size_t)snprintf(causes->text + causes->used, causes->room - causes->used, "; ");
    va_start(arguments, format);
    int length = vsnprintf(causes->text + causes->used, causes->room - causes->used, format, arguments);
    va_end(arguments);
    causes->used += (size_t)length < causes->room - causes->used ? (size_t)length : causes->room - causes->used - 1;
}

static int64_t number_of(const json_t *rail, const char *name)
{
    return (int64_t)json_integer_value(json_object_get(rail, name));
}

/* One interface of several. */
static void find_alone(const json_t *rails, int node, struct causes *causes)
{
    const json_t *rail, *most = NULL;
    int64_t all = 0;
    size_t i;

    json_array_foreach(rails, i, rail)
    {
        all += number_of(rail, "bytes");
        if (!most || number_of(rail, "bytes") > number_of(most, "bytes"))
            most = rail;
    }
    if (json_array_size(rails) > 1 && all > 0 && (double)number_of(most, "bytes") > ALONE * (double)all)
        add(causes, "one interface of %zu carries nearly everything (%s of node%d)", json_array_size(rails),
            bench_heard_text(most, "name"), node);
}

static void find_small_mtu(const json_t *rails, int node, struct causes *causes)
{
    const json_t *rail;
    size_t i;

    json_array_foreach(rails, i, rail) if (number_of(rail, "mtu") > 0 && number_of(rail, "mtu") <= SMALL_MTU &&
                                           number_of(rail, "speed_mbit") >= FAST_MBIT)
    {
        add(causes, "the MTU of %s of node%d is %" PRId64 ": 9000 makes packets six times fewer",
            bench_heard_text(rail, "name"), node, number_of(rail, "mtu"));
        return;
    }
}

/* The library says of staging memory that it is not pinned, where it is not. */
static void find_unpinned(const json_t *lines, int node, struct causes *causes)
{
    const json_t *line;
    size_t i;

    json_array_foreach(lines, i, line) if (json_is_string(line) && strstr(json_string_value(line), "is not pinned"))
    {
        add(causes, "staging memory of node%d is not pinned", node);
        return;
    }
}

/* Bytes that were on their way at a time. */
static uint64_t in_flight(const struct bench_result *result, const struct bench_set *set)
{
    for (size_t i = 0; i < result->sample_count; i++)
        if (bench_sample_in_set(&result->samples[i], set))
            return set->size * result->samples[i].inflight *
                   (set->mode == BENCH_LOADED && result->plan->pair_count ? result->plan->pair_count : 1);
    return 0;
}

char *bench_far_below_text(const struct bench_result *result, const struct bench_set *set, const struct bench_way *way,
                           double rate, double line, char *text, size_t room)
{
    struct causes causes = {text, 0, room};
    const int nodes[2] = {way->src_node, way->dst_node};

    text[0] = '\0';
    if (line <= 0 || rate < 0 || rate * TIMES >= line || in_flight(result, set) < ENOUGH)
        return text;
    if (strcmp(set->backend->name, "nccl") == 0)
        add(&causes, "NCCL may have taken another interface or its plain sockets: NCCL_DEBUG=INFO says which (NET/)");
    for (int i = 0; i < 2; i++) {
        find_alone(result->rail_totals[nodes[i]], nodes[i], &causes);
        find_small_mtu(result->rail_totals[nodes[i]], nodes[i], &causes);
        find_unpinned(result->fallbacks[nodes[i]], nodes[i], &causes);
    }
    if (causes.used == 0)
        add(&causes, "none of the usual causes is seen from here; is the cable or switch slower than the card, or the "
                     "interface a wrong one (weft topo)?");
    return text;
}
