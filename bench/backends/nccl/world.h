/*
 * world.h: the conditions under which NCCL works here: what both nodes know of each other, and what was set
 * (variables.h).
 */
#ifndef WF_BENCH_NCCL_WORLD_H
#define WF_BENCH_NCCL_WORLD_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "bench/machine/mps.h"
#include "bench/nodes/control.h"
#include "bench/nodes/link.h"
#include "bench/plan/schedule.h"
#include "library.h"
#include "ranks.h"
#include "variables.h"

/* What both nodes know once they have told each other. Owner: the measuring thread. */
struct nccl_world {
    nccl_id id; /* made by node0 */
    bool one_machine;
    uint32_t shared_gpus; /* GPUs that ranks of both nodes are on */
    enum bench_mps mps[2];
    char mps_folder[256]; /* here */
    struct nccl_variables variables;
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
