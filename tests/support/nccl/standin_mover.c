/* One thread for each rank moves the bytes of its launches: in the place of the kernel and the proxy that NCCL has. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "standin.h"

#define HEADER sizeof(uint64_t)
#define SLICE_MS 20 /* how long a wait goes on before it looks whether it was aborted */

static bool is_to(const char *fault)
{
    const char *asked = getenv("NCCL_STANDIN");

    return asked && strcmp(asked, fault) == 0;
}

static int go_wrong(struct nccl_comm *comm, int result, const char *what)
{
    int none = NCCL_SUCCESS;

    standin_fail(result, "rank %d: %s", comm->rank, what);
    atomic_compare_exchange_strong(&comm->error, &none, result);
    return result;
}

/* ------------------------------------------------------------------------------------------- connections */

static int connect_to(struct nccl_comm *comm, int peer)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_port = htons(comm->ports[peer])};
    int32_t rank = comm->rank;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0 ||
        send(fd, &rank, sizeof(rank), MSG_NOSIGNAL) != sizeof(rank)) {
        if (fd >= 0)
            close(fd);
        return go_wrong(comm, NCCL_REMOTE_ERROR, "a peer is not to be reached");
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    comm->out[peer] = fd;
    return NCCL_SUCCESS;
}

static int take_caller(struct nccl_comm *comm)
{
    int32_t rank = -1;
    int fd = accept4(comm->listener, NULL, NULL, SOCK_CLOEXEC);

    if (fd < 0 || recv(fd, &rank, sizeof(rank), MSG_WAITALL) != sizeof(rank) || rank < 0 || rank >= comm->ranks) {
        if (fd >= 0)
            close(fd);
        return go_wrong(comm, NCCL_REMOTE_ERROR, "a peer is gone before it said who it is");
    }
    comm->in[rank] = fd;
    return NCCL_SUCCESS;
}

/* ------------------------------------------------------------------------------------------- one operation */

/* Copies of the mover's own, on its stream, which it may wait for. */
static int copy_out(struct nccl_comm *comm, struct standin_operation *operation)
{
    if (cuMemcpyDtoHAsync_v2(operation->copy, operation->memory, operation->length, comm->stream) != EMU_OK ||
        cuStreamSynchronize(comm->stream) != EMU_OK)
        return go_wrong(comm, NCCL_UNHANDLED_CUDA_ERROR, "a copy from the GPU failed");
    return NCCL_SUCCESS;
}

static int copy_in(struct nccl_comm *comm, struct standin_operation *operation)
{
    if (cuMemcpyHtoDAsync_v2(operation->memory, operation->copy, operation->length, comm->stream) != EMU_OK ||
        cuStreamSynchronize(comm->stream) != EMU_OK)
        return go_wrong(comm, NCCL_UNHANDLED_CUDA_ERROR, "a copy to the GPU failed");
    return NCCL_SUCCESS;
}

static int prepare(struct nccl_comm *comm, struct standin_operation *operation)
{
    operation->header = operation->length;
    operation->copy = malloc(operation->length + 1);
    if (!operation->copy)
        return go_wrong(comm, STANDIN_SYSTEM, "no memory");
    return operation->sends && operation->length ? copy_out(comm, operation) : NCCL_SUCCESS;
}

/* As much as the socket takes or has. */
static int move_some(struct nccl_comm *comm, struct standin_operation *operation, int fd)
{
    bool head = operation->moved < HEADER;
    uint8_t *at = head ? (uint8_t *)&operation->header + operation->moved : operation->copy + operation->moved - HEADER;
    uint64_t left = head ? HEADER - operation->moved : operation->length + HEADER - operation->moved;
    ssize_t moved =
        operation->sends ? send(fd, at, left, MSG_NOSIGNAL | MSG_DONTWAIT) : recv(fd, at, left, MSG_DONTWAIT);

    if (moved < 0 && (errno == EAGAIN || errno == EINTR))
        return NCCL_SUCCESS;
    if (moved <= 0)
        return go_wrong(comm, NCCL_REMOTE_ERROR, "a peer is gone");
    operation->moved += (uint64_t)moved;
    if (operation->moved >= HEADER && operation->header != operation->length)
        return go_wrong(comm, STANDIN_USAGE, "a send and its receive differ in length");
    if (operation->moved < HEADER + operation->length)
        return NCCL_SUCCESS;
    operation->done = true;
    if (!operation->sends && operation->length && is_to("flip"))
        operation->copy[operation->length / 2] ^= 1;
    return !operation->sends && operation->length ? copy_in(comm, operation) : NCCL_SUCCESS;
}

/* ------------------------------------------------------------------------------------------- one launch */

/* Of the messages between two ranks one direction is a line: the first that is not done is the one that moves. */
static bool has_turn(const struct standin_operation *all, const struct standin_operation *operation)
{
    for (const struct standin_operation *at = all; at != operation; at = at->next)
        if (!at->done && at->peer == operation->peer && at->sends == operation->sends)
            return false;
    return !operation->done;
}

static int descriptor_of(struct nccl_comm *comm, const struct standin_operation *operation, int *fd)
{
    int result = NCCL_SUCCESS;

    if (operation->sends && comm->out[operation->peer] < 0)
        result = connect_to(comm, operation->peer);
    *fd = operation->sends ? comm->out[operation->peer] : comm->in[operation->peer];
    return result;
}

/* Waits until something can move, and moves it. */
static int step(struct nccl_comm *comm, struct standin_operation *all)
{
    struct pollfd polled[1 + 2 * STANDIN_RANKS_MAX] = {{.fd = comm->listener, .events = POLLIN}};
    struct standin_operation *of[1 + 2 * STANDIN_RANKS_MAX];
    nfds_t count = 1;
    int result = NCCL_SUCCESS;

    for (struct standin_operation *at = all; at && result == NCCL_SUCCESS; at = at->next) {
        if (!has_turn(all, at))
            continue;
        of[count] = at;
        polled[count] = (struct pollfd){.fd = -1, .events = at->sends ? POLLOUT : POLLIN};
        result = descriptor_of(comm, at, &polled[count++].fd);
    }
    if (result != NCCL_SUCCESS || poll(polled, count, SLICE_MS) <= 0)
        return result;
    if (polled[0].revents)
        result = take_caller(comm);
    for (nfds_t i = 1; i < count && result == NCCL_SUCCESS; i++)
        if (polled[i].fd >= 0 && polled[i].revents)
            result = move_some(comm, of[i], polled[i].fd);
    return result;
}

static bool all_done(const struct standin_operation *all)
{
    for (; all; all = all->next)
        if (!all->done)
            return false;
    return true;
}

static int await_stream(struct nccl_comm *comm, const struct standin_launch *launch)
{
    const struct timespec nap = {0, 20000};
    emu_result result;

    while ((result = cuEventQuery(launch->start)) == EMU_NOT_READY && !atomic_load(&comm->aborted))
        nanosleep(&nap, NULL);
    return result == EMU_OK || result == EMU_NOT_READY
               ? NCCL_SUCCESS
               : go_wrong(comm, NCCL_UNHANDLED_CUDA_ERROR, "what its stream had before failed");
}

static void perform(struct nccl_comm *comm, struct standin_launch *launch)
{
    int result = await_stream(comm, launch);

    if (launch->ticket == 10 && is_to("fail"))
        result = go_wrong(comm, NCCL_REMOTE_ERROR, "the tenth launch was to fail");
    for (struct standin_operation *at = launch->operations; at && result == NCCL_SUCCESS; at = at->next)
        result = prepare(comm, at);
    while (result == NCCL_SUCCESS && !all_done(launch->operations) && !atomic_load(&comm->aborted))
        result = step(comm, launch->operations);
    /* After an error the stream stands still until the communicator is aborted, as behind a kernel of NCCL's. */
    if (result == NCCL_SUCCESS)
        atomic_store(comm->flag, launch->ticket);
}

static void free_launch(struct standin_launch *launch)
{
    while (launch->operations) {
        struct standin_operation *operation = launch->operations;
        launch->operations = operation->next;
        free(operation->copy);
        free(operation);
    }
    cuEventDestroy_v2(launch->start);
    free(launch);
}

/* ------------------------------------------------------------------------------------------- the thread */

static struct standin_launch *next_launch(struct nccl_comm *comm)
{
    struct standin_launch *launch;

    pthread_mutex_lock(&comm->lock);
    while (!comm->first && !comm->leaving)
        pthread_cond_wait(&comm->news, &comm->lock);
    launch = comm->first;
    if (launch) {
        comm->first = launch->next;
        if (!comm->first)
            comm->end = &comm->first;
    }
    pthread_mutex_unlock(&comm->lock);
    return launch;
}

static void *move(void *argument)
{
    struct nccl_comm *comm = argument;
    struct standin_launch *launch;

    pthread_setname_np(pthread_self(), "nccl mover");
    cuCtxPushCurrent_v2(comm->context);
    while ((launch = next_launch(comm)) != NULL) {
        if (atomic_load(&comm->error) == NCCL_SUCCESS && !atomic_load(&comm->aborted))
            perform(comm, launch);
        free_launch(launch);
    }
    return NULL;
}

int standin_mover_start(struct nccl_comm *comm)
{
    void *page = NULL;

    if (posix_memalign(&page, 4096, 4096) != 0)
        return standin_fail(STANDIN_SYSTEM, "no memory");
    memset(page, 0, 4096);
    comm->flag = page;
    cuCtxPushCurrent_v2(comm->context);
    if (cuStreamCreate(&comm->stream, 1) != EMU_OK || cuMemHostRegister_v2(page, 4096, EMU_REGISTER_MAPPED) != EMU_OK)
        comm->stream = NULL;
    cuCtxPopCurrent_v2(&(struct CUctx_st *){NULL});
    if (!comm->stream)
        return standin_fail(NCCL_UNHANDLED_CUDA_ERROR, "rank %d gets no stream", comm->rank);
    if (pthread_create(&comm->mover, NULL, move, comm) != 0)
        return standin_fail(STANDIN_SYSTEM, "no thread");
    comm->moving = true;
    return NCCL_SUCCESS;
}

int standin_mover_launch(struct nccl_comm *comm, struct CUstream_st *stream, struct standin_operation *operations)
{
    struct standin_launch *launch = calloc(1, sizeof(*launch));
    bool worked;

    if (!launch)
        return standin_fail(STANDIN_SYSTEM, "no memory");
    launch->operations = operations;
    launch->ticket = ++comm->ticket;
    cuCtxPushCurrent_v2(comm->context);
    worked = cuEventCreate(&launch->start, 2) == EMU_OK && cuEventRecord(launch->start, stream) == EMU_OK &&
             cuStreamWaitValue32_v2(stream, (emu_pointer)(uintptr_t)comm->flag, launch->ticket, 0) == EMU_OK;
    cuCtxPopCurrent_v2(&(struct CUctx_st *){NULL});
    if (!worked) {
        free_launch(launch);
        return standin_fail(NCCL_UNHANDLED_CUDA_ERROR, "rank %d: the stream takes nothing", comm->rank);
    }
    pthread_mutex_lock(&comm->lock);
    *comm->end = launch;
    comm->end = &launch->next;
    pthread_cond_signal(&comm->news);
    pthread_mutex_unlock(&comm->lock);
    return NCCL_SUCCESS;
}

void standin_mover_stop(struct nccl_comm *comm)
{
    pthread_mutex_lock(&comm->lock);
    comm->leaving = true;
    pthread_cond_signal(&comm->news);
    pthread_mutex_unlock(&comm->lock);
    if (comm->moving)
        pthread_join(comm->mover, NULL);
    for (int i = 0; i < comm->ranks; i++) {
        if (comm->out[i] >= 0)
            close(comm->out[i]);
        if (comm->in[i] >= 0)
            close(comm->in[i]);
    }
    if (comm->listener >= 0)
        close(comm->listener);
    if (comm->root >= 0)
        close(comm->root);
    if (!comm->flag)
        return;
    atomic_store(comm->flag, comm->ticket); /* whatever stands in the user's stream goes on */
    cuCtxPushCurrent_v2(comm->context);
    cuMemHostUnregister((void *)comm->flag);
    if (comm->stream)
        cuStreamDestroy_v2(comm->stream);
    cuCtxPopCurrent_v2(&(struct CUctx_st *){NULL});
    free((void *)comm->flag);
}
