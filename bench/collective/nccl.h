/*
 * nccl.h: NCCL as a backend of ranks/rank.h. Its ranks meet, wait and tell each other numbers through a group of Weft;
 * what is measured is NCCL's alone.
 */
#ifndef WF_BENCH_COLLECTIVE_NCCL_H
#define WF_BENCH_COLLECTIVE_NCCL_H

#include "bench/collective/ranks/rank.h"
#include "member.h"

/* Makes of Weft's backend, on GPU memory, NCCL's. `member` is what Weft's open() fills. */
void coll_nccl_over(struct rank_backend *backend, const struct coll_membership *member,
                    const struct bench_options *options);

#endif
