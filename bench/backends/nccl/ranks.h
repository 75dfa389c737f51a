/*
 * ranks.h: who is a rank of NCCL's.
 *
 * A rank is a GPU of a node that some pair of the plan uses: node0's GPUs first, each in the order of its endpoints.
 * Where every endpoint has a GPU of its own and all are used, that is
 *
 *     rank = node x endpoints + endpoint
 *
 * Endpoints that share a GPU share its rank: NCCL takes no GPU twice in a process.
 */
#ifndef WF_BENCH_NCCL_RANKS_H
#define WF_BENCH_NCCL_RANKS_H

#include <stdint.h>

#include "base/status.h"
#include "bench/machine/gpus.h"
#include "bench/plan/schedule.h"

#define NCCL_NO_RANK UINT32_MAX
#define NCCL_RANKS_MAX (2 * BENCH_GPUS_MAX)

/* The ranks of a plan: the same at both nodes, from the plan alone. */
struct nccl_ranks {
    uint32_t count;
    uint32_t first[2];              /* the first one of a node, */
    uint32_t own[2];                /* and how many there are of it */
    uint32_t of[2][BENCH_GPUS_MAX]; /* rank of a GPU, by its place among those of the node; NCCL_NO_RANK */
    uint32_t place[NCCL_RANKS_MAX]; /* the other way round */
};

/* -EOPNOTSUPP: a node's messages are in host memory. */
int nccl_ranks_of(const struct bench_plan *plan, struct nccl_ranks *ranks, struct wf_status *status);
uint32_t nccl_rank_of(const struct nccl_ranks *ranks, const struct bench_plan *plan, int node, uint32_t endpoint);

#endif
