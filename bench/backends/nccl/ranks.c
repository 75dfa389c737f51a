#include "ranks.h"

#include <errno.h>
#include <string.h>

static void use_endpoint(const struct bench_plan *plan, struct nccl_ranks *ranks, int node, uint32_t endpoint)
{
    ranks->of[node][endpoint % plan->nodes[node].gpus] = 0;
}

int nccl_ranks_of(const struct bench_plan *plan, struct nccl_ranks *ranks, struct wf_status *status)
{
    memset(ranks, 0, sizeof *ranks);
    memset(ranks->of, 0xff, sizeof ranks->of);
    for (int node = 0; node < 2; node++)
        if (plan->nodes[node].gpus == 0 || plan->nodes[node].gpus > BENCH_GPUS_MAX)
            return wf_fail(status, -EOPNOTSUPP,
                           "--backend nccl: NCCL moves GPU memory only, and node%d's messages lie in host memory: use "
                           "--memory cuda, where there is a GPU",
                           node);
    for (uint32_t i = 0; i < plan->pair_count; i++) {
        use_endpoint(plan, ranks, plan->pairs[i].src_node, plan->pairs[i].src);
        use_endpoint(plan, ranks, plan->pairs[i].dst_node, plan->pairs[i].dst);
    }
    for (int node = 0; node < 2; node++) {
        ranks->first[node] = ranks->count;
        for (uint32_t place = 0; place < plan->nodes[node].gpus; place++) {
            if (ranks->of[node][place] == NCCL_NO_RANK)
                continue;
            ranks->place[ranks->count] = place;
            ranks->of[node][place] = ranks->count++;
            ranks->own[node]++;
        }
    }
    return 0;
}

uint32_t nccl_rank_of(const struct nccl_ranks *ranks, const struct bench_plan *plan, int node, uint32_t endpoint)
{
    return ranks->of[node][endpoint % plan->nodes[node].gpus];
}
