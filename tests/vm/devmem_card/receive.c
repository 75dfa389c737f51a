/* Reception: where each byte of a stream has landed, and whether it is right. */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "probe.h"

#ifndef MSG_SOCK_DEVMEM
#define MSG_SOCK_DEVMEM 0x2000000
#endif
#define HOST_BYTES (1 << 20)
#define MAX_FRAGMENTS 1024 /* of one call, as many as one SO_DEVMEM_DONTNEED gives back */
#define MAX_RANGES 128     /* of one SO_DEVMEM_DONTNEED */
#define MAX_HELD (1 << 17) /* ranges of tokens */
#define STALL_MS 1500      /* nothing comes while tokens are held: the buffers are used up */

/* As in linux/uio.h, which cannot be included beside sys/socket.h. */
struct dmabuf_cmsg {
    uint64_t frag_offset;
    uint32_t frag_size, frag_token, dmabuf_id, flags;
};

struct dmabuf_token {
    uint32_t token_start, token_count;
};

static uint64_t count_wrong(const uint8_t *bytes, size_t count, uint64_t at)
{
    uint64_t wrong = 0;

    for (size_t i = 0; i < count; i++)
        wrong += bytes[i] != pattern(at + i);
    return wrong;
}

struct receiver {
    int socket;
    struct memory memory;
    uint8_t *host;
    struct dmabuf_token *held; /* ranges of tokens to give back */
    unsigned held_count;
    uint64_t received, wrong;                /* bytes */
    uint64_t device, linear, plain;          /* bytes of device memory, beside it, of ordinary packets */
    uint64_t fragments, largest, given_back; /* fragments of device memory */
    uint64_t stalled_with;                   /* tokens held when nothing more came; 0: it never stalled */
};

static uint64_t tokens_held(const struct receiver *receiver)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < receiver->held_count; i++)
        sum += receiver->held[i].token_count;
    return sum;
}

/* A call takes no more than 128 ranges, and silently forgets what is beyond 1024 tokens. */
static void give_back(struct receiver *receiver)
{
    for (unsigned from = 0; from < receiver->held_count;) {
        unsigned count = 0, tokens = 0;
        int freed;

        while (count < MAX_RANGES && from + count < receiver->held_count &&
               tokens + receiver->held[from + count].token_count <= MAX_FRAGMENTS)
            tokens += receiver->held[from + count++].token_count;
        freed = setsockopt(receiver->socket, SOL_SOCKET, SO_DEVMEM_DONTNEED, &receiver->held[from],
                           count * (socklen_t)sizeof *receiver->held);
        if (freed < 0)
            err(1, "SO_DEVMEM_DONTNEED");
        receiver->given_back += (uint64_t)freed;
        from += count;
    }
    receiver->held_count = 0;
}

static void hold(struct receiver *receiver, uint32_t token)
{
    struct dmabuf_token *last = &receiver->held[receiver->held_count - 1];

    if (receiver->held_count && last->token_start + last->token_count == token && last->token_count < MAX_FRAGMENTS)
        last->token_count++;
    else
        receiver->held[receiver->held_count++] = (struct dmabuf_token){.token_start = token, .token_count = 1};
}

static void see_fragment(struct receiver *receiver, const struct dmabuf_cmsg *fragment, uint64_t at)
{
    if (fragment->frag_offset + fragment->frag_size > receiver->memory.size)
        errx(1, "a fragment ends outside of the memory");
    receiver->wrong += count_wrong(receiver->memory.bytes + fragment->frag_offset, fragment->frag_size, at);
    receiver->device += fragment->frag_size;
    receiver->fragments++;
    if (fragment->frag_size > receiver->largest)
        receiver->largest = fragment->frag_size;
    hold(receiver, fragment->frag_token);
}

/* The bytes of one call: fragments in device memory and beside it in the order of the stream, or none of either kind.
 */
static void see_call(struct receiver *receiver, struct msghdr *message, uint64_t bytes)
{
    const uint8_t *host = receiver->host;
    uint64_t at = receiver->received, end = at + bytes;

    for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header; header = CMSG_NXTHDR(message, header)) {
        struct dmabuf_cmsg fragment;

        memcpy(&fragment, CMSG_DATA(header), sizeof fragment);
        if (header->cmsg_type == SCM_DEVMEM_LINEAR) {
            receiver->wrong += count_wrong(host, fragment.frag_size, at);
            receiver->linear += fragment.frag_size;
            host += fragment.frag_size;
        } else {
            see_fragment(receiver, &fragment, at);
        }
        at += fragment.frag_size;
    }
    receiver->wrong += count_wrong(host, end - at, at);
    receiver->plain += end - at;
    receiver->received = end;
}

/* 1: something came, 0: the end, or a negative errno. */
static int receive_some(struct receiver *receiver)
{
    static char control[MAX_FRAGMENTS * CMSG_SPACE(sizeof(struct dmabuf_cmsg))];
    struct iovec iov = {receiver->host, HOST_BYTES};
    struct msghdr message = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    ssize_t bytes = recvmsg(receiver->socket, &message, MSG_SOCK_DEVMEM | MSG_DONTWAIT);

    if (bytes <= 0)
        return bytes < 0 ? -errno : 0;
    see_call(receiver, &message, (uint64_t)bytes);
    return 1;
}

/* Waits for more. A stall while buffers are held ends the holding. */
static void wait_for_more(struct receiver *receiver, bool holding)
{
    struct pollfd poll_fd = {.fd = receiver->socket, .events = POLLIN};

    if (poll(&poll_fd, 1, holding ? STALL_MS : PATIENCE_MS) != 0)
        return;
    if (!holding)
        errx(1, "nothing more came after %llu bytes", (unsigned long long)receiver->received);
    receiver->stalled_with = tokens_held(receiver);
    give_back(receiver);
}

static int receive_all(struct receiver *receiver, uint64_t bytes, bool hold)
{
    while (receiver->received < bytes) {
        int result = receive_some(receiver);

        if (result == -EAGAIN)
            wait_for_more(receiver, hold && !receiver->stalled_with);
        else if (result <= 0)
            return result ? result : -EPIPE;
        if (!hold || receiver->stalled_with)
            give_back(receiver);
    }
    return 0;
}

static int accept_one(uint16_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct pollfd poll_fd = {.fd = socket(AF_INET, SOCK_STREAM, 0), .events = POLLIN};
    int one = 1, accepted;

    setsockopt(poll_fd.fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(poll_fd.fd, (struct sockaddr *)&address, sizeof address) || listen(poll_fd.fd, 1))
        err(1, "port %u", port);
    puts("listening");
    if (poll(&poll_fd, 1, PATIENCE_MS) != 1)
        errx(1, "nobody connects");
    accepted = accept(poll_fd.fd, NULL, NULL);
    close(poll_fd.fd);
    return accepted;
}

static void print_receiver(const struct receiver *receiver)
{
    const struct {
        const char *name;
        uint64_t value;
    } lines[] = {
        {"received", receiver->received},
        {"wrong", receiver->wrong},
        {"device", receiver->device},
        {"linear", receiver->linear},
        {"plain", receiver->plain},
        {"fragments", receiver->fragments},
        {"largest", receiver->largest},
        {"given_back", receiver->given_back},
        {"stalled_with", receiver->stalled_with},
    };

    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        printf("%s=%llu\n", lines[i].name, (unsigned long long)lines[i].value);
}

int run_receive(struct options *options, uint16_t port, uint64_t bytes)
{
    struct receiver receiver = {.host = malloc(HOST_BYTES), .held = calloc(MAX_HELD, sizeof *receiver.held)};
    struct binder binder;
    int result;

    if (options->binding.queue_count) {
        receiver.memory = make_memory(options->memory, options->binding.buffer_size > 0);
        options->binding.fd = receiver.memory.fd;
        binder_open(&binder);
        result = binder_bind(&binder, &options->binding);
        if (result < 0)
            errx(1, "refused: %s (%s)", strerror(-result), binder.said);
        close(receiver.memory.fd); /* the binding has its own */
    }
    receiver.socket = accept_one(port);
    result = receive_all(&receiver, bytes, options->hold);
    print_receiver(&receiver);
    if (result)
        printf("error=%s\n", strerrorname_np(-result));
    close(receiver.socket);
    return result ? 3 : receiver.wrong > 0;
}
