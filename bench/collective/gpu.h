/*
 * gpu.h: the memory of a rank on a GPU. The ranks of a host take its GPUs in turn:
 *
 *     GPU of a rank = gpus[local rank mod count], by the settings memory and gpus
 */
#ifndef WF_BENCH_COLLECTIVE_GPU_H
#define WF_BENCH_COLLECTIVE_GPU_H

#include <stdbool.h>
#include <stdint.h>

#include "member.h"

/* Whether there is a GPU at all: before a group is made, which waits for other ranks. -EOPNOTSUPP: none. */
int coll_gpu_find(const struct bench_options *options, struct wf_status *status);

/* "cuda", or "cuda (emulated)" with the driver of the tests. */
const char *coll_gpu_memory(void);

/* Once there is a group: chooses this rank's. All ranks call. Its number, and whether another rank has it, too. */
int coll_gpu_choose(const struct coll_membership *member, int timeout_ms, int *gpu, bool *shared,
                    struct wf_status *status);

/* For struct rank_backend: memory of the chosen GPU. */
int coll_gpu_take(uint64_t bytes, void **out, struct wf_status *status);
void coll_gpu_give(void *memory);
int coll_gpu_copy(void *to, const void *from, uint64_t bytes, struct wf_status *status);

#endif
