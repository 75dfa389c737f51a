/* Pools in GPUs, bound to queues of cards: where the bytes of each stream have landed, and whether they are right. */
#include "gpus.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "devmem/pool.h"

/* asm/socket.h and linux/socket.h of older systems lack them. */
#ifndef MSG_SOCK_DEVMEM
#define MSG_SOCK_DEVMEM 0x2000000
#endif
#ifndef SCM_DEVMEM_DMABUF
#define SCM_DEVMEM_LINEAR 78
#define SCM_DEVMEM_DMABUF 79
#define SO_DEVMEM_DONTNEED 80
#endif

#define FRAGMENTS 128 /* of one call: so many ranges are given back in one */
#define HOST_BYTES (256 << 10)

/* As in linux/uio.h, which cannot be included beside sys/socket.h. */
struct dmabuf_cmsg {
    uint64_t frag_offset;
    uint32_t frag_size, frag_token, dmabuf_id, flags;
};

struct dmabuf_token {
    uint32_t token_start, token_count;
};

/* One GPU on one card. */
struct stream {
    int gpu;
    const struct card *card;
    uint32_t queue, binding, rule;
    struct wf_devmem_flow flow;
    struct wf_devmem_pool pool;
    int listener, socket;
    uint64_t received, device, beside, plain, wrong; /* bytes: in the GPU, in host memory of its packets, of others */
    struct dmabuf_token tokens[FRAGMENTS];
    int held;
};

static struct stream streams[GPUS_MAX * CARDS_MAX];
static int stream_count;
static struct wf_devmem *devmem;
static uint8_t host[HOST_BYTES];

/* --- making them --- */

static void bind_pool(struct stream *stream, uint64_t bytes)
{
    struct wf_devmem_need wanted = {.rate = bytes,
                                    .away_ns = 1000000000,
                                    .mtu = 9000,
                                    .buffer = 4096,
                                    .in_rings = 64,
                                    .least = 256 << 10,
                                    .most = 16 << 20};

    need(wf_devmem_pool_init(&stream->pool, ops, memory, stream->gpu, wf_devmem_pool_bytes(&wanted), 0, &status),
         "pool");
    struct wf_devmem_rx rx = {
        .ifindex = stream->card->ifindex, .queues = &stream->queue, .count = 1, .dmabuf = stream->pool.dmabuf};
    need(wf_devmem_bind_rx(devmem, &rx, &stream->binding, &status), "bind-rx");
    wf_devmem_pool_close(&stream->pool);
}

static void steer(struct stream *stream, uint16_t port)
{
    struct sockaddr_in *to = (struct sockaddr_in *)&stream->flow.to;

    *to = stream->card->address;
    to->sin_port = htons(port);
    need(wf_devmem_steer(devmem, stream->card->name, &stream->flow, stream->queue, &stream->rule, &status), "steer");
}

static void listen_at(struct stream *stream)
{
    int one = 1;

    stream->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(stream->listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(stream->listener, (struct sockaddr *)&stream->flow.to, sizeof(struct sockaddr_in)) != 0 ||
        listen(stream->listener, 1) != 0)
        need(wf_fail(&status, -errno, "%s", strerror(errno)), "listen");
}

static void make_streams(const struct plan *plan)
{
    for (int gpu = plan->first; gpu < plan->first + plan->gpus; gpu++) {
        for (int card = 0; card < plan->cards; card++) {
            struct stream *stream = &streams[stream_count++];
            stream->gpu = gpu;
            stream->card = &plan->card[card];
            stream->queue = plan->queue + (uint32_t)gpu;
            bind_pool(stream, plan->bytes);
            steer(stream, port_of(gpu, card));
            listen_at(stream);
        }
    }
}

/* --- what comes --- */

static void check(struct stream *stream, const uint8_t *bytes, uint64_t count, uint64_t at)
{
    for (uint64_t i = 0; i < count; i++)
        stream->wrong += bytes[i] != pattern(stream->gpu, at + i);
}

/* The processor cannot read it where it is. */
static void see_fragment(struct stream *stream, const struct dmabuf_cmsg *fragment, uint64_t at)
{
    static uint8_t copy[64 << 10];

    if (fragment->dmabuf_id != stream->binding || fragment->frag_size > sizeof copy ||
        fragment->frag_offset + fragment->frag_size > stream->pool.bytes)
        need(wf_fail(&status, -EBADMSG, "of binding %u, ends at %llu", fragment->dmabuf_id,
                     (unsigned long long)fragment->frag_offset + fragment->frag_size),
             "a fragment");
    need(ops->copy_now(memory, copy, stream->pool.base + fragment->frag_offset, fragment->frag_size, &status), "copy");
    check(stream, copy, fragment->frag_size, at);
    stream->device += fragment->frag_size;
    stream->tokens[stream->held++] = (struct dmabuf_token){fragment->frag_token, 1};
}

static void give_back(struct stream *stream)
{
    socklen_t bytes = (socklen_t)stream->held * (socklen_t)sizeof stream->tokens[0];

    if (stream->held &&
        setsockopt(stream->socket, SOL_SOCKET, SO_DEVMEM_DONTNEED, stream->tokens, bytes) != stream->held)
        need(wf_fail(&status, -EIO, "not all of %d tokens", stream->held), "giving back");
    stream->held = 0;
}

static void see_call(struct stream *stream, struct msghdr *message, uint64_t bytes)
{
    uint64_t at = stream->received, end = at + bytes;
    const uint8_t *beside = host;

    for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header; header = CMSG_NXTHDR(message, header)) {
        struct dmabuf_cmsg fragment;
        memcpy(&fragment, CMSG_DATA(header), sizeof fragment);
        if (header->cmsg_type == SCM_DEVMEM_DMABUF) {
            see_fragment(stream, &fragment, at);
        } else {
            check(stream, beside, fragment.frag_size, at);
            beside += fragment.frag_size;
            stream->beside += fragment.frag_size;
        }
        at += fragment.frag_size;
    }
    check(stream, beside, end - at, at);
    stream->plain += end - at;
    stream->received = end;
}

static void wait_for(int fd, const char *what)
{
    struct pollfd readable = {.fd = fd, .events = POLLIN};

    if (poll(&readable, 1, PATIENCE_MS) != 1)
        need(wf_fail(&status, -ETIMEDOUT, "nothing comes"), what);
}

static void receive(struct stream *stream, uint64_t bytes)
{
    static char control[FRAGMENTS * CMSG_SPACE(sizeof(struct dmabuf_cmsg))];

    wait_for(stream->listener, "accept");
    stream->socket = accept(stream->listener, NULL, NULL);
    while (stream->received < bytes) {
        struct iovec room = {host, sizeof host};
        struct msghdr message = {
            .msg_iov = &room, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
        wait_for(stream->socket, "receive");
        ssize_t got = recvmsg(stream->socket, &message, MSG_SOCK_DEVMEM | MSG_DONTWAIT);
        if (got <= 0)
            need(wf_fail(&status, got ? -errno : -EPIPE, "%s", got ? strerror(errno) : "it ends"), "receive");
        see_call(stream, &message, (uint64_t)got);
        give_back(stream);
    }
    printf("GPU %d %s queue %u: device %llu beside %llu plain %llu wrong %llu\n", stream->gpu, stream->card->name,
           stream->queue, (unsigned long long)stream->device, (unsigned long long)stream->beside,
           (unsigned long long)stream->plain, (unsigned long long)stream->wrong);
    close(stream->socket); /* the sender waits for that */
}

int run_receive(const struct plan *plan)
{
    uint64_t wrong = 0;

    need(wf_devmem_open(NULL, &devmem, &status), "netlink");
    make_streams(plan);
    printf("ready\n");
    for (int i = 0; i < stream_count; i++) {
        receive(&streams[i], plan->bytes);
        wrong += streams[i].wrong;
    }
    for (int i = 0; i < stream_count; i++) {
        struct stream *stream = &streams[i];
        need(wf_devmem_unsteer(devmem, stream->card->name, &stream->flow, stream->queue, stream->rule, &status),
             "unsteer");
        close(stream->listener);
    }
    wf_devmem_close(devmem);
    for (int i = 0; i < stream_count; i++)
        wf_devmem_pool_fini(&streams[i].pool, ops, memory);
    return wrong > 0;
}
