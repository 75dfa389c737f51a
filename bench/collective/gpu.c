#include "gpu.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/machine/gpus.h"
#include "bench/machine/memory_limits.h"
#include "bench/nodes/link.h"
#include "bench/plan/names.h"

#define NUMBER_BITS 53 /* that a double has without rounding */

/* Of this process, which is one rank and then ends. */
static struct {
    struct bench_gpus gpus;
    struct weft_context *context;
    int number;
} own;

int coll_gpu_find(const struct bench_options *options, struct wf_status *status)
{
    int result = bench_gpus_choose(&own.gpus, options, BENCH_NO_NODE, status);

    if (result == 0 && own.gpus.count == 0)
        result = wf_fail(status, -EOPNOTSUPP, "no GPU memory here");
    return result;
}

const char *coll_gpu_memory(void)
{
    return bench_memory_name(own.gpus.memory);
}

/* A number that no other GPU of no other machine has, as far as chance allows. */
static double identity(const struct weft_gpu_info *gpu)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    char text[128], boot[64];

    bench_boot_id(boot, sizeof boot);
    snprintf(text, sizeof text, "%s %s", boot, gpu->pci);
    for (const char *at = text; *at; at++)
        hash = (hash ^ (unsigned char)*at) * UINT64_C(1099511628211);
    return (double)(hash >> (64 - NUMBER_BITS));
}

int coll_gpu_choose(const struct coll_membership *member, int timeout_ms, int *gpu, bool *shared,
                    struct wf_status *status)
{
    uint32_t ranks = weft_group_size(member->group), alike = 0;
    const struct weft_gpu_info *info = &own.gpus.infos[weft_group_local_rank(member->group) % own.gpus.count];
    double mine = identity(info), *all = calloc(ranks, sizeof *all);
    struct weft_error err = {0};

    if (!all)
        return wf_fail(status, -ENOMEM, "no memory for %u ranks", ranks);
    own.context = member->context;
    *gpu = own.number = info->index;
    int result = weft_group_all_gather(member->group, &mine, all, 1, WEFT_FLOAT64, timeout_ms, &err);
    for (uint32_t i = 0; result == 0 && i < ranks; i++)
        alike += all[i] == mine;
    free(all);
    *shared = alike > 1;
    return result ? bench_weft_failed(status, &err, NULL) : 0;
}

int coll_gpu_take(uint64_t bytes, void **out, struct wf_status *status)
{
    struct weft_error err = {0};

    return weft_gpu_alloc(own.context, own.number, bytes, out, &err) == 0 ? 0 : bench_weft_failed(status, &err, NULL);
}

void coll_gpu_give(void *memory)
{
    weft_gpu_free(own.context, own.number, memory);
}

int coll_gpu_copy(void *to, const void *from, uint64_t bytes, struct wf_status *status)
{
    struct weft_error err = {0};

    return bytes == 0 || weft_gpu_copy(own.context, to, from, bytes, &err) == 0 ? 0
                                                                                : bench_weft_failed(status, &err, NULL);
}
