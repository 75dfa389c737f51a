#include "communicator.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "guard.h"
#include "library.h"
#include "mem/cuda_driver.h"

#define LOOK_AT_CLOCK 64 /* polls between two looks at the clock and at NCCL's own errors */
#define END_MS 10000     /* for a communicator to be gone */

_Static_assert(NCCL_COMMUNICATOR_ID_BYTES == NCCL_ID_BYTES, "an id of NCCL's");

/* Owner: the measuring thread; while it waits in a guard, the guard's. */
struct nccl_communicator {
    struct nccl_library library;
    struct wf_cuda_driver cuda;
    wf_cu_device device;
    wf_cu_context context; /* the primary one; NULL: not retained */
    wf_cu_stream stream;
    wf_cu_event event;
    nccl_comm comm; /* NULL: not joined */
    nccl_id id;
    uint32_t rank, ranks;
    bool broken;    /* an operation has failed, or did not end */
    bool abandoned; /* a thread is still in a call of NCCL's: nothing may be freed */
};

static int nccl_failed(const struct nccl_communicator *communicator, const char *what, nccl_result result,
                       struct wf_status *status)
{
    char why[160];

    return wf_fail(status, -EIO, "%s: %s", what, nccl_library_error(&communicator->library, result, why, sizeof why));
}

static int cuda_failed(const struct nccl_communicator *communicator, const char *what, wf_cu_result result,
                       struct wf_status *status)
{
    char why[WF_CUDA_ERROR_TEXT];

    return wf_fail(status, -EIO, "%s: %s", what, wf_cuda_error(&communicator->cuda.api, result, why));
}

/* --- open and close --- */

static wf_cu_result make_ready(struct nccl_communicator *communicator, int gpu)
{
    const struct wf_cuda_api *cuda = &communicator->cuda.api;
    wf_cu_context ours;
    wf_cu_result result = wf_cuda_context_enter(cuda, gpu, &communicator->device, &communicator->context);

    if (result != WF_CU_SUCCESS)
        return result;
    result = cuda->cuStreamCreate(&communicator->stream, WF_CU_STREAM_NON_BLOCKING);
    if (result == WF_CU_SUCCESS)
        result = cuda->cuEventCreate(&communicator->event, WF_CU_EVENT_DISABLE_TIMING);
    cuda->cuCtxPopCurrent(&ours);
    return result;
}

int nccl_communicator_open(const char *where, int gpu, struct nccl_communicator **out, struct wf_status *status)
{
    struct nccl_communicator *communicator = calloc(1, sizeof *communicator);
    char what[32];

    if (!communicator)
        return wf_fail(status, -ENOMEM, "no memory for NCCL");
    int result = nccl_library_open(&communicator->library, where, status);
    if (result == 0)
        result = wf_cuda_driver_open(&communicator->cuda, status);
    if (result == 0 && communicator->cuda.emulated != communicator->library.emulated)
        result = wf_fail(status, -EOPNOTSUPP, "the driver is %s, and %.90s is %s",
                         communicator->cuda.emulated ? "emulated" : "CUDA's", communicator->library.path,
                         communicator->library.emulated ? "a stand-in" : "NCCL itself");
    wf_cu_result ready = result == 0 ? make_ready(communicator, gpu) : WF_CU_SUCCESS;
    if (ready != WF_CU_SUCCESS) {
        snprintf(what, sizeof what, "GPU %d for NCCL", gpu);
        result = cuda_failed(communicator, what, ready, status);
    }
    if (result)
        nccl_communicator_close(communicator);
    else
        *out = communicator;
    return result;
}

void nccl_communicator_close(struct nccl_communicator *communicator)
{
    if (!communicator)
        return;
    nccl_communicator_leave(communicator);
    if (communicator->abandoned)
        return;
    const struct wf_cuda_api *cuda = &communicator->cuda.api;
    wf_cu_context ours;
    if (communicator->context && cuda->cuCtxPushCurrent(communicator->context) == WF_CU_SUCCESS) {
        if (communicator->event)
            cuda->cuEventDestroy(communicator->event);
        if (communicator->stream)
            cuda->cuStreamDestroy(communicator->stream);
        cuda->cuCtxPopCurrent(&ours);
    }
    if (communicator->context)
        cuda->cuDevicePrimaryCtxRelease(communicator->device);
    wf_cuda_driver_close(&communicator->cuda);
    nccl_library_close(&communicator->library);
    free(communicator);
}

const char *nccl_communicator_version(const struct nccl_communicator *communicator)
{
    return communicator->library.version;
}

const char *nccl_communicator_path(const struct nccl_communicator *communicator)
{
    return communicator->library.path;
}

/* --- join and leave --- */

int nccl_communicator_id(struct nccl_communicator *communicator, unsigned char id[NCCL_COMMUNICATOR_ID_BYTES],
                         struct wf_status *status)
{
    nccl_id made;
    nccl_result result = communicator->library.GetUniqueId(&made);

    if (result != NCCL_SUCCESS)
        return nccl_failed(communicator, "NCCL makes no id", result, status);
    memcpy(id, made.internal, NCCL_ID_BYTES);
    return 0;
}

/* In a thread of the guard: waits for the other ranks. */
static int init_rank(void *context, struct wf_status *status)
{
    struct nccl_communicator *communicator = context;
    const struct wf_cuda_api *cuda = &communicator->cuda.api;
    wf_cu_context ours;
    wf_cu_result pushed =
        cuda->cuCtxPushCurrent(communicator->context); /* a communicator is of the GPU that is current */

    if (pushed != WF_CU_SUCCESS)
        return cuda_failed(communicator, "a communicator of NCCL's", pushed, status);
    nccl_result result = communicator->library.CommInitRank(&communicator->comm, (int)communicator->ranks,
                                                            communicator->id, (int)communicator->rank);
    cuda->cuCtxPopCurrent(&ours);
    return result == NCCL_SUCCESS ? 0 : nccl_failed(communicator, "NCCL makes no communicator", result, status);
}

int nccl_communicator_join(struct nccl_communicator *communicator, const unsigned char id[NCCL_COMMUNICATOR_ID_BYTES],
                           uint32_t rank, uint32_t ranks, int timeout_ms, struct wf_status *status)
{
    memcpy(communicator->id.internal, id, NCCL_ID_BYTES);
    communicator->rank = rank;
    communicator->ranks = ranks;
    int result = nccl_guard(init_rank, communicator, "making a communicator", timeout_ms, NULL,
                            &communicator->abandoned, status);
    communicator->broken |= result != 0;
    return result;
}

static int end_rank(void *context, struct wf_status *status)
{
    struct nccl_communicator *communicator = context;

    (void)status;
    if (communicator->broken) /* kernels that wait for what does not come any more end only so */
        communicator->library.CommAbort(communicator->comm);
    else
        communicator->library.CommDestroy(communicator->comm);
    communicator->comm = NULL;
    return 0;
}

void nccl_communicator_leave(struct nccl_communicator *communicator)
{
    struct wf_status ignored;

    if (communicator->comm && !communicator->abandoned)
        nccl_guard(end_rank, communicator, "ending NCCL", END_MS, NULL, &communicator->abandoned, &ignored);
}

/* --- operations --- */

const char *nccl_communicator_lacks(const struct rank_call *call)
{
    if (call->in_place && (call->op == BENCH_ALL_TO_ALL || call->op == BENCH_SEND_RECEIVE))
        return "NCCL's sends and receives do not work in place";
    return NULL;
}

static nccl_type type_of(enum rank_type type)
{
    static const nccl_type types[RANK_TYPES] = {NCCL_FLOAT64, NCCL_FLOAT32, NCCL_FLOAT16, NCCL_BFLOAT16,
                                                NCCL_INT32,   NCCL_INT64,   NCCL_UINT8};
    return types[type];
}

static nccl_op op_of(enum rank_redop redop)
{
    static const nccl_op ops[RANK_REDOPS] = {NCCL_SUM, NCCL_MIN, NCCL_MAX, NCCL_AVG};
    return ops[redop];
}

/* As bytes: what is moved needs no type. */
static nccl_result exchange(const struct nccl_communicator *communicator, uint32_t to, const void *send, uint32_t from,
                            void *receive, uint64_t bytes)
{
    const struct nccl_library *nccl = &communicator->library;
    nccl_result result = nccl->Send(send, bytes, NCCL_UINT8, (int)to, communicator->comm, communicator->stream);

    if (result == NCCL_SUCCESS)
        result = nccl->Recv(receive, bytes, NCCL_UINT8, (int)from, communicator->comm, communicator->stream);
    return result;
}

/* Sends and receives in one group: NCCL documents an all-to-all so, and has a call for it only since 2.28. */
static nccl_result exchange_all(const struct nccl_communicator *communicator, const struct rank_call *call)
{
    uint64_t bytes = call->count * rank_type_bytes(call->type);
    uint32_t rank = communicator->rank, ranks = communicator->ranks;
    nccl_result result = communicator->library.GroupStart();

    if (call->op == BENCH_SEND_RECEIVE)
        result = exchange(communicator, (rank + 1) % ranks, call->send, (rank + ranks - 1) % ranks, call->recv, bytes);
    for (uint32_t i = 0; call->op == BENCH_ALL_TO_ALL && i < ranks && result == NCCL_SUCCESS; i++)
        result =
            exchange(communicator, i, (const char *)call->send + i * bytes, i, (char *)call->recv + i * bytes, bytes);
    nccl_result ended = communicator->library.GroupEnd(); /* also after an error */
    return result == NCCL_SUCCESS ? ended : result;
}

static nccl_result launch(const struct nccl_communicator *communicator, const struct rank_call *call)
{
    const struct nccl_library *nccl = &communicator->library;
    nccl_comm comm = communicator->comm;
    nccl_stream stream = communicator->stream;
    nccl_type type = type_of(call->type);

    switch (call->op) {
    case BENCH_ALL_REDUCE:
        return nccl->AllReduce(call->send, call->recv, call->count, type, op_of(call->redop), comm, stream);
    case BENCH_ALL_GATHER:
        return nccl->AllGather(call->send, call->recv, call->count, type, comm, stream);
    case BENCH_REDUCE_SCATTER:
        return nccl->ReduceScatter(call->send, call->recv, call->count, type, op_of(call->redop), comm, stream);
    case BENCH_BROADCAST:
        return nccl->Broadcast(call->send, call->recv, call->count, type, 0, comm, stream);
    case BENCH_ALL_TO_ALL:
    case BENCH_SEND_RECEIVE:
        break;
    }
    return exchange_all(communicator, call);
}

/* An error of NCCL's that no event tells. */
static int ask(const struct nccl_communicator *communicator, struct wf_status *status)
{
    nccl_result state = NCCL_SUCCESS;
    nccl_result result = communicator->library.CommGetAsyncError(communicator->comm, &state);

    if (result == NCCL_SUCCESS)
        result = state;
    return result == NCCL_SUCCESS || result == NCCL_IN_PROGRESS ? 0 : nccl_failed(communicator, "NCCL", result, status);
}

static int await(const struct nccl_communicator *communicator, int timeout_ms, struct wf_status *status)
{
    int64_t deadline = wf_deadline_after_ms(wf_clock_now(&wf_clock_monotonic), timeout_ms);
    wf_cu_result now;
    int result = 0;

    for (unsigned polls = 1; (now = communicator->cuda.api.cuEventQuery(communicator->event)) == WF_CU_NOT_READY;
         polls++) {
        if (polls % LOOK_AT_CLOCK == 0 && (result = ask(communicator, status)) != 0)
            return result;
        if (polls % LOOK_AT_CLOCK == 0 && wf_clock_now(&wf_clock_monotonic) >= deadline)
            return wf_fail(status, -ETIMEDOUT, "NCCL has not ended it within %d ms", timeout_ms);
        sched_yield();
    }
    return now == WF_CU_SUCCESS ? ask(communicator, status) : cuda_failed(communicator, "NCCL", now, status);
}

/* Hands it to the GPU, with an event behind it. */
static int start(const struct nccl_communicator *communicator, const struct rank_call *call, struct wf_status *status)
{
    const struct wf_cuda_api *cuda = &communicator->cuda.api;
    wf_cu_context ours;
    wf_cu_result marked = cuda->cuCtxPushCurrent(communicator->context);

    if (marked != WF_CU_SUCCESS)
        return cuda_failed(communicator, "NCCL", marked, status);
    nccl_result launched = launch(communicator, call);
    if (launched == NCCL_SUCCESS)
        marked = cuda->cuEventRecord(communicator->event, communicator->stream);
    cuda->cuCtxPopCurrent(&ours);
    if (launched != NCCL_SUCCESS)
        return nccl_failed(communicator, "NCCL", launched, status);
    return marked == WF_CU_SUCCESS ? 0 : cuda_failed(communicator, "NCCL", marked, status);
}

int nccl_communicator_run(struct nccl_communicator *communicator, const struct rank_call *call, int timeout_ms,
                          struct wf_status *status)
{
    int result = start(communicator, call, status);

    if (result == 0)
        result = await(communicator, timeout_ms, status);
    communicator->broken |= result != 0;
    return result;
}
