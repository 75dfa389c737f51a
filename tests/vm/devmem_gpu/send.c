/* Sends from exported memory of GPUs. */
#include "gpus.h"

#include <errno.h>
#include <linux/errqueue.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "devmem/exports.h"

#ifndef SCM_DEVMEM_DMABUF
#define SCM_DEVMEM_DMABUF 79
#endif
#define SEND_BYTES (64 << 10)
#define OFFSET 12345 /* of what is sent in its allocation */

/* Of one GPU, over one card. */
struct sender {
    int gpu;
    const struct card *card;
    uint16_t port;
    int socket;
    struct wf_export from;
    uint64_t calls, completions, copied;
};

static struct sender senders[GPUS_MAX * CARDS_MAX];
static int sender_count;
static struct wf_exports *exports;

static int connect_to(const struct card *card, uint16_t port)
{
    struct sockaddr_in to = card->address;
    int one = 1, made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    to.sin_port = htons(port);
    if (setsockopt(made, SOL_SOCKET, SO_BINDTODEVICE, card->name, (socklen_t)strlen(card->name)) != 0 ||
        setsockopt(made, SOL_SOCKET, SO_ZEROCOPY, &one, sizeof one) != 0 ||
        connect(made, (struct sockaddr *)&to, sizeof to) != 0)
        need(wf_fail(&status, -errno, "%s", strerror(errno)), "connect");
    return made;
}

/* Bytes, or a negative errno. `at`: in what is sent. */
static ssize_t send_some(const struct sender *sender, uint64_t at, uint64_t bytes)
{
    char control[CMSG_SPACE(sizeof sender->from.binding)] = {0};
    struct iovec piece = {(void *)(uintptr_t)(sender->from.offset + at), bytes < SEND_BYTES ? bytes : SEND_BYTES};
    struct msghdr message = {
        .msg_iov = &piece, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);

    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_DEVMEM_DMABUF;
    header->cmsg_len = CMSG_LEN(sizeof sender->from.binding);
    memcpy(CMSG_DATA(header), &sender->from.binding, sizeof sender->from.binding);
    ssize_t sent = sendmsg(sender->socket, &message, MSG_ZEROCOPY | MSG_NOSIGNAL);
    return sent < 0 ? -errno : sent;
}

/* Waits for one more completion at least. */
static void await_completion(struct sender *sender)
{
    struct pollfd errors = {.fd = sender->socket};
    char control[256];
    struct msghdr message = {.msg_control = control, .msg_controllen = sizeof control};
    struct sock_extended_err error;

    if (poll(&errors, 1, PATIENCE_MS) != 1 || recvmsg(sender->socket, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
        need(wf_fail(&status, -ETIMEDOUT, "%llu of %llu", (unsigned long long)sender->completions,
                     (unsigned long long)sender->calls),
             "completions");
    memcpy(&error, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof error);
    if (error.ee_origin != SO_EE_ORIGIN_ZEROCOPY)
        need(wf_fail(&status, -(int)error.ee_errno, "%s", strerror((int)error.ee_errno)), "a completion");
    sender->completions += error.ee_data - error.ee_info + 1;
    sender->copied += error.ee_code & SO_EE_CODE_ZEROCOPY_COPIED ? 1 : 0;
}

static void send_all(struct sender *sender, uint64_t bytes)
{
    for (uint64_t at = 0; at < bytes;) {
        ssize_t sent = send_some(sender, at, bytes - at);
        if (sent == -ENOBUFS) {
            await_completion(sender);
            continue;
        }
        if (sent < 0)
            need(wf_fail(&status, (int)sent, "%s", strerror((int)-sent)), "send");
        sender->calls++;
        at += (uint64_t)sent;
    }
    while (sender->completions < sender->calls)
        await_completion(sender);
}

static void send_stream(struct sender *sender, uint64_t bytes)
{
    char last;

    sender->socket = connect_to(sender->card, sender->port);
    send_all(sender, bytes);
    while (recv(sender->socket, &last, 1, 0) < 0 && errno == EINTR) /* until the receiver has it all */
        continue;
}

/* Its number names nothing any more. */
static void end_binding(struct sender *sender)
{
    wf_exports_release(exports, &sender->from);
    ssize_t after = send_some(sender, 0, 1);
    printf("GPU %d %s: completions %s copied %llu, afterwards %s\n", sender->gpu, sender->card->name,
           sender->completions == sender->calls ? "all" : "some", (unsigned long long)sender->copied,
           after < 0 ? strerror((int)-after) : "it can still be sent from");
    close(sender->socket);
}

static uint8_t *make_memory(int gpu, uint64_t bytes)
{
    uint8_t *content = malloc(bytes);
    void *base = NULL;

    need(content ? 0 : -ENOMEM, "memory");
    for (uint64_t i = 0; i < bytes; i++)
        content[i] = pattern(gpu, i);
    need(ops->alloc(memory, gpu, bytes + 2 * OFFSET, &base, &status), "alloc");
    need(ops->copy_now(memory, (uint8_t *)base + OFFSET, content, bytes, &status), "copy");
    free(content);
    return base;
}

static void make_sender(const struct plan *plan, int gpu, int card, const uint8_t *from)
{
    struct sender *sender = &senders[sender_count++];

    *sender = (struct sender){.gpu = gpu, .card = &plan->card[card], .port = port_of(gpu, card)};
    need(wf_exports_use(exports, sender->card->ifindex, from, plan->bytes, &sender->from, &status), "export");
}

int run_send(const struct plan *plan)
{
    uint8_t *base[GPUS_MAX];

    need(wf_exports_create(ops, memory, NULL, GPUS_MAX * CARDS_MAX, &exports, &status), "exports");
    for (int i = 0; i < plan->gpus; i++) {
        base[i] = make_memory(plan->first + i, plan->bytes);
        for (int card = 0; card < plan->cards; card++)
            make_sender(plan, plan->first + i, card, base[i] + OFFSET);
    }
    printf("bindings %d\n", wf_exports_count(exports));
    for (int i = 0; i < sender_count; i++)
        send_stream(&senders[i], plan->bytes);
    for (int i = 0; i < sender_count; i++)
        end_binding(&senders[i]);
    printf("bindings at the end %d\n", wf_exports_count(exports));
    wf_exports_destroy(exports);
    for (int i = 0; i < plan->gpus; i++)
        ops->free(memory, plan->first + i, base[i]);
    return 0;
}
