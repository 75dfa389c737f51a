/*
 * devices FILE ROUNDS: two devices of one process (WEFT_NCCL_DEVICES=rails, two rails) dial each other at once, ROUNDS
 * times over, each with the plugin loaded anew: every connect() and accept() has a comm in the end. Then the plugin is
 * unloaded with a listener and a connect() open, and processes exit while a thread is in calls for open comms.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "plugins/nccl/abi.h"

#define DEVICES 2
#define SECONDS 60
#define EXITS 5

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                            \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static void log_nothing(enum nccl_log_level level, unsigned long flags, const char *file, int line, const char *format,
                        ...)
{
    (void)level, (void)flags, (void)file, (void)line, (void)format;
}

static void *library, *context, *listeners[DEVICES], *sends[DEVICES], *receives[DEVICES];
static const struct nccl_net_v11 *net;

static void load(const char *file)
{
    int count = 0;
    library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    CHECK(library);
    net = dlsym(library, "ncclNetPlugin_v11");
    CHECK(net && net->init(&context, 1, NULL, log_nothing, NULL) == NCCL_SUCCESS);
    CHECK(net->devices(&count) == NCCL_SUCCESS && count == DEVICES);
}

static void meet(void)
{
    char handles[DEVICES][NCCL_NET_HANDLE_MAXSIZE];
    struct nccl_net_device_handle *offload;
    for (int i = 0; i < DEVICES; i++)
        CHECK(net->listen(context, i, handles[i], &listeners[i]) == NCCL_SUCCESS);
    for (int missing = 2 * DEVICES; missing > 0; sched_yield()) {
        missing = 0;
        for (int i = 0; i < DEVICES; i++) {
            CHECK(sends[i] || net->connect(context, i, handles[1 - i], &sends[i], &offload) == NCCL_SUCCESS);
            CHECK(receives[i] || net->accept(listeners[i], &receives[i], &offload) == NCCL_SUCCESS);
            missing += !sends[i] + !receives[i];
        }
    }
}

static void part(void)
{
    for (int i = 0; i < DEVICES; i++) {
        CHECK(net->close_listen(listeners[i]) == NCCL_SUCCESS);
        CHECK(net->close_send(sends[i]) == NCCL_SUCCESS);
        CHECK(net->close_recv(receives[i]) == NCCL_SUCCESS);
        sends[i] = receives[i] = NULL;
    }
}

/* As after an abort in the middle of connecting. The table is used as those up to v10 are: nothing is finalised. */
static void unload_with_more_to_do(const char *file)
{
    char handle[NCCL_NET_HANDLE_MAXSIZE];
    struct nccl_net_device_handle *offload;
    load(file);
    CHECK(net->listen(context, 0, handle, &listeners[0]) == NCCL_SUCCESS);
    CHECK(net->connect(context, 1, handle, &sends[0], &offload) == NCCL_SUCCESS && !sends[0]);
    dlclose(library);
    usleep(50000); /* for a thread that goes on without its code */
}

static atomic_bool in_use;

static void *use(void *unused)
{
    void *request, *data = malloc(1);
    size_t size = 1;
    int tag = 1, done;
    CHECK(net->irecv(receives[0], 1, &data, &size, &tag, NULL, NULL, &request) == NCCL_SUCCESS && request);
    atomic_store(&in_use, true);
    while (net->test(request, &done, NULL) == NCCL_SUCCESS)
        ;
    fprintf(stderr, "the devices are gone before the process is\n");
    abort();
    return unused;
}

/* Comes after what the plugin does at the exit: `use` gets the time to see it. */
static void linger(void)
{
    usleep(20000);
}

static void exit_in_use(const char *file)
{
    pthread_t thread;
    int status;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        CHECK(atexit(linger) == 0);
        load(file);
        meet();
        CHECK(pthread_create(&thread, NULL, use, NULL) == 0);
        while (!atomic_load(&in_use))
            sched_yield();
        exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

int main(int argc, char **argv)
{
    CHECK(argc == 3);
    alarm(SECONDS);
    for (int round = atoi(argv[2]); round > 0; round--) {
        load(argv[1]);
        meet();
        part();
        CHECK(net->finalize(context) == NCCL_SUCCESS);
        dlclose(library);
    }
    for (int i = 0; i < EXITS; i++)
        exit_in_use(argv[1]);
    unload_with_more_to_do(argv[1]);
    return 0;
}
