#include "standin.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VERSION 22899 /* of no release */

STANDIN_API extern const int weft_emulated_driver;
const int weft_emulated_driver = 1;

/* What a thread has called since its outermost GroupStart. */
struct call {
    struct call *next;
    struct nccl_comm *comm;
    struct CUstream_st *stream;
    struct standin_operation *operation; /* NULL: the communicator is made */
};

static _Thread_local struct {
    int depth;
    struct call *first, *last;
} group;

static pthread_mutex_t last_lock = PTHREAD_MUTEX_INITIALIZER;
static char last_error[256];

int standin_fail(int result, const char *format, ...)
{
    va_list arguments;

    pthread_mutex_lock(&last_lock);
    va_start(arguments, format);
    vsnprintf(last_error, sizeof(last_error), format, arguments);
    va_end(arguments);
    pthread_mutex_unlock(&last_lock);
    return result;
}

/* ------------------------------------------------------------------------------------------- groups */

static int add_call(struct nccl_comm *comm, struct CUstream_st *stream, struct standin_operation *operation)
{
    struct call *call = calloc(1, sizeof(*call));

    if (!call)
        return standin_fail(STANDIN_SYSTEM, "no memory");
    call->comm = comm;
    call->stream = stream;
    call->operation = operation;
    if (group.last)
        group.last->next = call;
    else
        group.first = call;
    group.last = call;
    return NCCL_SUCCESS;
}

static int make_communicators(void)
{
    int result = NCCL_SUCCESS;

    for (struct call *call = group.first; call && result == NCCL_SUCCESS; call = call->next)
        if (!call->operation)
            result = standin_meet_begin(call->comm);
    for (struct call *call = group.first; call && result == NCCL_SUCCESS; call = call->next)
        if (!call->operation)
            result = standin_meet_end(call->comm);
    for (struct call *call = group.first; call && result == NCCL_SUCCESS; call = call->next)
        if (!call->operation)
            result = standin_mover_start(call->comm);
    return result;
}

/* All operations of one communicator and stream. */
static int launch_like(struct call *like)
{
    struct standin_operation *first = NULL, **end = &first;

    for (struct call *call = like; call; call = call->next) {
        if (!call->operation || call->comm != like->comm || call->stream != like->stream)
            continue;
        *end = call->operation;
        end = &call->operation->next;
        if (call != like)
            call->operation = NULL;
    }
    like->operation = NULL;
    return standin_mover_launch(like->comm, like->stream, first);
}

static int launch_all(void)
{
    int result = NCCL_SUCCESS;

    for (struct call *call = group.first; call && result == NCCL_SUCCESS; call = call->next)
        if (call->operation)
            result = launch_like(call);
    return result;
}

static void forget_calls(void)
{
    while (group.first) {
        struct call *call = group.first;
        group.first = call->next;
        free(call->operation);
        free(call);
    }
    group.last = NULL;
}

STANDIN_API int ncclGroupStart(void);
int ncclGroupStart(void)
{
    group.depth++;
    return NCCL_SUCCESS;
}

STANDIN_API int ncclGroupEnd(void);
int ncclGroupEnd(void)
{
    int result;

    if (group.depth == 0)
        return standin_fail(STANDIN_USAGE, "ncclGroupEnd without ncclGroupStart");
    if (--group.depth > 0)
        return NCCL_SUCCESS;
    result = make_communicators();
    if (result == NCCL_SUCCESS)
        result = launch_all();
    forget_calls();
    return result;
}

/* ------------------------------------------------------------------------------------------- communicators */

STANDIN_API int ncclGetVersion(int *version);
int ncclGetVersion(int *version)
{
    *version = VERSION;
    return NCCL_SUCCESS;
}

STANDIN_API int ncclGetUniqueId(nccl_id *id);
int ncclGetUniqueId(nccl_id *id)
{
    return standin_make_id(id);
}

static void destroy(struct nccl_comm *comm)
{
    pthread_cond_destroy(&comm->news);
    pthread_mutex_destroy(&comm->lock);
    free(comm);
}

STANDIN_API int ncclCommInitRank(nccl_comm *out, int ranks, nccl_id id, int rank);
int ncclCommInitRank(nccl_comm *out, int ranks, nccl_id id, int rank)
{
    struct nccl_comm *comm;
    const char *host = getenv("NCCL_HOSTID");

    if (ranks < 1 || ranks > STANDIN_RANKS_MAX || rank < 0 || rank >= ranks)
        return standin_fail(STANDIN_ARGUMENT, "rank %d of %d", rank, ranks);
    comm = calloc(1, sizeof(*comm));
    if (!comm)
        return standin_fail(STANDIN_SYSTEM, "no memory");
    comm->ranks = ranks;
    comm->rank = rank;
    comm->id = id;
    comm->root = comm->listener = -1;
    snprintf(comm->host, sizeof(comm->host), "%s", host ? host : "this machine");
    memset(comm->out, 0xff, sizeof(comm->out));
    memset(comm->in, 0xff, sizeof(comm->in));
    pthread_mutex_init(&comm->lock, NULL);
    pthread_cond_init(&comm->news, NULL);
    comm->end = &comm->first;
    if (cuCtxGetCurrent(&comm->context) != EMU_OK || !comm->context || cuCtxGetDevice(&comm->device) != EMU_OK) {
        destroy(comm);
        return standin_fail(STANDIN_USAGE, "no CUDA context is current");
    }
    *out = comm;
    ncclGroupStart();
    add_call(comm, NULL, NULL);
    return ncclGroupEnd();
}

STANDIN_API int ncclCommDestroy(nccl_comm comm);
int ncclCommDestroy(nccl_comm comm)
{
    if (!comm)
        return standin_fail(STANDIN_ARGUMENT, "no communicator");
    standin_mover_stop(comm);
    destroy(comm);
    return NCCL_SUCCESS;
}

STANDIN_API int ncclCommAbort(nccl_comm comm);
int ncclCommAbort(nccl_comm comm)
{
    if (comm)
        atomic_store(&comm->aborted, true);
    return ncclCommDestroy(comm);
}

STANDIN_API int ncclCommGetAsyncError(nccl_comm comm, int *result);
int ncclCommGetAsyncError(nccl_comm comm, int *result)
{
    *result = atomic_load(&comm->error);
    return NCCL_SUCCESS;
}

STANDIN_API const char *ncclGetErrorString(int result);
const char *ncclGetErrorString(int result)
{
    static const char *const names[] = {"no error",
                                        "unhandled cuda error",
                                        "unhandled system error",
                                        "internal error",
                                        "invalid argument",
                                        "invalid usage",
                                        "remote process exited or there was a network error"};

    return result >= 0 && result < (int)(sizeof(names) / sizeof(names[0])) ? names[result] : "unknown result code";
}

/* Of this thread's process; as NCCL's, not cleared. */
STANDIN_API const char *ncclGetLastError(nccl_comm comm);
const char *ncclGetLastError(nccl_comm comm)
{
    static _Thread_local char text[sizeof(last_error)];

    (void)comm;
    pthread_mutex_lock(&last_lock);
    memcpy(text, last_error, sizeof(text));
    pthread_mutex_unlock(&last_lock);
    return text;
}

/* ------------------------------------------------------------------------------------------- operations */

static int exchange(bool sends, const void *buffer, size_t count, int type, int peer, nccl_comm comm,
                    nccl_stream stream)
{
    struct standin_operation *operation;
    int result;

    if (type != NCCL_INT8 && type != NCCL_UINT8)
        return standin_fail(STANDIN_ARGUMENT, "type %d: the stand-in moves bytes", type);
    if (!comm || peer < 0 || peer >= comm->ranks)
        return standin_fail(STANDIN_ARGUMENT, "peer %d", peer);
    operation = calloc(1, sizeof(*operation));
    if (!operation)
        return standin_fail(STANDIN_SYSTEM, "no memory");
    operation->sends = sends;
    operation->peer = peer;
    operation->memory = (emu_pointer)(uintptr_t)buffer;
    operation->length = count;
    ncclGroupStart();
    result = add_call(comm, stream, operation);
    if (result != NCCL_SUCCESS)
        free(operation);
    return result == NCCL_SUCCESS ? ncclGroupEnd() : (ncclGroupEnd(), result);
}

STANDIN_API int ncclSend(const void *buffer, size_t count, int type, int peer, nccl_comm comm, nccl_stream stream);
int ncclSend(const void *buffer, size_t count, int type, int peer, nccl_comm comm, nccl_stream stream)
{
    return exchange(true, buffer, count, type, peer, comm, stream);
}

STANDIN_API int ncclRecv(void *buffer, size_t count, int type, int peer, nccl_comm comm, nccl_stream stream);
int ncclRecv(void *buffer, size_t count, int type, int peer, nccl_comm comm, nccl_stream stream)
{
    return exchange(false, buffer, count, type, peer, comm, stream);
}

static int no_collectives(void)
{
    return standin_fail(STANDIN_USAGE, "the stand-in has no collectives");
}

STANDIN_API int ncclAllReduce(const void *from, void *to, size_t count, int type, int op, nccl_comm comm,
                              nccl_stream stream);
int ncclAllReduce(const void *from, void *to, size_t count, int type, int op, nccl_comm comm, nccl_stream stream)
{
    (void)from, (void)to, (void)count, (void)type, (void)op, (void)comm, (void)stream;
    return no_collectives();
}

STANDIN_API int ncclReduceScatter(const void *from, void *to, size_t count, int type, int op, nccl_comm comm,
                                  nccl_stream stream);
int ncclReduceScatter(const void *from, void *to, size_t count, int type, int op, nccl_comm comm, nccl_stream stream)
{
    (void)from, (void)to, (void)count, (void)type, (void)op, (void)comm, (void)stream;
    return no_collectives();
}

STANDIN_API int ncclAllGather(const void *from, void *to, size_t count, int type, nccl_comm comm, nccl_stream stream);
int ncclAllGather(const void *from, void *to, size_t count, int type, nccl_comm comm, nccl_stream stream)
{
    (void)from, (void)to, (void)count, (void)type, (void)comm, (void)stream;
    return no_collectives();
}

STANDIN_API int ncclBroadcast(const void *from, void *to, size_t count, int type, int root, nccl_comm comm,
                              nccl_stream stream);
int ncclBroadcast(const void *from, void *to, size_t count, int type, int root, nccl_comm comm, nccl_stream stream)
{
    (void)from, (void)to, (void)count, (void)type, (void)root, (void)comm, (void)stream;
    return no_collectives();
}
