/*
 * gpu FILE: the plugin with GPU memory (WEFT_NCCL_PTR=cuda), on the emulated driver. Two processes send to each other
 * from GPU memory to GPU memory, verified. Between init() and the last close no call of the driver comes that may wait
 * for a kernel of the caller's: none that allocates, pins, frees or synchronises. And NCCL's profiler gets an event for
 * each request and for each chunk, begun and ended once. Memory is deregistered also while a receive is under way in
 * it.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "plugins/nccl/abi.h"
#include "tests/support/cuda/driver.h"

#define SECONDS 60
#define MOST ((size_t)3 << 20)
#define DEPTH 4

#define CHECK(condition, ...)                                                                                          \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition);                                            \
            fprintf(stderr, __VA_ARGS__);                                                                              \
            fputc('\n', stderr);                                                                                       \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static const char *const forbidden[] = {
    "synchronise",   "cuMemAlloc",      "cuMemFree",      "cuMemHostRegister", "cuMemHostUnregister", "cuStreamCreate",
    "cuEventCreate", "cuStreamDestroy", "cuEventDestroy", "cuCtxSynchronize",  "cuModuleLoadData"};
#define FORBIDDEN (sizeof forbidden / sizeof forbidden[0])

static struct {
    void *library;
    emu_result (*init)(unsigned int flags);
    emu_result (*retain)(struct CUctx_st **context, int device);
    emu_result (*set)(struct CUctx_st *context);
    emu_result (*alloc)(emu_pointer *memory, size_t bytes);
    emu_result (*copy)(emu_pointer to, emu_pointer from, size_t bytes);
    uint64_t (*count)(const char *what);
} driver;

/* Events that NCCL's profiler got, by NCCL_PROFILE_OP_*: of requests, and of chunks. */
static struct counts {
    int begun, ended;
} events[2], chunks[2];

static void *symbol(void *library, const char *name)
{
    void *found = dlsym(library, name);
    CHECK(found, "%s", dlerror());
    return found;
}

static void load_driver(int device)
{
    struct CUctx_st *context;
    driver.library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    CHECK(driver.library, "%s", dlerror());
    *(void **)&driver.init = symbol(driver.library, "cuInit");
    *(void **)&driver.retain = symbol(driver.library, "cuDevicePrimaryCtxRetain");
    *(void **)&driver.set = symbol(driver.library, "cuCtxSetCurrent");
    *(void **)&driver.alloc = symbol(driver.library, "cuMemAlloc_v2");
    *(void **)&driver.copy = symbol(driver.library, "cuMemcpy");
    *(void **)&driver.count = symbol(driver.library, "weft_emulated_count");
    CHECK(driver.init(0) == EMU_OK && driver.retain(&context, device) == EMU_OK && driver.set(context) == EMU_OK,
          "no device %d", device);
}

static void log_line(enum nccl_log_level level, unsigned long flags, const char *file, int line, const char *format,
                     ...)
{
    (void)flags, (void)file, (void)line;
    CHECK(level != NCCL_LOG_WARN, "a warning: %s", format);
}

static enum nccl_result record(void **event, int kind, void *phandle, int64_t plugin, void *descriptor)
{
    const struct nccl_profile_socket *socket = descriptor;
    if (kind == NCCL_PROFILE_START) {
        CHECK(phandle == events && socket->type == NCCL_PROFILE_SOCKET && socket->sock.op <= NCCL_PROFILE_OP_RECV, "%p",
              phandle);
        CHECK(plugin == (NCCL_PROFILE_PLUGIN_SOCKET | NCCL_PROFILE_SOCKET_VERSION), "%lld", (long long)plugin);
        struct counts *counts = &(socket->sock.fd < 0 ? events : chunks)[socket->sock.op];
        __atomic_add_fetch(&counts->begun, 1, __ATOMIC_RELAXED);
        *event = counts;
    } else {
        struct counts *counts = *event;
        CHECK(kind == NCCL_PROFILE_STOP && counts, "%d %p", kind, *event);
        __atomic_add_fetch(&counts->ended, 1, __ATOMIC_RELAXED);
    }
    return NCCL_SUCCESS;
}

static uint8_t byte_of(int rank, size_t size, size_t at)
{
    return (uint8_t)(at * 31 + at / 251 + size + (size_t)rank * 101);
}

static void wait_for(const struct nccl_net_v11 *net, void *request, size_t size)
{
    int done = 0, came = -1;
    while (!done) {
        CHECK(net->test(request, &done, &came) == NCCL_SUCCESS, "%zu bytes", size);
        sched_yield();
    }
    CHECK(came == (int)size, "%d bytes came, not %zu", came, size);
}

struct rank {
    int number, talk; /* a socket to the other process */
    const struct nccl_net_v11 *net;
    void *context, *sends, *receives;
    emu_pointer from[DEPTH], to[DEPTH];
    void *handles[2][DEPTH];
    uint8_t *host;
};

static void meet(struct rank *rank)
{
    char own[NCCL_NET_HANDLE_MAXSIZE], other[NCCL_NET_HANDLE_MAXSIZE];
    struct nccl_net_device_handle *device;
    void *listener;
    CHECK(rank->net->listen(rank->context, 0, own, &listener) == NCCL_SUCCESS, "listen");
    CHECK(send(rank->talk, own, sizeof own, 0) == sizeof own &&
              recv(rank->talk, other, sizeof other, 0) == sizeof other,
          "the other process is gone");
    while (!rank->sends || !rank->receives) {
        CHECK(rank->sends || rank->net->connect(rank->context, 0, other, &rank->sends, &device) == NCCL_SUCCESS,
              "connect");
        CHECK(rank->receives || rank->net->accept(listener, &rank->receives, &device) == NCCL_SUCCESS, "accept");
        sched_yield();
    }
    CHECK(rank->net->close_listen(listener) == NCCL_SUCCESS, "close_listen");
    for (int i = 0; i < DEPTH; i++) {
        CHECK(rank->net->reg_mr(rank->sends, (void *)rank->from[i], MOST, NCCL_PTR_CUDA, &rank->handles[0][i]) ==
                  NCCL_SUCCESS,
              "reg_mr");
        CHECK(rank->net->reg_mr(rank->receives, (void *)rank->to[i], MOST, NCCL_PTR_CUDA, &rank->handles[1][i]) ==
                  NCCL_SUCCESS,
              "reg_mr");
    }
}

static void exchange(struct rank *rank, size_t size)
{
    void *sent[DEPTH], *received[DEPTH], *phandle = events, *flush;
    int tag = 7, flushed = (int)size;
    for (int i = 0; i < DEPTH; i++) {
        void *to = (void *)rank->to[i];
        CHECK(rank->net->irecv(rank->receives, 1, &to, &size, &tag, &rank->handles[1][i], &phandle, &received[i]) ==
                  NCCL_SUCCESS,
              "irecv");
        CHECK(rank->net->isend(rank->sends, (void *)rank->from[i], size, tag, rank->handles[0][i], phandle, &sent[i]) ==
                  NCCL_SUCCESS,
              "isend");
        CHECK(received[i] && sent[i], "%d requests are too many", i);
    }
    for (int i = DEPTH; i-- > 0;) {
        void *to = (void *)rank->to[i];
        wait_for(rank->net, received[i], size);
        CHECK(rank->net->iflush(rank->receives, 1, &to, &flushed, &rank->handles[1][i], &flush) == NCCL_SUCCESS,
              "iflush");
        if (flush)
            wait_for(rank->net, flush, 0);
        wait_for(rank->net, sent[i], size);
    }
}

static void fill(struct rank *rank, size_t size)
{
    for (size_t at = 0; at < size; at++)
        rank->host[at] = byte_of(rank->number, size, at);
    for (int i = 0; i < DEPTH && size > 0; i++)
        CHECK(driver.copy(rank->from[i], (emu_pointer)rank->host, size) == EMU_OK, "copy in");
    memset(rank->host, 0xEE, size);
    for (int i = 0; i < DEPTH && size > 0; i++)
        CHECK(driver.copy(rank->to[i], (emu_pointer)rank->host, size) == EMU_OK, "copy in");
}

static void verify(struct rank *rank, size_t size)
{
    for (int i = 0; i < DEPTH && size > 0; i++) {
        CHECK(driver.copy((emu_pointer)rank->host, rank->to[i], size) == EMU_OK, "copy out");
        for (size_t at = 0; at < size; at++)
            CHECK(rank->host[at] == byte_of(1 - rank->number, size, at), "message of %zu bytes: byte %zu is wrong",
                  size, at);
    }
}

/* Lets the other process come to the same point. */
static void together(struct rank *rank)
{
    char word = 0;
    CHECK(send(rank->talk, &word, 1, 0) == 1 && recv(rank->talk, &word, 1, 0) == 1, "the other process is gone");
}

/* A receive that nobody sends to is under way when its memory is deregistered: no wait for it, and an error then. */
static void deregister(struct rank *rank)
{
    void *to = (void *)rank->to[0], *waiting = NULL;
    size_t size = MOST;
    int tag = 8, done = 0;
    CHECK(rank->net->irecv(rank->receives, 1, &to, &size, &tag, &rank->handles[1][0], NULL, &waiting) == NCCL_SUCCESS &&
              waiting,
          "irecv");
    for (int i = 0; i < DEPTH; i++) {
        CHECK(rank->net->dereg_mr(rank->sends, rank->handles[0][i]) == NCCL_SUCCESS &&
                  rank->net->dereg_mr(rank->receives, rank->handles[1][i]) == NCCL_SUCCESS,
              "dereg_mr");
    }
    CHECK(rank->net->test(waiting, &done, NULL) != NCCL_SUCCESS && !done, "a receive goes on without its memory");
}

static void leave(struct rank *rank)
{
    deregister(rank);
    together(rank); /* the other one's receive needs the session */
    CHECK(rank->net->close_send(rank->sends) == NCCL_SUCCESS && rank->net->close_recv(rank->receives) == NCCL_SUCCESS,
          "close");
}

static int run(struct rank *rank, const char *file)
{
    static const size_t sizes[] = {0, 1, 8191, 8193, 131072, 1000003, MOST};
    uint64_t before[FORBIDDEN], moving[FORBIDDEN] = {0};
    struct nccl_net_properties_v11 properties;
    alarm(SECONDS);
    load_driver(rank->number);
    rank->host = malloc(MOST);
    for (int i = 0; i < DEPTH; i++)
        CHECK(driver.alloc(&rank->from[i], MOST) == EMU_OK && driver.alloc(&rank->to[i], MOST) == EMU_OK, "alloc");
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    CHECK(library, "%s", dlerror());
    rank->net = symbol(library, "ncclNetPlugin_v11");
    unsetenv("NCCL_PROTO");
    CHECK(rank->net->init(&rank->context, 1, NULL, log_line, record) == NCCL_SUCCESS, "init");
    const char *protocols = getenv("NCCL_PROTO");
    CHECK(protocols && strcmp(protocols, "Simple") == 0, "copies have no order: %s", protocols ? protocols : "-");
    CHECK(rank->net->properties(0, &properties) == NCCL_SUCCESS && (properties.ptr_support & NCCL_PTR_CUDA),
          "GPU memory is not announced");
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        fill(rank, sizes[s]);
        together(rank);
        for (size_t i = 0; i < FORBIDDEN; i++)
            before[i] = driver.count(forbidden[i]);
        if (s == 0)
            meet(rank);
        exchange(rank, sizes[s]);
        for (size_t i = 0; i < FORBIDDEN; i++)
            moving[i] += driver.count(forbidden[i]) - before[i];
        verify(rank, sizes[s]);
    }
    together(rank);
    for (size_t i = 0; i < FORBIDDEN; i++)
        before[i] = driver.count(forbidden[i]);
    leave(rank);
    for (size_t i = 0; i < FORBIDDEN; i++) {
        CHECK(before[i] != UINT64_MAX, "the emulated driver does not count %s", forbidden[i]);
        moving[i] += driver.count(forbidden[i]) - before[i];
        CHECK(moving[i] == 0, "%s came %llu times after init()", forbidden[i], (unsigned long long)moving[i]);
    }
    for (int op = 0; op < 2; op++)
        CHECK(events[op].begun == (int)(DEPTH * sizeof sizes / sizeof sizes[0]) && events[op].ended == events[op].begun,
              "op %d: %d events begun, %d ended", op, events[op].begun, events[op].ended);
    for (int op = 0; op < 2; op++)
        CHECK(chunks[op].begun > 0 && chunks[op].ended == chunks[op].begun, "op %d: %d chunks begun, %d ended", op,
              chunks[op].begun, chunks[op].ended);
    CHECK(rank->net->finalize(rank->context) == NCCL_SUCCESS, "finalize");
    dlclose(library);
    return 0;
}

int main(int argc, char **argv)
{
    int ends[2], worst = 0;
    CHECK(argc == 2, "usage: gpu FILE");
    CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0, "socketpair");
    for (int i = 0; i < 2; i++) {
        struct rank rank = {.number = i, .talk = ends[i]};
        pid_t child = fork();
        CHECK(child >= 0, "fork");
        if (child == 0) {
            close(ends[1 - i]);
            exit(run(&rank, argv[1]));
        }
    }
    close(ends[0]);
    close(ends[1]);
    for (int i = 0; i < 2; i++) {
        int status;
        wait(&status);
        worst |= status;
    }
    return worst ? 1 : 0;
}
