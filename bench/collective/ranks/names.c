/* What operations, types and reductions are called. */
#include <string.h>

#include "rank.h"

static const char *const ops[RANK_OPS] = {
    [BENCH_ALL_REDUCE] = "all_reduce", [BENCH_ALL_GATHER] = "all_gather", [BENCH_REDUCE_SCATTER] = "reduce_scatter",
    [BENCH_BROADCAST] = "broadcast",   [BENCH_ALL_TO_ALL] = "alltoall",   [BENCH_SEND_RECEIVE] = "sendrecv",
};

static const struct {
    const char *name, *in_nccl_tests;
    uint64_t bytes;
} types[RANK_TYPES] = {
    [RANK_FLOAT64] = {"float64", "double", 8}, [RANK_FLOAT32] = {"float32", "float", 4},
    [RANK_FLOAT16] = {"float16", "half", 2},   [RANK_BFLOAT16] = {"bfloat16", "bfloat16", 2},
    [RANK_INT32] = {"int32", "int32", 4},      [RANK_INT64] = {"int64", "int64", 8},
    [RANK_UINT8] = {"uint8", "uint8", 1},
};

static const char *const redops[RANK_REDOPS] = {"sum", "min", "max", "avg"};

const char *rank_op_name(enum bench_collective op)
{
    return ops[op];
}

const char *rank_type_name(enum rank_type type)
{
    return types[type].name;
}

const char *rank_redop_name(enum rank_redop redop)
{
    return redops[redop];
}

static int find(const char *const *names, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

int rank_op_find(const char *name)
{
    return find(ops, RANK_OPS, name);
}

int rank_type_find(const char *name)
{
    for (int i = 0; i < RANK_TYPES; i++)
        if (strcmp(types[i].name, name) == 0 || strcmp(types[i].in_nccl_tests, name) == 0)
            return i;
    return -1;
}

int rank_redop_find(const char *name)
{
    return find(redops, RANK_REDOPS, name);
}

uint64_t rank_type_bytes(enum rank_type type)
{
    return types[type].bytes;
}

bool rank_op_reduces(enum bench_collective op)
{
    return op == BENCH_ALL_REDUCE || op == BENCH_REDUCE_SCATTER;
}
