/* Descriptors as the engine that encrypts sees them. */
#include <errno.h>
#include <stdlib.h>

#include "io/seal_parts.h"

/* --- create and destroy --- */

static void free_seal_socket(struct wf_seal_socket *socket)
{
    if (!socket)
        return;
    for (int i = 0; i < WF_SEAL_BATCHES; i++)
        free(socket->tx.batches[i].bytes);
    free(socket->rx.bytes);
    wf_records_destroy(socket->tx.records);
    wf_records_destroy(socket->rx.records);
    free(socket);
}

struct wf_seal *wf_seal_create(void)
{
    struct wf_seal *seal = calloc(1, sizeof *seal);
    if (!seal)
        return NULL;
    pthread_mutex_init(&seal->lock, NULL);
    for (int i = 0; i < WF_SEAL_BUCKETS; i++)
        wf_list_init(&seal->sockets[i]);
    return seal;
}

void wf_seal_destroy(struct wf_seal *seal)
{
    if (!seal)
        return;
    for (int i = 0; i < WF_SEAL_BUCKETS; i++) {
        WF_LIST_EACH (link, following, &seal->sockets[i]) {
            free_seal_socket(WF_CONTAINER(link, struct wf_seal_socket, link));
        }
    }
    pthread_mutex_destroy(&seal->lock);
    free(seal);
}

/* --- what is known of them --- */

/* Lock held. */
static struct wf_seal_socket *find_seal_socket(struct wf_seal *seal, int fd)
{
    WF_LIST_EACH (link, following, &seal->sockets[(unsigned)fd % WF_SEAL_BUCKETS]) {
        struct wf_seal_socket *socket = WF_CONTAINER(link, struct wf_seal_socket, link);
        if (socket->fd == fd)
            return socket;
    }
    return NULL;
}

struct wf_seal_socket *wf_seal_socket_of(struct wf_seal *seal, int fd)
{
    pthread_mutex_lock(&seal->lock);
    struct wf_seal_socket *socket = find_seal_socket(seal, fd);
    pthread_mutex_unlock(&seal->lock);
    return socket;
}

/* A channel of small messages touches the first pages of its buffers only. */
static struct wf_seal_socket *new_seal_socket(int fd, const struct wf_record_key *tx, const struct wf_record_key *rx)
{
    struct wf_seal_socket *socket = calloc(1, sizeof *socket);
    if (!socket)
        return NULL;
    socket->fd = fd;
    atomic_init(&socket->tx.ending, 0);
    socket->tx.records = wf_records_create(tx, true, &wf_record_limits);
    socket->rx.records = wf_records_create(rx, false, &wf_record_limits);
    socket->rx.bytes = malloc(WF_SEAL_INPUT);
    bool good = socket->tx.records && socket->rx.records && socket->rx.bytes;
    for (int i = 0; i < WF_SEAL_BATCHES; i++) {
        socket->tx.batches[i].bytes = malloc(WF_SEAL_BATCH_WIRE);
        good = good && socket->tx.batches[i].bytes;
    }
    if (good)
        return socket;
    free_seal_socket(socket);
    return NULL;
}

int wf_seal_protect(struct wf_seal *seal, int fd, const struct wf_record_key *tx, const struct wf_record_key *rx)
{
    struct wf_seal_socket *socket = new_seal_socket(fd, tx, rx);
    if (!socket)
        return -ENOMEM;
    pthread_mutex_lock(&seal->lock);
    wf_list_push_back(&seal->sockets[(unsigned)fd % WF_SEAL_BUCKETS], &socket->link);
    pthread_mutex_unlock(&seal->lock);
    return 0;
}

static void forget_seal_socket(struct wf_seal *seal, int fd)
{
    pthread_mutex_lock(&seal->lock);
    struct wf_seal_socket *socket = find_seal_socket(seal, fd);
    if (socket)
        wf_link_remove(&socket->link);
    pthread_mutex_unlock(&seal->lock);
    free_seal_socket(socket);
}

/* --- what changes for a protected one --- */

void wf_seal_op_shutdown(void *host, int fd)
{
    struct wf_seal *seal = host;
    struct wf_seal_socket *socket = wf_seal_socket_of(seal, fd);
    if (socket && (atomic_fetch_or(&socket->tx.ending, WF_SEAL_SHUT) & WF_SEAL_LEFT))
        return; /* left_nothing() of seal_tx.c shuts it down once the last byte has left */
    wf_around_shutdown(seal, fd);
}

void wf_seal_op_close_fd(void *host, int fd)
{
    struct wf_seal *seal = host;
    forget_seal_socket(seal, fd); /* before: as soon as it is closed, the number may be another's */
    wf_around_close_fd(seal, fd);
}
