#include "cause.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/histogram.h"

#define TIMES 2  /* as often as among the others, */
#define CHANCE 3 /* and by more than this: a few are chance */

/* Facts in the order in which they were added. Owner: bench_cause_of(). */
struct facts {
    char *text;
    size_t used, room;
};

static void add(struct facts *facts, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct facts *facts, const char *format, ...)
{
    const char *between = facts->used ? "; " : "";
    char fact[256];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(fact, sizeof fact, format, arguments);
    va_end(arguments);
    if (strlen(between) + strlen(fact) < facts->room - facts->used)
        facts->used += (size_t)sprintf(facts->text + facts->used, "%s%s", between, fact);
}

/* The node that it is about; BENCH_EVERY_NODE: of a link, or of a rail everywhere, it is none. */
static size_t node_of(const struct bench_slow *slow)
{
    return slow->odd.kind == BENCH_ODD_PAIR       ? BENCH_EVERY_NODE
           : slow->odd.kind == BENCH_ODD_RECEIVER ? slow->odd.dst
                                                  : slow->odd.src;
}

static double number_of(const json_t *object, const char *name)
{
    return json_number_value(json_object_get(object, name));
}

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));

    return text ? text : "";
}

static bool is_named(const json_t *object, size_t node)
{
    char name[32];

    snprintf(name, sizeof name, "node%zu", node);
    return strcmp(text_of(object, "node"), name) == 0;
}

/* --- what was measured --- */

static bool is_own(const struct bench_slow *slow, const struct bench_reading *reading)
{
    const struct bench_odd *odd = &slow->odd;

    return odd->kind == BENCH_ODD_NODE       ? reading->src_node == odd->src || reading->dst_node == odd->src
           : odd->kind == BENCH_ODD_SENDER   ? reading->src_node == odd->src
           : odd->kind == BENCH_ODD_RECEIVER ? reading->dst_node == odd->dst
                                             : reading->src_node == odd->src && reading->dst_node == odd->dst;
}

static void look_at_counts(struct facts *facts, const struct bench_known *known, const struct bench_slow *slow)
{
    double failures[2] = {0}, retransmits[2] = {0}, count[2] = {0};

    for (size_t i = 0; i < known->readings->count; i++) {
        const struct bench_reading *reading = &known->readings->list[i];
        bool own = is_own(slow, reading);
        failures[own] += reading->failures;
        retransmits[own] += reading->retransmits;
        count[own]++;
    }
    double share = count[0] > 0 ? TIMES * count[1] / count[0] : 0;
    if (failures[1] > share * failures[0])
        add(facts, "%.0f connections were lost meanwhile", failures[1]);
    if (retransmits[1] > share * retransmits[0] + CHANCE)
        add(facts, "TCP sent %.0f segments again meanwhile", retransmits[1]);
}

static void look_at_slow_rails(struct facts *facts, const struct bench_known *known, const struct bench_slow *slow)
{
    for (size_t i = 0; i < known->slow_count; i++) {
        struct bench_slow rail = known->slow[i];
        if (rail.rail == BENCH_EVERY_RAIL || rail.odd.src == BENCH_EVERY_NODE)
            continue;
        const char *name = known->names[rail.rail], *how = bench_slow_nothing(&rail) ? "carries nothing" : "is slow";
        rail.rail = BENCH_EVERY_RAIL; /* where it is */
        if (bench_slow_within(&rail, slow) || bench_slow_within(slow, &rail))
            add(facts, "its rail %.64s %s", name, how);
    }
}

/* Rails that brought a node something, as its receiver counts them. */
static void look_at_rail_counts(struct facts *facts, const struct bench_known *known, size_t node)
{
    uint32_t nodes = known->readings->nodes;
    double *counts = calloc(2 * (size_t)nodes + 1, sizeof *counts), *sorted = counts + nodes;

    for (size_t i = 0; counts && i < known->readings->count; i++) {
        const struct bench_reading *reading = &known->readings->list[i];
        if (reading->dst_node < nodes && reading->carried_count > counts[reading->dst_node])
            counts[reading->dst_node] = reading->carried_count;
    }
    if (counts) {
        memcpy(sorted, counts, nodes * sizeof *sorted);
        double usual = wf_median(sorted, nodes);
        if (counts[node] > 0 && counts[node] < usual)
            add(facts, "it has %.0f of the %.0f rails that most have", counts[node], usual);
    }
    free(counts);
}

/* --- what the nodes are --- */

bool bench_is_forced(const char *throttling)
{
    return strstr(throttling, "thermal") || strstr(throttling, "power") || strstr(throttling, "heat") ||
           strstr(throttling, "slowdown");
}

static void look_at_gpus(struct facts *facts, const json_t *host)
{
    static const char *const moments[] = {"before", "after"};
    const json_t *gpu;
    size_t index;

    json_array_foreach(json_object_get(host, "gpus"), index, gpu)
    {
        for (size_t i = sizeof moments / sizeof moments[0]; i-- > 0;) {
            const char *why = text_of(json_object_get(gpu, moments[i]), "throttling");
            if (!bench_is_forced(why))
                continue;
            add(facts, "its GPU %.0f slowed down: %.100s", number_of(gpu, "gpu"), why);
            break;
        }
    }
}

/* Threads of a rail that ran on another NUMA node than the rail is on. */
static size_t far_threads(const json_t *host)
{
    const json_t *affinity = json_object_get(host, "affinity"), *thread, *rail;
    size_t index, at, count = 0;

    json_array_foreach(json_object_get(affinity, "threads"), index, thread)
    {
        json_array_foreach(json_object_get(affinity, "rails"), at, rail)
        {
            bool both = json_is_integer(json_object_get(thread, "numa_node")) &&
                        json_is_integer(json_object_get(rail, "numa_node"));
            const char *name = text_of(thread, "rail");
            count += both && name[0] && strcmp(name, text_of(rail, "rail")) == 0 &&
                     number_of(thread, "numa_node") != number_of(rail, "numa_node");
        }
    }
    return count;
}

static void look_at_cores(struct facts *facts, const json_t *hosts, const json_t *own)
{
    size_t count = json_array_size(hosts), far_others = 0, index;
    double *cpus = calloc(count + 1, sizeof *cpus);
    const json_t *host;

    json_array_foreach(hosts, index, host)
    {
        if (cpus)
            cpus[index] = number_of(host, "cpus");
        if (host != own)
            far_others += far_threads(host);
    }
    double usual = cpus ? wf_median(cpus, count) : 0;
    if (number_of(own, "cpus") > 0 && number_of(own, "cpus") < usual)
        add(facts, "it has %.0f processors, most have %.0f", number_of(own, "cpus"), usual);
    if (far_threads(own) && !far_others)
        add(facts, "threads of its rails ran on another NUMA node than these: %zu", far_threads(own));
    free(cpus);
}

static void look_at_host(struct facts *facts, const struct bench_known *known, size_t node)
{
    const json_t *host;
    size_t index;

    json_array_foreach(known->hosts, index, host)
    {
        if (!is_named(host, node))
            continue;
        look_at_gpus(facts, host);
        look_at_cores(facts, known->hosts, host);
    }
}

/* --- what a rail is --- */

bool bench_rails_compare(const json_t *hosts, bool on_gpus)
{
    const json_t *host;
    size_t index;

    json_array_foreach(hosts, index, host)
    {
        const char *policy = text_of(json_object_get(host, "affinity"), "rail_policy");
        if (strcmp(policy, "near") == 0 || strcmp(policy, "node") == 0 || (strcmp(policy, "auto") == 0 && on_gpus))
            return false;
    }
    return true;
}

static void look_at_rail(struct facts *facts, const struct bench_known *known, const struct bench_slow *slow)
{
    double resent = 0, resent_others = 0, others = 0, speed = 0, fastest = 0;
    const json_t *rail;
    size_t index;

    json_array_foreach(known->rails, index, rail)
    {
        bool same = strcmp(text_of(rail, "name"), known->names[slow->rail]) == 0;
        bool own = same && is_named(rail, node_of(slow));
        resent += own ? number_of(rail, "retransmits") : 0;
        resent_others += own ? 0 : number_of(rail, "retransmits");
        others += !own;
        speed = own ? number_of(rail, "speed_mbit") : speed;
        fastest = same && number_of(rail, "speed_mbit") > fastest ? number_of(rail, "speed_mbit") : fastest;
        if (own && number_of(rail, "failures") > 0)
            add(facts, "it lost %.0f connections", number_of(rail, "failures"));
    }
    if (others > 0 && resent > TIMES * resent_others / others + CHANCE)
        add(facts, "TCP sent %.0f segments again on it", resent);
    if (speed > 0 && speed < fastest)
        add(facts, "its line rate is %.4g Gbit/s, elsewhere %.4g", speed / 1e3, fastest / 1e3);
}

const char *bench_cause_of(const struct bench_known *known, const struct bench_slow *slow, char *text, size_t room)
{
    struct facts facts = {.text = text, .room = room};
    size_t node = node_of(slow);

    text[0] = '\0';
    if (slow->rail != BENCH_EVERY_RAIL) {
        if (node != BENCH_EVERY_NODE)
            look_at_rail(&facts, known, slow);
        return text;
    }
    look_at_slow_rails(&facts, known, slow);
    if (node != BENCH_EVERY_NODE) {
        look_at_rail_counts(&facts, known, node);
        look_at_host(&facts, known, node);
    }
    look_at_counts(&facts, known, slow);
    return text;
}
