/* standin.c: see standin.h. A message is a header and its bytes; a comm's requests are served in the order of posting.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "standin.h"

#define MAGIC 0x5741464Eu
#define VERSION 1u

enum { ERROR = -1, BLOCKED, DONE, MORE }; /* of a step; MORE: a message is done, and the request has others */

struct handle {
    uint32_t magic, version;
    struct sockaddr_in address;
    int fd; /* plus 1, once connect() has begun; 0 before */
};

struct header {
    uint32_t magic;
    int32_t tag;
    uint64_t size;
};

struct request {
    struct comm *comm;
    bool used, complete;
    int slots, filled;
    unsigned char *data[STANDIN_SLOTS];
    size_t size[STANDIN_SLOTS];
    int tag[STANDIN_SLOTS], reported[STANDIN_SLOTS];
    bool taken[STANDIN_SLOTS];
};

struct comm {
    pthread_mutex_t mutex;
    int fd;
    bool sending, broken;
    struct request requests[NCCL_NET_MAX_REQUESTS * STANDIN_SLOTS]; /* a ring: [first] is served */
    unsigned first, next;
    int limit; /* of requests in use */
    struct header header;
    size_t moved; /* bytes of header and body */
    int slot;     /* that the body goes into */
    int64_t moved_ms;
};

static nccl_logger say;

bool standin_fault(const char *name)
{
    const char *wanted = getenv("STANDIN_FAULT");
    return wanted && !strcmp(wanted, name);
}

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void doze(int ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L}, NULL);
}

enum nccl_result standin_init(nccl_logger logger)
{
    say = logger;
    say(NCCL_LOG_INFO, NCCL_INIT | NCCL_NET, __func__, __LINE__, "NET/Standin : one device, over loopback");
    if (standin_fault("prints"))
        fprintf(stderr, "hello\n");
    pthread_t thread;
    void *(*dawdle)(void *) = (void *(*)(void *))(void (*)(void))sleep; /* no code of what is unloaded below it */
    if (standin_fault("thread_stays") && !pthread_create(&thread, NULL, dawdle, (void *)(uintptr_t)10))
        pthread_detach(thread);
    return NCCL_SUCCESS;
}

enum nccl_result standin_finalize(void *context)
{
    (void)context;
    return NCCL_SUCCESS;
}

/* ------------------------------------------------------------------------------------------- comms */

static struct comm *comm_create(int fd, bool sending)
{
    struct comm *comm = calloc(1, sizeof *comm);
    pthread_mutex_init(&comm->mutex, NULL);
    comm->fd = fd;
    comm->sending = sending;
    comm->limit = NCCL_NET_MAX_REQUESTS * (sending ? STANDIN_SLOTS : 1);
    comm->moved_ms = now_ms();
    return comm;
}

enum nccl_result standin_listen(int dev, void *handle, void **comm)
{
    struct handle mine = {.magic = MAGIC, .version = VERSION, .address = {.sin_family = AF_INET}};
    socklen_t length = sizeof mine.address;
    mine.address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = dev == 0 ? socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0) : -1;
    if (fd < 0 || bind(fd, (struct sockaddr *)&mine.address, sizeof mine.address) || listen(fd, 128) ||
        getsockname(fd, (struct sockaddr *)&mine.address, &length))
        return NCCL_SYSTEM_ERROR;
    memset(handle, 0, NCCL_NET_HANDLE_MAXSIZE);
    memcpy(handle, &mine, sizeof mine);
    *comm = comm_create(fd, false);
    return NCCL_SUCCESS;
}

enum nccl_result standin_connect(int dev, void *handle, void **comm)
{
    struct handle peer;
    (void)dev;
    memcpy(&peer, handle, sizeof peer);
    *comm = NULL;
    bool ours = peer.magic == MAGIC && peer.version == VERSION && peer.address.sin_family == AF_INET;
    if (!ours && !standin_fault("handle_unread")) {
        say(NCCL_LOG_WARN, NCCL_NET, __FILE__, __LINE__,
            "NET/Standin : a handle of another plugin, or of another version");
        return NCCL_INVALID_ARGUMENT;
    }
    if (!peer.fd) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (fd < 0)
            return NCCL_SYSTEM_ERROR;
        peer.fd = fd + 1;
        memcpy(handle, &peer, sizeof peer);
    }
    if (connect(peer.fd - 1, (struct sockaddr *)&peer.address, sizeof peer.address) && errno != EISCONN)
        return errno == EINPROGRESS || errno == EALREADY ? NCCL_SUCCESS : NCCL_SYSTEM_ERROR;
    *comm = comm_create(peer.fd - 1, true);
    return NCCL_SUCCESS;
}

enum nccl_result standin_accept(void *listener, void **comm, struct nccl_net_device_handle **device)
{
    (void)device;
    const struct comm *listening = listener;
    if (standin_fault("accept_blocks"))
        doze(400);
    *comm = NULL;
    int fd = accept4(listening->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0)
        return errno == EAGAIN ? NCCL_SUCCESS : NCCL_SYSTEM_ERROR;
    *comm = comm_create(fd, false);
    return NCCL_SUCCESS;
}

static void *write_late(void *arg)
{
    doze(5);
    *(volatile unsigned char *)arg = 1;
    return NULL;
}

enum nccl_result standin_close(void *arg)
{
    struct comm *comm = arg;
    const struct request *oldest = &comm->requests[comm->first % (NCCL_NET_MAX_REQUESTS * STANDIN_SLOTS)];
    pthread_t thread;
    if (standin_fault("writes_late") && !comm->sending && oldest->used &&
        !pthread_create(&thread, NULL, write_late, oldest->data[0]))
        pthread_detach(thread);
    if (standin_fault("close_blocks") && oldest->used)
        doze(500);
    if (!standin_fault("descriptor_stays"))
        close(comm->fd);
    pthread_mutex_destroy(&comm->mutex);
    free(comm);
    return NCCL_SUCCESS;
}

enum nccl_result standin_close_listen(void *listener)
{
    return standin_close(listener);
}

enum nccl_result standin_reg(void *comm, void *data, size_t size, int type, void **mhandle)
{
    (void)comm;
    (void)size;
    *mhandle = data;
    return type == NCCL_PTR_HOST ? NCCL_SUCCESS : NCCL_INVALID_ARGUMENT;
}

enum nccl_result standin_dereg(void *comm, void *mhandle)
{
    (void)comm;
    (void)mhandle;
    return NCCL_SUCCESS;
}

/* ------------------------------------------------------------------------------------------- bytes */

/* More of `size` bytes, of which `at` have moved: DONE, all have. */
static int move(struct comm *comm, void *data, size_t size, size_t *at)
{
    while (*at < size) {
        ssize_t moved = comm->sending ? send(comm->fd, (char *)data + *at, size - *at, MSG_NOSIGNAL)
                                      : recv(comm->fd, (char *)data + *at, size - *at, 0);
        if (moved < 0 && errno == EAGAIN)
            return BLOCKED;
        if (moved <= 0 && !(standin_fault("loss_unseen") && !comm->sending))
            return ERROR;
        if (moved <= 0)
            return BLOCKED;
        *at += (size_t)moved;
        comm->moved_ms = now_ms();
    }
    return DONE;
}

static int slot_for(const struct request *request, int tag)
{
    for (int i = 0; i < request->slots; i++) {
        if (!request->taken[i] && (request->tag[i] == tag || standin_fault("tags_ignored")))
            return i;
    }
    return ERROR;
}

/* The header has come: where the body goes. */
static int take_header(struct comm *comm, struct request *request)
{
    comm->slot = slot_for(request, comm->header.tag);
    if (comm->header.magic != MAGIC || comm->slot < 0)
        return ERROR;
    if (comm->header.size > request->size[comm->slot]) {
        say(NCCL_LOG_WARN, NCCL_NET, __FILE__, __LINE__, "NET/Standin : %llu bytes into %zu",
            (unsigned long long)comm->header.size, request->size[comm->slot]);
        if (!standin_fault("larger_taken"))
            return ERROR;
    }
    request->taken[comm->slot] = true;
    request->reported[comm->slot] =
        (int)(standin_fault("size_of_room") ? request->size[comm->slot] : comm->header.size);
    return DONE;
}

/* The oldest request, one message further. */
static int step(struct comm *comm, struct request *request)
{
    size_t head = sizeof comm->header, at = comm->moved;
    if (comm->sending)
        comm->header = (struct header){MAGIC, request->tag[0], request->size[0]};
    if (at < head) {
        int result = move(comm, &comm->header, head, &comm->moved);
        if (result != DONE)
            return result;
        if (!comm->sending && take_header(comm, request) < 0)
            return ERROR;
    }
    int slot = comm->sending ? 0 : comm->slot;
    at = comm->moved - head;
    int result = move(comm, request->data[slot], comm->header.size, &at);
    comm->moved = head + at;
    if (result != DONE)
        return result;
    if (standin_fault("byte_wrong") && !comm->sending && comm->header.size > 1000)
        request->data[slot][999] ^= 1;
    if (standin_fault("writes_behind") && !comm->sending)
        request->data[slot][request->size[slot]] = 0;
    comm->moved = 0;
    return ++request->filled == request->slots ? DONE : MORE;
}

static void advance(struct comm *comm)
{
    while (!comm->broken && comm->first != comm->next) {
        struct request *request = &comm->requests[comm->first % (NCCL_NET_MAX_REQUESTS * STANDIN_SLOTS)];
        int result = step(comm, request);
        const char *timeout = getenv("WEFT_TIMEOUT");
        if (result == MORE)
            continue;
        if (result == BLOCKED && timeout && now_ms() - comm->moved_ms > atoi(timeout) * 1000)
            result = ERROR;
        if (result == BLOCKED)
            return;
        request->complete = result == DONE;
        comm->broken = result == ERROR;
        comm->first += result == DONE;
    }
}

static enum nccl_result post(struct comm *comm, const struct request *request, void **out)
{
    enum nccl_result result = NCCL_REMOTE_ERROR;
    pthread_mutex_lock(&comm->mutex);
    struct request *slot = &comm->requests[comm->next % (NCCL_NET_MAX_REQUESTS * STANDIN_SLOTS)];
    if (!comm->broken) {
        int used = 0;
        for (int i = 0; i < NCCL_NET_MAX_REQUESTS * STANDIN_SLOTS; i++)
            used += comm->requests[i].used;
        result = NCCL_SUCCESS;
        if (used >= (standin_fault("few_requests") ? 8 : comm->limit) || slot->used) {
            if (!standin_fault("marker_stays"))
                *out = NULL;
        } else {
            if (comm->first == comm->next)
                comm->moved_ms = now_ms();
            *slot = *request;
            comm->next++;
            *out = slot;
            if (!standin_fault("oldest_only"))
                advance(comm);
        }
    }
    pthread_mutex_unlock(&comm->mutex);
    return result;
}

enum nccl_result standin_isend(void *comm, void *data, size_t size, int tag, void **request)
{
    return post(comm,
                &(struct request){.comm = comm,
                                  .used = true,
                                  .slots = 1,
                                  .data = {data},
                                  .size = {size},
                                  .tag = {tag},
                                  .reported = {(int)size}},
                request);
}

enum nccl_result standin_irecv(void *comm, int n, void **data, const size_t *sizes, const int *tags, void **request)
{
    struct request mine = {.comm = comm, .used = true, .slots = n};
    if (n > STANDIN_SLOTS)
        return NCCL_INVALID_ARGUMENT;
    for (int i = 0; i < n; i++) {
        mine.data[i] = data[i];
        mine.size[i] = sizes[i];
        mine.tag[i] = tags[i];
    }
    return post(comm, &mine, request);
}

enum nccl_result standin_test(void *arg, int *done, int *sizes)
{
    struct request *request = arg;
    struct comm *comm = request->comm;
    enum nccl_result result = NCCL_SUCCESS;
    pthread_mutex_lock(&comm->mutex);
    if (standin_fault("test_blocks"))
        doze(250);
    bool was_broken = comm->broken;
    if (!standin_fault("oldest_only") ||
        request == &comm->requests[comm->first % (NCCL_NET_MAX_REQUESTS * STANDIN_SLOTS)])
        advance(comm);
    if (request->complete || !standin_fault("done_unwritten"))
        *done = request->complete;
    if (request->complete) {
        for (int i = 0; i < request->slots && sizes; i++)
            sizes[i] = request->reported[i];
        if (standin_fault("sizes_behind") && sizes)
            sizes[request->slots] = 0;
        request->used = false;
    } else if (comm->broken) {
        result = NCCL_REMOTE_ERROR;
        if (!was_broken && !standin_fault("loss_unsaid"))
            say(NCCL_LOG_WARN, NCCL_NET, __FILE__, __LINE__,
                "NET/Standin : the peer at 127.0.0.1 is lost; rails: lo, last heard before");
    }
    pthread_mutex_unlock(&comm->mutex);
    return result;
}
