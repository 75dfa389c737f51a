/* The communicators of the NCCL backend: one for each GPU of this node, all of them in one world with the other's. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "guard.h"
#include "lanes.h"

#define SLICE_MS 100
#define PATIENCE 4       /* times the connect timeout: NCCL looks at the whole machine, and loads its kernels */
#define END_MS 10000     /* for communicators to be gone */
#define SCRATCH_STEP 16u /* bytes for one message that connects two ranks */

/* --- lanes --- */

static int cuda_start_failed(const struct bench_backend *backend, const struct nccl_lane *lane, wf_cu_result result,
                             struct wf_status *status)
{
    char why[WF_CUDA_ERROR_TEXT];

    return wf_fail(status, -EIO, "GPU %d for NCCL: %s", lane->gpu, wf_cuda_error(&backend->cuda.api, result, why));
}

/* The primary context, which is also Weft's and the one that NCCL works in. */
static wf_cu_result make_ready(const struct wf_cuda_api *cuda, struct nccl_lane *lane)
{
    wf_cu_context ours;
    wf_cu_result result = wf_cuda_context_enter(cuda, lane->gpu, &lane->device, &lane->context);

    if (result != WF_CU_SUCCESS)
        return result;
    result = cuda->cuStreamCreate(&lane->stream, WF_CU_STREAM_NON_BLOCKING);
    for (int i = 0; i < NCCL_LAUNCHES && result == WF_CU_SUCCESS; i++)
        result = cuda->cuEventCreate(&lane->launches[i].event, WF_CU_EVENT_DISABLE_TIMING);
    cuda->cuCtxPopCurrent(&ours);
    return result;
}

static int make_lanes(struct bench_backend *backend, struct wf_status *status)
{
    const struct nccl_ranks *ranks = &backend->ranks;
    int node = backend->link->node;

    backend->lanes = calloc(ranks->own[node], sizeof *backend->lanes);
    if (!backend->lanes)
        return wf_fail(status, -ENOMEM, "no memory for %u ranks of NCCL", ranks->own[node]);
    for (uint32_t i = 0; i < ranks->own[node]; i++) {
        struct nccl_lane *lane = &backend->lanes[backend->lane_count++];
        lane->rank = ranks->first[node] + i;
        lane->gpu = backend->link->gpus.infos[ranks->place[lane->rank]].index;
        wf_cu_result result = make_ready(&backend->cuda.api, lane);
        if (result != WF_CU_SUCCESS)
            return cuda_start_failed(backend, lane, result, status);
    }
    return 0;
}

static void free_lane(struct bench_backend *backend, struct nccl_lane *lane)
{
    const struct wf_cuda_api *cuda = &backend->cuda.api;
    wf_cu_context ours;

    weft_gpu_free(backend->link->context, lane->gpu, lane->scratch);
    if (!lane->context)
        return;
    if (cuda->cuCtxPushCurrent(lane->context) == WF_CU_SUCCESS) {
        for (int i = 0; i < NCCL_LAUNCHES; i++)
            if (lane->launches[i].event)
                cuda->cuEventDestroy(lane->launches[i].event);
        if (lane->stream)
            cuda->cuStreamDestroy(lane->stream);
        cuda->cuCtxPopCurrent(&ours);
    }
    cuda->cuDevicePrimaryCtxRelease(lane->device);
}

/* --- communicators --- */

static nccl_result init_rank(struct bench_backend *backend, struct nccl_lane *lane)
{
    const struct wf_cuda_api *cuda = &backend->cuda.api;
    wf_cu_context ours;

    /* A communicator is of the GPU that is current. */
    if (cuda->cuCtxPushCurrent(lane->context) != WF_CU_SUCCESS)
        return NCCL_UNHANDLED_CUDA_ERROR;
    nccl_result result =
        backend->library.CommInitRank(&lane->comm, (int)backend->ranks.count, backend->world.id, (int)lane->rank);
    cuda->cuCtxPopCurrent(&ours);
    return result;
}

/* In a thread of the guard: waits for the ranks of the other node. */
static int init_ranks(void *context, struct wf_status *status)
{
    struct bench_backend *backend = context;
    const struct nccl_library *nccl = &backend->library;
    nccl_result result = nccl->GroupStart();
    char why[160];

    for (uint32_t i = 0; i < backend->lane_count && result == NCCL_SUCCESS; i++)
        result = init_rank(backend, &backend->lanes[i]);
    nccl_result ended = nccl->GroupEnd();
    if (result == NCCL_SUCCESS)
        result = ended;
    if (result == NCCL_SUCCESS)
        return 0;
    backend->broken = true;
    return wf_fail(status, -EIO, "NCCL makes no communicator of %u ranks: %s", backend->ranks.count,
                   nccl_library_error(nccl, result, why, sizeof why));
}

static int end_ranks(void *context, struct wf_status *status)
{
    struct bench_backend *backend = context;

    (void)status;
    for (uint32_t i = 0; i < backend->lane_count; i++) {
        struct nccl_lane *lane = &backend->lanes[i];
        if (!lane->comm)
            continue;
        if (backend->broken)
            backend->library.CommAbort(lane->comm);
        else
            backend->library.CommDestroy(lane->comm);
        lane->comm = NULL;
    }
    return 0;
}

/* --- connections --- */

/* What is posted to connect the ranks. */
struct hello {
    struct bench_backend *backend;
    bench_request *requests;
    uint32_t count, room;
};

static int post_hello(struct hello *hello, uint32_t pair, bool sends)
{
    bench_request *place = &hello->requests[hello->count];
    struct nccl_operation what = {.length = 1};
    int result = nccl_post(hello->backend, pair, sends, &what, place);
    struct nccl_operation *operation = *place;

    if (result)
        return result;
    operation->buffer = (char *)nccl_lane_of(hello->backend, operation)->scratch + SCRATCH_STEP * hello->count;
    hello->count++;
    return 0;
}

/* All pairs, each way it will be used. */
static int post_hellos(struct hello *hello)
{
    const struct bench_plan *plan = hello->backend->plan;
    int node = hello->backend->link->node, result = 0;

    for (uint32_t i = 0; i < plan->pair_count && result == 0; i++) {
        bool src = plan->pairs[i].src_node == node, dst = plan->pairs[i].dst_node == node;
        if (src)
            result = post_hello(hello, i, true);
        if (result == 0 && dst)
            result = post_hello(hello, i, false);
        if (result == 0 && plan->latency && src)
            result = post_hello(hello, i, false);
        if (result == 0 && plan->latency && dst)
            result = post_hello(hello, i, true);
    }
    return result;
}

static int launch_hellos(void *context, struct wf_status *status)
{
    struct bench_backend *backend = context;
    int result = nccl_launch(backend);

    return result ? wf_fail(status, result, "NCCL connects no ranks: %s", backend->why) : 0;
}

static int await_hellos(struct hello *hello, struct wf_status *status)
{
    struct bench_backend *backend = hello->backend;
    struct weft_completion completion;
    int index, result = 0;

    while (hello->count > 0 && result == 0) {
        result = nccl_wait(backend, hello->requests, (int)hello->room, SLICE_MS, &index, &completion);
        if (result == -ETIMEDOUT) {
            result = bench_control_check(backend->link->control, status);
            continue;
        }
        hello->count--;
        if (result == 0 && completion.status)
            result = wf_fail(status, completion.status, "NCCL connects no ranks: %s", completion.text);
    }
    return result;
}

static int alloc_scratch(struct bench_backend *backend, uint32_t count, struct wf_status *status)
{
    struct weft_error err = {0};

    for (uint32_t i = 0; i < backend->lane_count; i++)
        if (weft_gpu_alloc(backend->link->context, backend->lanes[i].gpu, (uint64_t)SCRATCH_STEP * (count + 1),
                           &backend->lanes[i].scratch, &err) != 0)
            return bench_weft_failed(status, &err, "for NCCL");
    return 0;
}

/*
 * NCCL connects two ranks when they first exchange something, and each waits for the other meanwhile: also for ranks of
 * its own process that come later. So all of them meet here at once, in one group, and outside of measured time.
 */
static int connect_ranks(struct bench_backend *backend, int timeout_ms, struct wf_status *status)
{
    struct hello hello = {.backend = backend, .room = 4 * backend->plan->pair_count};
    int result = nccl_expect(backend, hello.room, status);

    if (result == 0)
        result = alloc_scratch(backend, hello.room, status);
    hello.requests = calloc(hello.room, sizeof *hello.requests);
    if (result == 0 && !hello.requests)
        result = wf_fail(status, -ENOMEM, "no memory for %u requests", hello.room);
    if (result == 0)
        result = post_hellos(&hello);
    if (result == 0)
        result = nccl_guard(launch_hellos, backend, "connecting the ranks", timeout_ms, backend->link->control,
                            &backend->abandoned, status);
    if (result == 0)
        result = await_hellos(&hello, status);
    free(hello.requests);
    return result;
}

/* --- open and close --- */

static bool any_under_way(const struct bench_backend *backend)
{
    for (uint32_t i = 0; i < backend->lane_count; i++)
        if (backend->lanes[i].under_way)
            return true;
    return false;
}

void nccl_backend_close(struct bench_backend *backend)
{
    struct wf_status ignored;

    if (!backend || backend->abandoned)
        return;
    /* Kernels that wait for messages which do not come any more end only so. */
    backend->broken |= any_under_way(backend);
    if (backend->lane_count && backend->library.handle &&
        nccl_guard(end_ranks, backend, "ending NCCL", END_MS, NULL, &backend->abandoned, &ignored) != 0)
        return;
    for (uint32_t i = 0; i < backend->lane_count; i++)
        free_lane(backend, &backend->lanes[i]);
    wf_cuda_driver_close(&backend->cuda);
    nccl_library_close(&backend->library);
    free(backend->lanes);
    free(backend->operations);
    free(backend->counts);
    free(backend);
}

static int start(struct bench_backend *backend, struct wf_status *status)
{
    struct bench_link *link = backend->link;
    int timeout_ms = PATIENCE * link->connect_timeout_ms;
    int result = nccl_library_open(&backend->library, backend->plan->nccl_library, status);

    if (result == 0)
        result = wf_cuda_driver_open(&backend->cuda, status);
    if (result == 0)
        result = nccl_ranks_of(backend->plan, &backend->ranks, status);
    if (result == 0)
        result = nccl_world_join(&backend->world, &backend->library, link, &backend->ranks, link->control, status);
    if (result == 0)
        result = make_lanes(backend, status);
    if (result == 0)
        result = nccl_guard(init_ranks, backend, "making communicators", timeout_ms, link->control, &backend->abandoned,
                            status);
    return result ? result : connect_ranks(backend, timeout_ms, status);
}

int nccl_backend_open(struct bench_link *link, const struct bench_plan *plan, struct bench_backend **out,
                      struct wf_status *status)
{
    struct bench_backend *backend = calloc(1, sizeof *backend);

    if (!backend)
        return wf_fail(status, -ENOMEM, "no memory for the nccl backend");
    backend->link = link;
    backend->plan = plan;
    backend->counts = calloc(2 * (size_t)plan->pair_count, sizeof *backend->counts);
    int result =
        backend->counts ? start(backend, status) : wf_fail(status, -ENOMEM, "no memory for %u pairs", plan->pair_count);
    if (result) {
        backend->broken = true;
        nccl_backend_close(backend);
        return result;
    }
    *out = backend;
    return 0;
}
