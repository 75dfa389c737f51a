#include "names.h"

#include <stdio.h>
#include <string.h>

static const char *const memory_names[] = {
    [BENCH_HOST] = "host", [BENCH_CUDA] = "cuda", [BENCH_EMULATED] = "cuda (emulated)"};

const char *bench_memory_name(enum bench_memory memory)
{
    return memory_names[memory];
}

enum bench_memory bench_memory_named(const char *name)
{
    int memory = 0;

    while (memory < BENCH_MEMORIES && strcmp(memory_names[memory], name) != 0)
        memory++;
    return (enum bench_memory)memory;
}

char *bench_endpoint_name(int node, uint32_t endpoint, enum bench_memory memory, char *buffer, size_t room)
{
    snprintf(buffer, room, "node%d:%s%u", node, memory == BENCH_HOST ? "host" : "gpu", endpoint);
    return buffer;
}

char *bench_src_name(const struct bench_pair *pair, char *buffer, size_t room)
{
    return bench_endpoint_name(pair->src_node, pair->src, (enum bench_memory)pair->src_memory, buffer, room);
}

char *bench_dst_name(const struct bench_pair *pair, char *buffer, size_t room)
{
    return bench_endpoint_name(pair->dst_node, pair->dst, (enum bench_memory)pair->dst_memory, buffer, room);
}

char *bench_both_memories(enum bench_memory one, enum bench_memory other, char *buffer, size_t room)
{
    if (one == other)
        snprintf(buffer, room, "%s", memory_names[one]);
    else
        snprintf(buffer, room, "%s/%s", memory_names[one], memory_names[other]);
    return buffer;
}

bool bench_plan_emulated(const struct bench_plan *plan)
{
    for (int node = 0; node < plan->node_count; node++)
        if (plan->nodes[node].memory == BENCH_EMULATED)
            return true;
    return false;
}
