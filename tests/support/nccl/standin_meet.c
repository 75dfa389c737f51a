/* The ranks of a world meet at a socket that the id names, and tell each other where they listen. */
#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "standin.h"

#define MARK "weft stand-in"

/* What an id holds. */
struct place {
    char mark[sizeof(MARK)];
    uint16_t port;
};

struct arrival {
    int32_t ranks, rank;
    uint16_t port;
    char host[64], gpu[20];
};

struct table {
    int32_t result;
    char why[120];
    uint16_t ports[STANDIN_RANKS_MAX];
};

/* ------------------------------------------------------------------------------------------- sockets */

static int listen_somewhere(uint16_t *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0 && listen(fd, STANDIN_RANKS_MAX) == 0 &&
        getsockname(fd, (struct sockaddr *)&address, &size) == 0) {
        *port = ntohs(address.sin_port);
        return fd;
    }
    if (fd >= 0)
        close(fd);
    return -1;
}

static bool read_all(int fd, void *buffer, size_t bytes)
{
    return recv(fd, buffer, bytes, MSG_WAITALL) == (ssize_t)bytes;
}

static bool write_all(int fd, const void *buffer, size_t bytes)
{
    return send(fd, buffer, bytes, MSG_NOSIGNAL) == (ssize_t)bytes; /* far less than a socket's buffer */
}

/* ------------------------------------------------------------------------------------------- the root */

/* As NCCL: two ranks cannot be on one GPU of one host. */
static void look_for_twins(const struct arrival *all, int ranks, struct table *table)
{
    for (int one = 0; one < ranks; one++)
        for (int other = 0; other < one; other++)
            if (strcmp(all[one].host, all[other].host) == 0 && strcmp(all[one].gpu, all[other].gpu) == 0) {
                table->result = STANDIN_USAGE;
                snprintf(table->why, sizeof(table->why), "ranks %d and %d are both on GPU %s of one host", other, one,
                         all[one].gpu);
            }
}

static void *serve(void *argument)
{
    const char *fault = getenv("NCCL_STANDIN");
    int listener = (int)(intptr_t)argument, here = 0;
    int ranks = fault && strcmp(fault, "alone") == 0 ? INT_MAX : 1; /* that are waited for */
    struct arrival *all = calloc(STANDIN_RANKS_MAX, sizeof(*all));
    struct table *table = calloc(1, sizeof(*table));
    int fds[STANDIN_RANKS_MAX];

    while (all && table && here < ranks) {
        struct arrival arrival;
        int fd = accept(listener, NULL, NULL);
        if (fd < 0 || !read_all(fd, &arrival, sizeof(arrival)) || arrival.rank < 0 || arrival.rank >= STANDIN_RANKS_MAX)
            break;
        if (ranks != INT_MAX)
            ranks = arrival.ranks;
        all[arrival.rank] = arrival;
        table->ports[arrival.rank] = arrival.port;
        fds[here++] = fd;
    }
    if (all && table && here == ranks)
        look_for_twins(all, ranks, table);
    for (int i = 0; i < here; i++) {
        (void)write_all(fds[i], table, sizeof(*table));
        close(fds[i]);
    }
    close(listener);
    free(all);
    free(table);
    return NULL;
}

int standin_make_id(nccl_id *id)
{
    struct place place = {.mark = MARK};
    int listener = listen_somewhere(&place.port);
    pthread_t thread;

    _Static_assert(sizeof(place) <= sizeof(id->internal), "an id has room for it");
    memset(id, 0, sizeof(*id));
    memcpy(id->internal, &place, sizeof(place));
    if (listener < 0 || pthread_create(&thread, NULL, serve, (void *)(intptr_t)listener) != 0)
        return standin_fail(STANDIN_SYSTEM, "no socket, or no thread, to meet at");
    pthread_detach(thread);
    return NCCL_SUCCESS;
}

/* ------------------------------------------------------------------------------------------- the ranks */

int standin_meet_begin(struct nccl_comm *comm)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct arrival arrival = {.ranks = comm->ranks, .rank = comm->rank};
    struct place place;

    memcpy(&place, comm->id.internal, sizeof(place));
    if (memcmp(place.mark, MARK, sizeof(MARK)) != 0)
        return standin_fail(STANDIN_ARGUMENT, "the id was not made by this library");
    address.sin_port = htons(place.port);
    comm->listener = listen_somewhere(&arrival.port);
    comm->root = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    memcpy(arrival.host, comm->host, sizeof(arrival.host));
    if (cuDeviceGetPCIBusId(arrival.gpu, sizeof(arrival.gpu), comm->device) != EMU_OK)
        return standin_fail(STANDIN_INTERNAL, "GPU %d has no address", comm->device);
    if (comm->listener < 0 || comm->root < 0 ||
        connect(comm->root, (struct sockaddr *)&address, sizeof(address)) != 0 ||
        !write_all(comm->root, &arrival, sizeof(arrival)))
        return standin_fail(STANDIN_SYSTEM, "rank %d reaches nobody: %s", comm->rank, strerror(errno));
    return NCCL_SUCCESS;
}

int standin_meet_end(struct nccl_comm *comm)
{
    struct table *table = calloc(1, sizeof(*table));
    int result = STANDIN_SYSTEM;

    if (table && read_all(comm->root, table, sizeof(*table))) {
        memcpy(comm->ports, table->ports, sizeof(comm->ports));
        result = table->result;
        if (result != NCCL_SUCCESS)
            standin_fail(result, "%s", table->why);
    } else {
        standin_fail(result, "rank %d waits for nobody any more", comm->rank);
    }
    close(comm->root);
    comm->root = -1;
    free(table);
    return result;
}
