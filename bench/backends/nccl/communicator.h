/*
 * communicator.h: this process as one rank of NCCL's, with one GPU: its collectives.
 *
 *     open, then again and again: join, any number of runs, leave; at last close
 *
 * What waits for other ranks has a limit. After a failure a communicator is not used again: leave() aborts it, so that
 * no kernel is left that waits.
 */
#ifndef WF_BENCH_NCCL_COMMUNICATOR_H
#define WF_BENCH_NCCL_COMMUNICATOR_H

#include "base/status.h"
#include "bench/collective/ranks/rank.h"

#define NCCL_COMMUNICATOR_ID_BYTES 128

struct nccl_communicator;

/* Loads NCCL (`where` as in library.h) and the driver, and makes GPU number `gpu` ready. Nothing is left on failure. */
int nccl_communicator_open(const char *where, int gpu, struct nccl_communicator **out, struct wf_status *status);
void nccl_communicator_close(struct nccl_communicator *communicator); /* NULL is fine */

/* What all ranks have to know of rank 0's. */
int nccl_communicator_id(struct nccl_communicator *communicator, unsigned char id[NCCL_COMMUNICATOR_ID_BYTES],
                         struct wf_status *status);
int nccl_communicator_join(struct nccl_communicator *communicator, const unsigned char id[NCCL_COMMUNICATOR_ID_BYTES],
                           uint32_t rank, uint32_t ranks, int timeout_ms, struct wf_status *status);
void nccl_communicator_leave(struct nccl_communicator *communicator);

/* Why NCCL does not have this; NULL: it has it. */
const char *nccl_communicator_lacks(const struct rank_call *call);

/* Until it is complete at this rank. -ETIMEDOUT, or -EIO with NCCL's words. */
int nccl_communicator_run(struct nccl_communicator *communicator, const struct rank_call *call, int timeout_ms,
                          struct wf_status *status);

/* "2.28.9", and the file it came from. */
const char *nccl_communicator_version(const struct nccl_communicator *communicator);
const char *nccl_communicator_path(const struct nccl_communicator *communicator);

#endif
