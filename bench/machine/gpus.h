/*
 * gpus.h: what the messages of this node lie in, and which GPUs its endpoints are. Endpoints take the GPUs in turn:
 *
 *     GPU of endpoint e = gpus[e mod count]
 */
#ifndef WF_BENCH_GPUS_H
#define WF_BENCH_GPUS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "bench/plan/options.h"
#include "bench/plan/schedule.h"
#include "weft.h"

#define BENCH_GPUS_MAX 64
#define BENCH_NO_NODE (-1) /* of no run: this machine is asked about */

/* All zero: host memory. Owner: the measuring thread. */
struct bench_gpus {
    enum bench_memory memory;
    uint32_t count; /* 0: host memory */
    struct weft_gpu_info infos[BENCH_GPUS_MAX];
    uint64_t staging_bytes; /* host memory that the library takes for each of them */
    char fallback[300];     /* why there is no GPU memory although there is a driver; "": nothing to tell */
};

/*
 * By the settings cuda, memory and gpus, and by what src and dst of one pair name at `node` (or BENCH_NO_NODE). Loads
 * the driver where GPU memory may be meant, which takes up to a second; makes no GPU ready. -EOPNOTSUPP: GPU memory was
 * asked for and there is none (the reason is in the text); -EINVAL: a GPU that is not there, or words that contradict
 * each other.
 */
int bench_gpus_choose(struct bench_gpus *gpus, const struct bench_options *options, int node, struct wf_status *status);

/* All GPUs of this machine, as the driver counts them: how many, `memory` being their kind; or -ENODEV and why there
 * are none. */
int bench_gpus_find(struct weft_gpu_info *infos, int max, enum bench_memory *memory, struct wf_status *status);

/* Whether a dma-buf of a GPU's memory can be had, so that network cards could write to it. */
struct bench_gpu_export {
    bool able;
    char why[160]; /* it cannot; "": it can */
};

/* Asks for each GPU, as the driver counts them. How many; or -ENODEV. */
int bench_gpus_exports(struct bench_gpu_export *exports, int max, struct wf_status *status);

/* The GPU of an endpoint; NULL: it is in host memory. */
const struct weft_gpu_info *bench_gpu_of(const struct bench_gpus *gpus, uint32_t endpoint);

/* "4 endpoints on 1 GPU" and the like; empty where every endpoint is the GPU of its number. Returns `buffer`. */
char *bench_gpus_sharing(const struct bench_gpus *gpus, uint32_t endpoints, char *buffer, size_t room);

/* As they stand in `host` of a result, `endpoints` being those of the node; a new reference. */
json_t *bench_gpus_to_json(const struct bench_gpus *gpus, uint32_t endpoints);

/* Temperature, clocks, power and what holds them back, of each GPU of these endpoints as far as NVML tells: takes some
 * ms; a new reference. And where it goes in the node's entry in `host` of a result: `when` is "before" or "after". */
json_t *bench_gpu_states(const struct bench_gpus *gpus, uint32_t endpoints);
void bench_gpu_states_into(json_t *host, const json_t *states, const char *when);

/* Picks from `all` what a list like "0,2,5-7" names, by index and in its order; "" and "all" are every one. Returns how
 * many, or -EINVAL. */
int bench_gpus_pick(const char *list, const struct weft_gpu_info *all, int count, struct weft_gpu_info *picked,
                    struct wf_status *status);

#endif
