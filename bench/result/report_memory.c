#include "report_memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "bench/words/columns.h"
#include "bench/words/heard.h"
#include "bench/words/words.h"

static char *bytes_of(const json_t *object, const char *name, char text[32])
{
    const json_t *bytes = json_object_get(object, name);

    if (!json_is_integer(bytes) || json_integer_value(bytes) < 0)
        return strcpy(text, "?");
    return bench_human_bytes((uint64_t)json_integer_value(bytes), text, 32);
}

static void print_growth(const json_t *one, int node, int columns, FILE *out)
{
    char first[32], last[32];
    double minute = json_number_value(json_object_get(one, "bytes_per_min"));

    bench_wrapped(out, columns, 2,
                  "WARNING: memory of node%d grows: %s from %s to %s, by %.1f KiB a minute over %.0f s", node,
                  bench_heard_text(one, "what"), bytes_of(one, "first_bytes", first), bytes_of(one, "last_bytes", last),
                  minute / 1024, json_number_value(json_object_get(one, "judged_s")));
}

static void print_block(const json_t *block, int node, int columns, FILE *out)
{
    char before[32], after[32];

    bench_wrapped(out, columns, 2, "node%d gpu%d: largest free block %s before, %s after", node,
                  (int)json_integer_value(json_object_get(block, "gpu")), bytes_of(block, "before_bytes", before),
                  bytes_of(block, "after_bytes", after));
}

static void print_node(const json_t *watch, int node, int columns, FILE *out)
{
    char text[1024], last[32];
    const json_t *one;
    size_t i, used = (size_t)snprintf(text, sizeof text, "memory watched at node%d:", node);

    json_array_foreach(json_object_get(watch, "series"), i, one)
    {
        if (!json_is_integer(json_object_get(one, "last_bytes")))
            continue;
        bool unknown = strcmp(bench_heard_text(one, "verdict"), "unknown") == 0;
        if (used < sizeof text)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s %s %s (%s)", i ? "," : "",
                                     bench_heard_text(one, "what"), bytes_of(one, "last_bytes", last),
                                     unknown ? "too short to judge" : bench_heard_text(one, "verdict"));
    }
    bench_wrapped(out, columns, 2, "%s", text);
    json_array_foreach(json_object_get(watch, "largest_free_block"), i, one) print_block(one, node, columns, out);
    json_array_foreach(json_object_get(watch, "series"), i,
                       one) if (strcmp(bench_heard_text(one, "verdict"), "grows") == 0)
        print_growth(one, node, columns, out);
}

void bench_report_memory(const struct bench_result *result, int columns, FILE *out)
{
    for (int node = 0; node < result->node_count; node++) {
        const json_t *watch = json_object_get(result->host[node], "memory_watch");
        if (json_is_object(watch))
            print_node(watch, node, columns, out);
    }
}
