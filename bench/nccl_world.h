/*
 * nccl_world.h: who is a rank of NCCL's, and under which conditions NCCL works here.
 *
 * A rank is a GPU of a node that some pair of the plan uses: node0's GPUs first, each in the order of its endpoints.
 * Where every endpoint has a GPU of its own and all are used, that is
 *
 *     rank = node x endpoints + endpoint
 *
 * Endpoints that share a GPU share its rank: NCCL takes no GPU twice in a process.
 *
 * What a user has set of NCCL's variables stays; what nobody has set is set so that NCCL is measured on the same rails
 * as Weft: over sockets on their interfaces, also where both nodes are one machine.
 */
#ifndef WF_BENCH_NCCL_WORLD_H
#define WF_BENCH_NCCL_WORLD_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "control.h"
#include "link.h"
#include "mps.h"
#include "nccl_library.h"
#include "schedule.h"

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

/* What both nodes know once they have told each other. Owner: the measuring thread. */
struct nccl_world {
    nccl_id id; /* made by node0 */
    bool one_machine;
    uint32_t shared_gpus; /* GPUs that ranks of both nodes are on */
    enum bench_mps mps[2];
    char mps_folder[256];  /* here */
    char set_by_us[8][64]; /* NCCL_NET=Socket and the like */
    int set_count;
};

/*
 * Tells the other node and hears from it; sets the variables that are still free; makes the id. Before anything else is
 * asked of the library. -EPROTO: two versions of NCCL, or a stand-in with a real one; -EINVAL: one node works through
 * MPS and the other does not.
 */
int nccl_world_join(struct nccl_world *world, const struct nccl_library *library, const struct bench_link *link,
                    const struct nccl_ranks *ranks, struct bench_control *control, struct wf_status *status);

/* Ranks share a GPU and their kernels take turns: no figure can be compared. */
static inline bool nccl_world_time_sliced(const struct nccl_world *world)
{
    return world->shared_gpus && world->mps[0] != BENCH_MPS_ON;
}

/* What was in force, for the node's entry in a result; a new reference. */
json_t *nccl_world_to_json(const struct nccl_world *world, const struct nccl_library *library, int node);

#endif
