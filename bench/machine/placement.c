#include "placement.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "affinity/machine.h"
#include "affinity/pin.h"
#include "base/status.h"
#include "bench/words/heard.h"

#define PAGE 4096
#define THREADS_MAX 64
#define RAILS_MAX 64

static bool knows(const struct bench_placement *placement, int node)
{
    for (int i = 0; i < placement->node_count; i++)
        if (placement->nodes[i] == node)
            return true;
    return false;
}

static int ascending(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static void find_nodes(struct bench_placement *placement, const struct weft_context *context)
{
    struct weft_rail_info rails[RAILS_MAX];
    int count = weft_context_rails(context, rails, RAILS_MAX);

    for (int i = 0; i < count && i < RAILS_MAX; i++)
        if (rails[i].numa_node >= 0 && !knows(placement, rails[i].numa_node))
            placement->nodes[placement->node_count++] = rails[i].numa_node;
    qsort(placement->nodes, (size_t)placement->node_count, sizeof placement->nodes[0], ascending);
}

int bench_placement_init(struct bench_placement *placement, const struct wf_config *config,
                         const struct weft_context *context, uint32_t endpoints)
{
    const char *pin = wf_config_text(config, WF_SET_PIN);

    placement->rail_policy = wf_config_text(config, WF_SET_RAIL_POLICY);
    if (strcmp(pin, "off") != 0)
        find_nodes(placement, context);
    if (placement->node_count > 1) {
        placement->endpoints = calloc(endpoints ? endpoints : 1, sizeof *placement->endpoints);
        if (!placement->endpoints)
            return -ENOMEM;
        placement->endpoint_count = endpoints;
    }
    placement->pin = pin;
    return 0;
}

void bench_placement_fini(struct bench_placement *placement)
{
    free(placement->endpoints);
    placement->endpoints = NULL;
    placement->endpoint_count = 0;
}

int bench_placement_node(const struct bench_placement *placement, uint32_t endpoint)
{
    return endpoint < placement->endpoint_count ? placement->nodes[endpoint % (uint32_t)placement->node_count]
                                                : BENCH_ANY_NODE;
}

/* Pages come anew where the policy says: of a huge page that is needed in part, nothing would be moved. */
static void touch_anew(void *memory, uint64_t bytes)
{
    volatile uint8_t *at = memory;

    madvise(memory, bytes, MADV_DONTNEED);
    for (uint64_t i = 0; i < bytes; i += PAGE)
        at[i] = 0;
}

void bench_placement_put(struct bench_placement *placement, uint32_t endpoint, void *memory, uint64_t bytes)
{
    int node = bench_placement_node(placement, endpoint), counts[WF_NODES_MAX] = {0};

    if (node == BENCH_ANY_NODE || bytes == 0)
        return;
    struct bench_placed *placed = &placement->endpoints[endpoint];
    char why[160];
    placed->refusal = wf_place_memory(memory, bytes, node, why, sizeof why);
    touch_anew(memory, bytes);
    int looked = wf_place_where(memory, bytes, counts, WF_NODES_MAX);
    placed->looked = looked > 0 ? looked : 0;
    placed->there = looked < 0 ? looked : node < WF_NODES_MAX ? counts[node] : 0;
}

/* --- for results --- */

static json_t *node_or_null(int node)
{
    return node >= 0 ? json_integer(node) : json_null();
}

static json_t *text_or_null(const char *text)
{
    return text[0] ? json_string(text) : json_null();
}

static json_t *threads_to_json(const struct weft_context *context)
{
    struct weft_thread_info threads[THREADS_MAX];
    int count = weft_context_threads(context, threads, THREADS_MAX);
    json_t *all = json_array();

    for (int i = 0; i < count && i < THREADS_MAX; i++)
        json_array_append_new(
            all, json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o}", "name", threads[i].name, "role", threads[i].role,
                           "rail", text_or_null(threads[i].rail), "planned_cpus", text_or_null(threads[i].planned),
                           "allowed_cpus", text_or_null(threads[i].allowed), "last_cpu",
                           node_or_null(threads[i].last_cpu), "numa_node", node_or_null(threads[i].numa_node)));
    return all;
}

static json_t *rails_to_json(const struct weft_context *context)
{
    struct weft_rail_info rails[RAILS_MAX];
    int count = weft_context_rails(context, rails, RAILS_MAX);
    json_t *all = json_array();

    for (int i = 0; i < count && i < RAILS_MAX; i++)
        json_array_append_new(all, json_pack("{s:o, s:o}", "rail", bench_heard_string(rails[i].name), "numa_node",
                                             node_or_null(rails[i].numa_node)));
    return all;
}

static json_t *endpoints_to_json(const struct bench_placement *placement)
{
    json_t *all = json_array();

    for (uint32_t i = 0; i < placement->endpoint_count; i++) {
        struct bench_placed *placed = &placement->endpoints[i];
        json_array_append_new(all,
                              json_pack("{s:o, s:i, s:i, s:o, s:o}", "endpoint", json_sprintf("host%u", i), "numa_node",
                                        bench_placement_node(placement, i), "pages_seen", placed->looked, "pages_there",
                                        placed->there >= 0 ? json_integer(placed->there) : json_null(), "refusal",
                                        text_or_null(placed->refusal < 0 ? wf_strerror(placed->refusal) : "")));
    }
    return all;
}

json_t *bench_placement_to_json(const struct bench_placement *placement, const struct weft_context *context)
{
    const char *pin = placement->pin;

    if (!context || !pin)
        return json_null();
    return json_pack("{s:s, s:s, s:o, s:o, s:o}", "pin", pin, "rail_policy", placement->rail_policy, "threads",
                     threads_to_json(context), "rails", rails_to_json(context), "endpoints",
                     endpoints_to_json(placement));
}
