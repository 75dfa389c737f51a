/*
 * devices FILE ROUNDS: two devices of one process (WEFT_NCCL_DEVICES=rails, two rails) dial each other at once, ROUNDS
 * times over, each with the plugin loaded anew: every connect() and accept() has a comm in the end.
 */
#include <dlfcn.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "plugins/nccl/abi.h"

#define DEVICES 2
#define SECONDS 60

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

static void meet(const struct nccl_net_v11 *net, void *context)
{
    char handles[DEVICES][NCCL_NET_HANDLE_MAXSIZE];
    void *listeners[DEVICES], *sends[DEVICES] = {NULL}, *receives[DEVICES] = {NULL};
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
    for (int i = 0; i < DEVICES; i++) {
        CHECK(net->close_listen(listeners[i]) == NCCL_SUCCESS);
        CHECK(net->close_send(sends[i]) == NCCL_SUCCESS);
        CHECK(net->close_recv(receives[i]) == NCCL_SUCCESS);
    }
}

int main(int argc, char **argv)
{
    CHECK(argc == 3);
    alarm(SECONDS);
    for (int round = atoi(argv[2]); round > 0; round--) {
        void *context, *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        int count = 0;
        CHECK(library);
        const struct nccl_net_v11 *net = dlsym(library, "ncclNetPlugin_v11");
        CHECK(net && net->init(&context, 1, NULL, log_nothing, NULL) == NCCL_SUCCESS);
        CHECK(net->devices(&count) == NCCL_SUCCESS && count == DEVICES);
        meet(net, context);
        CHECK(net->finalize(context) == NCCL_SUCCESS);
        dlclose(library);
    }
    return 0;
}
